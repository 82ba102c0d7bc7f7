package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/redis/go-redis/v9"
)

// cluster has the ways to the masters of a Cluster, and to servers that were taken for one. The auto-pipeline
// of a ClusterClient mixes the commands of several masters in a batch, so that one master which does not answer
// takes down the keys of others.
//
//	none -> there  a command wants a key of the node, or was redirected to it
//	there -> none  go-redis has closed its client, because the node has left the Cluster
//	there -> none  go-redis never had a client for it, and it was not asked for a while
//	there -> none  the cluster is closed
//
// Only open, takeLeft and close change that.
type cluster struct {
	life // its mutex guards flight

	client  *redis.ClusterClient
	timeout time.Duration
	newNode func(opts *redis.Options) *node // makes the way to a node, whose name is its address
	reached atomic.Bool                     // the Cluster has answered, and its slots are known
	flight  *flight                         // under way; nil: none

	nodes struct {
		sync.RWMutex

		all   map[string]member // by address
		swept bool              // sweeps runs
	}
}

// member is a node of a Cluster. It is a value: what was read of it under the lock stays as it was.
type member struct {
	*node

	client *redis.Client // of go-redis, with the timeout of the Config; nil: the node is known by a redirection only
	used   time.Time     // by a redirection
}

func newCluster(client *redis.ClusterClient, timeout time.Duration, newNode func(opts *redis.Options) *node) *cluster {
	c := &cluster{client: client, timeout: timeout, newNode: newNode}
	c.nodes.all = make(map[string]member)
	c.begin()
	return c
}

// of returns the way to the master that owns key, as far as is known. Nothing is sent: [Redis.Reach] has loaded
// the slots. For a slot without a master go-redis names any node that it knows, which may be a replica. The node
// is asked like a master, and refuses (CLUSTERDOWN) or knows better (MOVED). An error says that the slots were
// never loaded, or that the client is closed.
func (c *cluster) of(key string) (*node, error) {
	client, err := c.client.MasterForKey(context.Background(), key) //nolint:forbidigo // nothing is sent
	if err != nil {
		c.stale()
		return nil, err
	}
	c.nodes.RLock()
	m, known := c.nodes.all[client.Options().Addr]
	c.nodes.RUnlock()
	if known && m.client != nil {
		return m.node, nil
	}
	return c.open(client.Options(), client)
}

// open makes the way to a node, unless there is one.
func (c *cluster) open(opts *redis.Options, client *redis.Client) (*node, error) {
	c.nodes.Lock()
	defer c.nodes.Unlock()
	if c.ctx.Err() != nil {
		return nil, redis.ErrClosed
	}
	m, known := c.nodes.all[opts.Addr]
	if !known {
		m.node = c.newNode(opts)
	}
	if !c.nodes.swept {
		c.nodes.swept = c.spawn(c.sweeps)
	}
	m.used = time.Now()
	if client != nil && m.client == nil {
		m.client = client.WithTimeout(c.timeout)
		m.hooks.Store(new(hooksOf(client)))
	}
	c.nodes.all[opts.Addr] = m
	return m.node, nil
}

// redirected returns the way to the node that the answer of another one names. ask says that the key is there
// already and its slot is not. A node that is not known yet has the options of from.
func (c *cluster) redirected(from *node, err error) (to *node, ask bool) {
	reply, ok := replyOf(err)
	if !ok {
		return nil, false
	}
	addr, moved := redis.IsMovedError(reply)
	if !moved {
		if addr, ask = redis.IsAskError(reply); !ask {
			return nil, false
		}
	}
	c.stale()
	opts := *from.dialer.opts
	opts.Addr = addr
	to, err = c.open(&opts, nil)
	if err != nil {
		return nil, false
	}
	return to, ask
}

const (
	// sweepPause is how often nodes are looked for that have left the Cluster. go-redis takes a
	// minute to close their clients.
	sweepPause = 10 * time.Second
	// unknownFor is how long a node is kept that go-redis does not know.
	unknownFor = time.Minute
)

// sweeps closes the nodes that leave.
func (c *cluster) sweeps() {
	ticker := time.NewTicker(sweepPause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			closeNodes(c.takeLeft())
		case <-c.ctx.Done():
			return
		}
	}
}

// takeLeft takes out the nodes that have left.
func (c *cluster) takeLeft() (left []member) {
	c.nodes.RLock()
	all := maps.Clone(c.nodes.all)
	c.nodes.RUnlock()
	for addr, m := range all {
		if !m.left() {
			continue
		}
		c.nodes.Lock()
		if c.nodes.all[addr] == m { // it was not asked for in between
			delete(c.nodes.all, addr)
			left = append(left, m)
		}
		c.nodes.Unlock()
	}
	return left
}

// left reports whether the node has left the Cluster: go-redis has closed its client. Nothing is sent to find out,
// and the client that is asked has no hooks.
func (m member) left() bool {
	if m.client == nil {
		return time.Since(m.used) > unknownFor
	}
	over, end := context.WithCancel(context.Background()) //nolint:forbidigo // it has ended
	end()
	return errors.Is(m.client.Ping(over).Err(), redis.ErrClosed)
}

// closeNodes closes nodes at the same time: each may take up to the timeout.
func closeNodes(list []member) {
	var all sync.WaitGroup
	for _, m := range list {
		all.Go(m.close)
	}
	all.Wait()
}

// stale has the slots asked for again, in the background and not too often.
func (c *cluster) stale() { c.client.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

// close closes all nodes.
func (c *cluster) close() {
	c.shut()
	c.nodes.Lock()
	all := c.nodes.all
	c.nodes.all = make(map[string]member)
	c.nodes.Unlock()
	closeNodes(slices.Collect(maps.Values(all)))
	c.workers.Wait()
}

// flight is one attempt to reach the Cluster. A caller waits for it for as long as it wants; the flight goes on
// for the others.
type flight struct {
	once    sync.Once
	done    chan struct{}
	err     error
	trouble trouble // of the last node that could not be reached
}

func (f *flight) land(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
}

// reaching returns the flight that is under way, or a new one.
func (c *cluster) reaching(ask func(ctx context.Context, probe *redis.ClusterClient) error) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight != nil {
		return c.flight
	}
	f := &flight{done: make(chan struct{})}
	if c.closed {
		f.land(redis.ErrClosed)
		return f
	}
	c.flight = f
	c.workers.Go(func() { c.fly(f, ask) })
	return f
}

// fly reaches the Cluster. Beside it the addresses that the caller's client was given are asked for a sign of life:
// go-redis may take long to find out that there is none.
func (c *cluster) fly(f *flight, ask func(ctx context.Context, probe *redis.ClusterClient) error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := c.entries(ctx, &f.trouble); err != nil {
			f.land(err)
			cancel(err)
		}
	})
	err := c.reach(ctx, ask)
	cancel(nil)
	asking.Wait()
	c.reached.Store(err == nil)
	c.mu.Lock()
	c.flight = nil
	c.mu.Unlock()
	f.land(err)
}

func (c *cluster) reach(ctx context.Context, ask func(ctx context.Context, probe *redis.ClusterClient) error) error {
	probe := c.probe()
	defer probe.Close() //nolint:errcheck // nothing was entrusted to it
	if err := ask(ctx, probe); err != nil {
		return err
	}
	_, err := c.client.MasterForKey(ctx, "") // loads the slots
	return err
}

// entries asks all the addresses that the caller's client was given for a connection, again and again. Its error says
// that none of them has given one for the timeout.
func (c *cluster) entries(ctx context.Context, trouble *trouble) error {
	opts := c.client.Options()
	dial := opts.Dialer
	if dial == nil {
		dial = redis.NewDialer(&redis.Options{DialTimeout: opts.DialTimeout, TLSConfig: opts.TLSConfig})
	}
	timeout := c.timeout
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errNoAnswer)
	defer cancel()
	alive := make(chan struct{}, len(opts.Addrs))
	var asking sync.WaitGroup
	for _, addr := range opts.Addrs {
		d := newDialer(&redis.Options{Network: "tcp", Addr: addr, Dialer: dial, TLSConfig: opts.TLSConfig}, timeout)
		asking.Go(func() {
			defer d.close()
			for pause := leastPause; ; pause = min(2*pause, mostPause) {
				conn, err := d.connect(limited, &progress{})
				if err == nil {
					_ = conn.Close() //nolint:errcheck // it has done its work
					alive <- struct{}{}
					return
				}
				trouble.note(err)
				if jitter.Sleep(limited, pause) != nil {
					return
				}
			}
		})
	}
	defer asking.Wait()
	defer cancel()
	select {
	case <-alive:
		return nil
	case <-limited.Done():
		if ctx.Err() != nil {
			return nil
		}
		return trouble.explain(fmt.Errorf("%w for %s", ErrSilent, timeout))
	}
}

// probe makes a client for questions to the nodes. It heeds the context; the caller's client may not.
func (c *cluster) probe() *redis.ClusterClient {
	opts := *c.client.Options()
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = c.timeout, c.timeout, c.timeout
	opts.PoolSize, opts.MinIdleConns = 1, 0
	return redis.NewClusterClient(&opts)
}

// reachBy waits for a flight until limit at the latest.
func (c *cluster) reachBy(ctx context.Context, limit time.Time, ask func(ctx context.Context, probe *redis.ClusterClient) error) error {
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	f := c.reaching(ask)
	select {
	case <-f.done:
		if c.reached.Load() {
			return nil
		}
		return f.err
	case <-ctx.Done():
		return f.trouble.explain(&interruptedError{context.Cause(ctx)})
	}
}
