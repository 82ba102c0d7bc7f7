package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// nodes are the masters of a Cluster, or what was taken for one, each with pipelines. The auto-pipeline that a
// ClusterClient has itself mixes the commands of several masters in a batch, so that
// one which does not answer takes down the keys of others; here it follows
// redirections only.
//
//	none -> there  a call wants a key of it
//	there -> none  go-redis has closed its client, because it has left the Cluster
//	there -> none  the nodes are closed
//
// Only open, takeLeft and close change that. A call waits for none of it but the first.
type nodes struct {
	cluster    *redis.ClusterClient
	redirected *redis.AutoPipeliner // the caller's client's; ends with it
	cfg        Config
	replicas   *replicas

	discovering atomic.Bool
	life        context.Context //nolint:containedctx // of what is done in the background
	over        context.CancelFunc

	mu     sync.RWMutex
	all    map[*redis.Client]*node
	closed bool

	sweep  sync.Once     // begins with the first node
	end    chan struct{} // closed when the nodes are
	worker sync.WaitGroup
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
	if err != nil {
		return nil, err
	}
	n := &nodes{
		cluster: cluster, redirected: pipe, cfg: cfg, replicas: newReplicas(slots),
		all: make(map[*redis.Client]*node), end: make(chan struct{}),
	}
	n.life, n.over = context.WithCancel(context.Background()) //nolint:forbidigo // its own lifetime
	return n, nil
}

// of is the master that owns key, as far as is known. Nothing is sent: [Store.Detect]
// has loaded the slots. Of a slot without a master go-redis names any node that it knows,
// each time another one, which may be a replica. It is asked like a master, and refuses
// (CLUSTERDOWN) or knows better (MOVED); so there may be pipelines to nodes that are no
// masters, one of each at most, until they leave. An error says that the slots were never
// loaded, or that the client is closed.
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

// open makes the pipelines of a master.
func (n *nodes) open(client *redis.Client) (*node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return &node{}, redis.ErrClosed
	}
	master, known := n.all[client]
	if !known {
		limited := client.WithTimeout(n.cfg.Timeout)
		master = &node{
			route:   newRoute(client.Options().Addr, limited, n.cluster.Options().AutoPipelineOptions, n.cfg, n.replicas),
			renewer: client.WithTimeout(n.cfg.RenewTimeout),
		}
		master.hooks = hooksOf(client)
		n.all[client] = master
		n.sweep.Do(func() { n.worker.Go(n.sweeps) })
	}
	return master, nil
}

// sweepPause is how often those are looked for that have left the Cluster. go-redis takes a
// minute to close their clients.
const sweepPause = 10 * time.Second

// sweeps closes the nodes that leave.
func (n *nodes) sweeps() {
	ticker := time.NewTicker(sweepPause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			closeNodes(n.takeLeft())
		case <-n.end:
			return
		}
	}
}

// takeLeft takes out the nodes that have left.
func (n *nodes) takeLeft() (left []*node) {
	n.mu.RLock()
	all := maps.Clone(n.all)
	n.mu.RUnlock()
	maps.DeleteFunc(all, func(_ *redis.Client, m *node) bool { return !poolClosed(m.renewer) })
	n.mu.Lock()
	defer n.mu.Unlock()
	for client := range all {
		if m, known := n.all[client]; known {
			delete(n.all, client)
			left = append(left, m)
		}
	}
	return left
}

// closeNodes closes nodes at the same time: each may take up to the timeout.
func closeNodes(list []*node) {
	var all sync.WaitGroup
	for _, m := range list {
		all.Go(m.close)
	}
	all.Wait()
}

// stale has the slots asked for again, in the background and not too often.
func (n *nodes) stale() { n.cluster.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

// close ends them all, once.
func (n *nodes) close() {
	n.mu.Lock()
	again, all := n.closed, n.all
	n.closed, n.all = true, make(map[*redis.Client]*node)
	n.mu.Unlock()
	if !again {
		close(n.end)
		n.over()
	}
	closeNodes(slices.Collect(maps.Values(all)))
	n.worker.Wait()
}

// redirected reports whether the answer is that another node of the Cluster has the key,
// now or while its slot is on the move.
func (s *Store) redirected(err error) bool { return s.cluster != nil && meaningOf(err) == elsewhere }

// poolClosed reports whether a client was closed, or that whose clone it is. Nothing is sent,
// and a clone has no hooks that would see it.
func poolClosed(clone *redis.Client) bool {
	over, end := context.WithCancel(context.Background()) //nolint:forbidigo // it has ended
	end()
	return errors.Is(clone.Ping(over).Err(), redis.ErrClosed)
}
