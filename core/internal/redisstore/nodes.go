package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// nodes are the auto-pipelines of a Cluster, one for each master. The one that a
// ClusterClient has itself mixes the commands of several masters in a batch, so that
// one which does not answer takes down the keys of others; here it follows
// redirections only.
type nodes struct {
	cluster    *redis.ClusterClient
	redirected *redis.AutoPipeliner // the caller's client's; ends with it
	timeout    time.Duration

	mu    sync.RWMutex
	pipes map[*redis.Client]*redis.AutoPipeliner
}

func newNodes(cluster *redis.ClusterClient, timeout time.Duration) (*nodes, error) {
	pipe, err := cluster.AsyncAutoPipelineWithOptions(pipelineOptions(cluster.Options().AutoPipelineOptions))
	return &nodes{
		cluster: cluster, redirected: pipe, timeout: timeout,
		pipes: make(map[*redis.Client]*redis.AutoPipeliner),
	}, err
}

// pipe is the auto-pipeline of the master that owns key, as far as is known. Nothing
// is sent: [Store.Detect] has loaded the slots.
func (n *nodes) pipe(key string) (*redis.AutoPipeliner, error) {
	node, err := n.cluster.MasterForKey(context.Background(), key) //nolint:forbidigo // see above
	if err != nil {
		n.stale()
		return nil, err
	}
	n.mu.RLock()
	pipe := n.pipes[node]
	n.mu.RUnlock()
	if pipe != nil {
		return pipe, nil
	}
	return n.open(node)
}

// open makes the pipe of a master, and ends those of masters that have left the
// Cluster.
func (n *nodes) open(node *redis.Client) (*redis.AutoPipeliner, error) {
	opts := pipelineOptions(n.cluster.Options().AutoPipelineOptions)
	opts.NumShards = 0 // which in a Cluster is by slot
	n.mu.Lock()
	pipe, err := n.pipes[node], error(nil)
	if pipe == nil {
		pipe, err = node.WithTimeout(n.timeout).AsyncAutoPipelineWithOptions(opts)
	}
	if err == nil {
		n.pipes[node] = pipe
	}
	var left []*redis.AutoPipeliner
	for other, p := range n.pipes {
		if p.IsClosed() {
			delete(n.pipes, other)
			left = append(left, p)
		}
	}
	n.mu.Unlock()
	for _, p := range left {
		_ = p.Close() //nolint:errcheck // go-redis has closed its connections
	}
	return pipe, err
}

// stale has the slots asked for again, in the background and not too often.
func (n *nodes) stale() { n.cluster.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

func (n *nodes) close() error {
	n.mu.Lock()
	pipes := n.pipes
	n.pipes = make(map[*redis.Client]*redis.AutoPipeliner)
	n.mu.Unlock()
	var errs []error
	for _, pipe := range pipes {
		errs = append(errs, pipe.Close())
	}
	return errors.Join(errs...)
}

// redirected says whether the answer is that another node of the Cluster has the key,
// now or while its slot is on the move.
func (s *Store) redirected(err error) bool {
	if s.cluster == nil || err == nil {
		return false
	}
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask
}
