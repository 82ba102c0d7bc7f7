package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// nodes are the masters of a Cluster, each with pipelines. The auto-pipeline that a
// ClusterClient has itself mixes the commands of several masters in a batch, so that
// one which does not answer takes down the keys of others; here it follows
// redirections only.
type nodes struct {
	cluster    *redis.ClusterClient
	redirected *redis.AutoPipeliner // the caller's client's; ends with it
	cfg        Config

	mu     sync.RWMutex
	all    map[*redis.Client]*node
	closed bool
}

// node is one master; the zero value is none.
type node struct {
	route

	renewer *redis.Client // with the timeout of renewals
}

func newNodes(cluster *redis.ClusterClient, cfg Config) (*nodes, error) {
	opts := redis.DefaultAutoPipelineOptions()
	if said := cluster.Options().AutoPipelineOptions; said != nil {
		*opts = *said
	}
	opts.MaxQueuedCommands = pipelineBound(opts)
	pipe, err := cluster.AsyncAutoPipelineWithOptions(opts)
	return &nodes{cluster: cluster, redirected: pipe, cfg: cfg, all: make(map[*redis.Client]*node)}, err
}

// of is the master that owns key, as far as is known. Nothing is sent: [Store.Detect]
// has loaded the slots.
func (n *nodes) of(key string) (*node, error) {
	client, err := n.cluster.MasterForKey(context.Background(), key) //nolint:forbidigo // see above
	if err != nil {
		n.stale()
		return &node{}, err
	}
	n.mu.RLock()
	master, known := n.all[client]
	n.mu.RUnlock()
	if known {
		return master, nil
	}
	return n.open(client)
}

// open makes the pipelines of a master, and ends those of masters that have left the
// Cluster.
func (n *nodes) open(client *redis.Client) (*node, error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return &node{}, redis.ErrClosed
	}
	master, known := n.all[client]
	if !known {
		limited := client.WithTimeout(n.cfg.Timeout)
		master = &node{
			route:   newRoute(client.Options().Addr, limited, n.cluster.Options().AutoPipelineOptions, n.cfg),
			renewer: client.WithTimeout(n.cfg.RenewTimeout),
		}
		master.hooks = hooksOf(client)
		n.all[client] = master
	}
	var left []*node
	for other, m := range n.all {
		if other != client && poolClosed(other) {
			delete(n.all, other)
			left = append(left, m)
		}
	}
	n.mu.Unlock()
	for _, m := range left {
		m.close()
	}
	return master, nil
}

// stale has the slots asked for again, in the background and not too often.
func (n *nodes) stale() { n.cluster.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

func (n *nodes) close() {
	n.mu.Lock()
	all := n.all
	n.closed, n.all = true, make(map[*redis.Client]*node)
	n.mu.Unlock()
	for _, m := range all {
		m.close()
	}
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

// poolClosed reports whether a client was closed; nothing is sent.
func poolClosed(client *redis.Client) bool {
	over, end := context.WithCancel(context.Background()) //nolint:forbidigo // it has ended
	end()
	return errors.Is(client.Ping(over).Err(), redis.ErrClosed)
}
