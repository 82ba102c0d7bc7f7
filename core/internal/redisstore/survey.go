package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/topology"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// Survey is what the servers say of how others who share the locks are set up.
type Survey struct {
	// Sharding: the servers of a Cluster have sharded pub/sub.
	Sharding bool
	// Stray: the server belongs to a Cluster, of which the client knows nothing.
	Stray bool
	// Elsewhere are the channels of locks on which somebody listens in the mode that is not
	// this store's: there its messages are not heard. In order.
	Elsewhere []string
	// Unasked says which servers did not tell, and why; nil: all did.
	Unasked error
}

// nodeTimeouts is for how many timeouts one node of a Cluster is waited for: it takes a
// connection, and commands.
const nodeTimeouts = 4

// Survey asks all nodes at the same time, about channels of keys that begin with prefix. In a
// Cluster it makes connections of its own. One that does not answer is not waited for long.
func (s *Store) Survey(ctx context.Context, prefix string) (Survey, error) {
	v := &surveyor{store: s, prefix: prefix}
	if s.cluster == nil {
		v.ask(ctx, s.single)
		if v.found.Stray = topology.InCluster(ctx, s.single); !v.found.Stray {
			v.unasked = nil // nobody is expected there, and the user needs no right to ask
		}
		return v.result(), nil
	}
	probe := s.wire.Probe()
	defer probe.Close() //nolint:errcheck // nothing was entrusted to it
	err := probe.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeouts*s.cfg.Timeout)
		defer cancel()
		v.askSharding(ctx, node)
		v.ask(ctx, node)
		return nil
	})
	v.found.Sharding = v.sharded > 0 || v.classic == 0 && s.Sharded() // where nobody may ask, as it is used
	return v.result(), err
}

// surveyor gathers what the nodes say, several at a time.
type surveyor struct {
	store  *Store
	prefix string

	mu      sync.Mutex
	found   Survey
	sharded int // nodes that have sharded pub/sub
	classic int // nodes that have not
	unasked []error
}

// askSharding asks one node whether it has sharded pub/sub.
func (v *surveyor) askSharding(ctx context.Context, node *redis.Client) {
	has, err := hasSharding(ctx, node)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err != nil: // the next question says so
	case has:
		v.sharded++
	default:
		v.classic++
	}
}

// ask asks one node on which channels somebody listens who does not hear this store.
func (v *surveyor) ask(ctx context.Context, node *redis.Client) {
	const redissons = "redisson_*"
	list := node.PubSubShardChannels
	if v.store.Sharded() {
		list = node.PubSubChannels
	}
	channels, err := list(ctx, redissons).Result()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && !wire.UnknownCommand(err) { // a server too old for sharded messages has no such listeners
		v.unasked = append(v.unasked, fmt.Errorf("%s: %w", node.Options().Addr, err))
	}
	for _, channel := range channels {
		if ofKeys(channel, v.prefix) {
			v.found.Elsewhere = append(v.found.Elsewhere, channel)
		}
	}
}

func (v *surveyor) result() Survey {
	slices.Sort(v.found.Elsewhere)
	v.found.Elsewhere = slices.Compact(v.found.Elsewhere)
	v.found.Unasked = errors.Join(v.unasked...)
	return v.found
}
