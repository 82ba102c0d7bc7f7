package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// target is the node to which a redirection leads, for calls that replicas have to
// acknowledge: go-redis follows one for a single command only, and what waits for the replicas
// has to go along. ask says that the key is there already and its slot is not. A node that
// this client does not know yet is made known in the background; there is none so far, then.
func (n *nodes) target(err error) (to *node, ask bool) {
	reply, ok := replyOf(err)
	if !ok {
		return nil, false
	}
	addr, redirected := redis.IsMovedError(reply)
	if !redirected {
		if addr, ask = redis.IsAskError(reply); !ask {
			return nil, false
		}
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	for client, m := range n.all {
		if client.Options().Addr == addr {
			return m, ask
		}
	}
	n.discover()
	return nil, false
}

// discover has all masters known, in the background, by one that does that at a time.
func (n *nodes) discover() {
	if n.closed || !n.discovering.CompareAndSwap(false, true) {
		return
	}
	n.worker.Go(func() {
		defer n.discovering.Store(false)
		_ = n.cluster.ForEachMaster(n.life, func(_ context.Context, client *redis.Client) error { //nolint:errcheck // who needs it asks again
			_, err := n.open(client)
			return err
		})
	})
}
