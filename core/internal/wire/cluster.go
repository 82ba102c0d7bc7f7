package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/redis/go-redis/v9"
)

// cluster holds the nodes for the masters of a Cluster and for servers that were taken for masters. It
// does not use the auto-pipeline of the ClusterClient, which mixes the commands for several masters in
// a batch, so that one silent master blocks the keys of the others.
//
//	none -> there  a command needs a key of the node, or was redirected to it
//	there -> none  go-redis closed its client, because the node left the Cluster
//	there -> none  go-redis never had a client for it, and no command used it for a while
//	there -> none  the cluster is closed
//
// Only open, takeLeft and close change these states.
type cluster struct {
	life // its mutex guards flight

	client  *redis.ClusterClient
	timeout time.Duration
	newNode func(opts *redis.Options) *node // creates a node, whose name is its address
	reached atomic.Bool                     // the Cluster answered, and its slots are known
	flight  *flight                         // the flight under way, or a flight that Redis has just refused; nil: none
	pause   time.Duration                   // how long a refused flight stands

	nodes struct {
		sync.RWMutex

		all      map[string]member // by address
		sweeping bool              // sweep runs
	}
}

// member is a node of a Cluster. It is a value, so that a copy that was read under the lock does
// not change.
type member struct {
	*node

	client *redis.Client // client of go-redis, with the timeout of the Config; nil: only a redirection named the node
	used   time.Time     // when it was last used
}

func newCluster(client *redis.ClusterClient, timeout time.Duration, newNode func(opts *redis.Options) *node) *cluster {
	c := &cluster{client: client, timeout: timeout, newNode: newNode}
	c.nodes.all = make(map[string]member)
	c.begin()
	return c
}

// nodeOf returns the node for the master that owns key, according to the slots that [Redis.Reach] loaded.
// It sends nothing. For a slot without a master go-redis returns any of its nodes, which may be a replica.
// The command is sent to that node as to a master, and the node refuses (CLUSTERDOWN) or redirects (MOVED).
// An error means that the slots were never loaded or that the client is closed.
func (c *cluster) nodeOf(key string) (*node, error) {
	client, err := c.client.MasterForKey(context.Background(), key) //nolint:forbidigo // nothing is sent
	if err != nil {
		c.reloadSlots()
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

// open returns the node for a server. It creates the node if there is none.
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
	if !c.nodes.sweeping {
		c.nodes.sweeping = c.spawn(c.sweep)
	}
	m.used = time.Now()
	if client != nil && m.client == nil {
		m.client = client.WithTimeout(c.timeout)
		m.hooks.Store(new(hooksOf(client)))
	}
	c.nodes.all[opts.Addr] = m
	return m.node, nil
}

// redirectTarget returns the node that the redirection in err names. ask reports whether the
// redirection is an ASK: the slot is moving to that node. A new node gets the options of from.
func (c *cluster) redirectTarget(from *node, err error) (to *node, ask bool) {
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
	c.reloadSlots()
	opts := *from.dialer.opts
	opts.Addr = addr
	to, err = c.open(&opts, nil)
	if err != nil {
		return nil, false
	}
	return to, ask
}

const (
	// sweepPause is the interval at which sweep looks for nodes that left the Cluster. go-redis takes a
	// minute to close their clients.
	sweepPause = 10 * time.Second
	// unknownFor is how long a node without a client of go-redis is kept.
	unknownFor = time.Minute
)

// sweep closes nodes that left, until the cluster is closed.
func (c *cluster) sweep() {
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

// takeLeft removes the nodes that left, and returns them.
func (c *cluster) takeLeft() (left []member) {
	c.nodes.RLock()
	all := maps.Clone(c.nodes.all)
	c.nodes.RUnlock()
	for addr, m := range all {
		if !m.hasLeft() {
			continue
		}
		c.nodes.Lock()
		if c.nodes.all[addr] == m { // no command used it in between
			delete(c.nodes.all, addr)
			left = append(left, m)
		}
		c.nodes.Unlock()
	}
	return left
}

// hasLeft reports whether the node left the Cluster, so that go-redis closed its client. It sends
// nothing and runs no hook.
func (m member) hasLeft() bool {
	if m.client == nil {
		return time.Since(m.used) > unknownFor
	}
	over, end := context.WithCancel(context.Background()) //nolint:forbidigo // it is canceled
	end()
	return errors.Is(m.client.Ping(over).Err(), redis.ErrClosed)
}

// closeNodes closes nodes at the same time, because each may take up to the timeout.
func closeNodes(list []member) {
	var all sync.WaitGroup
	for _, m := range list {
		all.Go(m.close)
	}
	all.Wait()
}

// reloadSlots asks for the slots again, in the background and not too often.
func (c *cluster) reloadSlots() { c.client.ReloadState(context.Background()) } //nolint:forbidigo // go-redis ignores it

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

// flight is one attempt to reach the Cluster, shared by all callers. A caller stops waiting at its
// limit. The flight continues for the others.
type flight struct {
	once    sync.Once
	done    chan struct{}
	err     error
	trouble trouble // the last error of an attempt to connect
}

func (f *flight) land(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
}

// askFunc asks a Cluster something, through a client that obeys its context.
type askFunc = func(ctx context.Context, probe *redis.ClusterClient) error

// reachBy waits for the flight, but not longer than limit. After a flight that Redis refused, callers get its error for a
// pause, which doubles with each such flight.
func (c *cluster) reachBy(ctx context.Context, limit time.Time, ask askFunc) error {
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	f := c.currentFlight(ask)
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

// currentFlight returns the flight under way, or a new one.
func (c *cluster) currentFlight(ask askFunc) *flight {
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

// fly contacts the Cluster. At the same time it connects to the addresses of the caller's client,
// because go-redis may take long to find out that none of them answers.
func (c *cluster) fly(f *flight, ask askFunc) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := c.dialAddresses(ctx, &f.trouble); err != nil {
			f.land(err)
			cancel(err)
		}
	})
	err := c.reach(ctx, ask)
	cancel(nil)
	asking.Wait()
	c.reached.Store(err == nil)
	f.land(err)
	c.rest(err)
	c.mu.Lock()
	c.flight = nil
	c.mu.Unlock()
}

// rest lets a refused flight stand for a pause.
func (c *cluster) rest(err error) {
	if err == nil || FateOf(err) != Answered {
		c.pause = 0
		return
	}
	c.pause = min(max(2*c.pause, leastPause), 2*mostPause) // each flight makes several connections
	_ = jitter.Sleep(c.ctx, c.pause)                       //nolint:errcheck // the next flight fails if the cluster is closed
}

// probe returns a client for questions to the nodes. It obeys the context; the caller's client may not.
func (c *cluster) probe() *redis.ClusterClient {
	opts := *c.client.Options()
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = c.timeout, c.timeout, c.timeout
	opts.PoolSize, opts.MinIdleConns = 1, 0
	return redis.NewClusterClient(&opts)
}

func (c *cluster) reach(ctx context.Context, ask askFunc) error {
	probe := c.probe()
	defer probe.Close() //nolint:errcheck // it carries no commands
	if err := ask(ctx, probe); err != nil {
		return err
	}
	_, err := c.client.MasterForKey(ctx, "") // loads the slots
	return err
}

// dialAddresses tries repeatedly to connect to all addresses of the caller's client. It returns an error if
// none of them accepts a connection within the timeout.
func (c *cluster) dialAddresses(ctx context.Context, trouble *trouble) error {
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
					_ = conn.Close() //nolint:errcheck // the connection was only a sign of life
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

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Slot returns the hash slot of a key (Redis Cluster specification, "Hash tags").
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return int(crc16(key)) % slots
}

// crc16 returns the CRC-16/XMODEM of s, the checksum in the Cluster specification.
func crc16(s string) uint16 {
	const polynomial = 0x1021
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
