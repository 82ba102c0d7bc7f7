package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// nodes are the masters of a Cluster, each with an auto-pipeline. The one that a
// ClusterClient has itself mixes the commands of several masters in a batch, so that
// one which does not answer takes down the keys of others; here it follows
// redirections only.
type nodes struct {
	cluster    *redis.ClusterClient
	redirected *redis.AutoPipeliner // the caller's client's; ends with it
	cfg        Config

	mu  sync.RWMutex
	all map[*redis.Client]node
}

// node is one master; the zero value is none.
type node struct {
	pipe    *redis.AutoPipeliner
	health  *health
	hooks   hooks
	renewer *redis.Client // with the timeout of renewals
}

func (n node) close() error {
	n.health.close()
	return n.pipe.Close()
}

func newNodes(cluster *redis.ClusterClient, cfg Config) (*nodes, error) {
	pipe, err := cluster.AsyncAutoPipelineWithOptions(pipelineOptions(cluster.Options().AutoPipelineOptions))
	return &nodes{cluster: cluster, redirected: pipe, cfg: cfg, all: make(map[*redis.Client]node)}, err
}

// of is the master that owns key, as far as is known. Nothing is sent: [Store.Detect]
// has loaded the slots.
func (n *nodes) of(key string) (node, error) {
	client, err := n.cluster.MasterForKey(context.Background(), key) //nolint:forbidigo // see above
	if err != nil {
		n.stale()
		return node{}, err
	}
	n.mu.RLock()
	master := n.all[client]
	n.mu.RUnlock()
	if master.pipe != nil {
		return master, nil
	}
	return n.open(client)
}

// open makes the pipe of a master, and ends those of masters that have left the
// Cluster.
func (n *nodes) open(client *redis.Client) (node, error) {
	opts := pipelineOptions(n.cluster.Options().AutoPipelineOptions)
	opts.NumShards = 0 // which in a Cluster is by slot
	n.mu.Lock()
	master, err := n.all[client], error(nil)
	if master.pipe == nil {
		limited := client.WithTimeout(n.cfg.Timeout)
		if master.pipe, err = limited.AsyncAutoPipelineWithOptions(opts); err == nil {
			master.health = newHealth(client.Options().Addr, n.cfg, addressOf(limited))
			master.hooks, master.renewer = hooksOf(client), client.WithTimeout(n.cfg.RenewTimeout)
			n.all[client] = master
		}
	}
	var left []node
	for other, m := range n.all {
		if m.pipe.IsClosed() {
			delete(n.all, other)
			left = append(left, m)
		}
	}
	n.mu.Unlock()
	for _, m := range left {
		_ = m.close() //nolint:errcheck // go-redis has closed its connections
	}
	return master, err
}

// stale has the slots asked for again, in the background and not too often.
func (n *nodes) stale() { n.cluster.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

func (n *nodes) close() error {
	n.mu.Lock()
	all := n.all
	n.all = make(map[*redis.Client]node)
	n.mu.Unlock()
	var errs []error
	for _, m := range all {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}

// redirected reports whether the answer is that another node of the Cluster has the key,
// now or while its slot is on the move.
func (s *Store) redirected(err error) bool {
	if s.cluster == nil || err == nil {
		return false
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}
