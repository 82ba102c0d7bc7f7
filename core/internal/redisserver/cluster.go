package redisserver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// Cluster is a Redis Cluster of masters without replicas.
type Cluster struct {
	// Masters lists the nodes in the order of their slot ranges.
	Masters []*Server

	t     testing.TB
	moved map[int64]*Server // the new owners of moved slots
}

// StartCluster starts a cluster of the given number of masters, three by default. It returns when every node sees a complete
// cluster. That takes two or three seconds, because the nodes have to meet.
func StartCluster(tb testing.TB, masters ...int) *Cluster {
	tb.Helper()
	return Binary{}.StartCluster(tb, masters...)
}

// StartCluster is like [StartCluster], but runs this binary.
func (b Binary) StartCluster(tb testing.TB, masters ...int) *Cluster {
	tb.Helper()
	n := 3
	if len(masters) > 0 {
		n = masters[0]
	}
	return b.StartClusterWith(tb, n)
}

// StartClusterWith is like [StartCluster], but runs this binary with further arguments.
func (b Binary) StartClusterWith(tb testing.TB, masters int, extra ...string) *Cluster {
	tb.Helper()
	c := &Cluster{t: tb, moved: make(map[int64]*Server)}
	nodeArgs := b.clusterArgs(tb)
	args := func(ctx context.Context, port int) ([]string, error) {
		own, err := nodeArgs(ctx, port)
		return append(own, extra...), err
	}
	for range masters {
		c.Masters = append(c.Masters, b.start(tb, args))
	}
	c.assignSlots()
	c.introduce()
	c.awaitComplete()
	c.raiseNodeTimeout()
	return c
}

// raiseNodeTimeout makes the nodes wait a minute before they consider each other failed. The short timeout is only for
// the time in which they meet. Later, a node that gets no processor for two seconds on a busy machine would take the
// cluster down for much longer.
func (c *Cluster) raiseNodeTimeout() {
	c.t.Helper()
	for _, m := range c.Masters {
		c.onNode(m, func(ctx context.Context, rdb *redis.Client) error {
			return rdb.ConfigSet(ctx, "cluster-node-timeout", "60000").Err()
		})
	}
}

// busOffset is the default difference between the bus port and the port of a server. If the bus port is too high or taken,
// the server does not start, and startAnywhere tries another port.
const busOffset = 10_000

func (b Binary) clusterArgs(tb testing.TB) commandLine {
	tb.Helper()
	old := b.isOld(tb)
	return func(ctx context.Context, port int) ([]string, error) {
		args, err := plainArgs(ctx, port)
		args = append(args,
			"--cluster-enabled", "yes",
			"--cluster-config-file", "nodes-"+strconv.Itoa(port)+".conf",
			"--cluster-node-timeout", "2000",
		)
		if err != nil || old {
			return args, err
		}
		bus, err := freePort(ctx)
		return append(args, "--cluster-port", strconv.Itoa(bus)), err
	}
}

// Client returns a new client of the cluster. opts change the defaults of go-redis. When the test ends, the client is closed
// before the nodes are killed.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	c.t.Helper()
	o := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClusterClient(o)
	c.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// NeedSharded skips a test of sharded pub/sub if the servers do not support it.
func (c *Cluster) NeedSharded(tb testing.TB) {
	tb.Helper()
	if !c.Sharded() {
		tb.Skip("redisserver: Redis 6 has no sharded pub/sub")
	}
}

// Sharded reports whether the servers support sharded pub/sub.
func (c *Cluster) Sharded() bool {
	c.t.Helper()
	return !Binary{c.Masters[0].path}.isOld(c.t)
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Masters))
	for i, m := range c.Masters {
		addrs[i] = m.Addr()
	}
	return addrs
}

// Master returns the node that serves key.
func (c *Cluster) Master(key string) *Server {
	c.t.Helper()
	slot := c.slot(key)
	if owner := c.moved[slot]; owner != nil {
		return owner
	}
	for i, m := range c.Masters {
		if first, last := c.slotRange(i); int(slot) >= first && int(slot) <= last {
			return m
		}
	}
	return nil
}

func (c *Cluster) slotRange(i int) (first, last int) {
	n := len(c.Masters)
	return i * slots / n, (i+1)*slots/n - 1
}

func (c *Cluster) assignSlots() {
	c.t.Helper()
	for i, m := range c.Masters {
		first, last := c.slotRange(i)
		c.onNode(m, func(ctx context.Context, rdb *redis.Client) error {
			// Distinct epochs from the start save the nodes from settling a collision.
			if err := rdb.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
				return err
			}
			return rdb.ClusterAddSlotsRange(ctx, first, last).Err()
		})
	}
}

// introduce makes the first node meet the others, which then learn of each other by gossip.
func (c *Cluster) introduce() {
	c.t.Helper()
	for _, m := range c.Masters[1:] {
		c.meet(c.Masters[0], m)
	}
}

func (c *Cluster) meet(node, other *Server) {
	c.t.Helper()
	host, port, _ := net.SplitHostPort(other.Addr())
	bus := c.busPort(other)
	c.onNode(node, func(ctx context.Context, rdb *redis.Client) error {
		return rdb.Do(ctx, "cluster", "meet", host, port, bus).Err()
	})
}

func (c *Cluster) busPort(m *Server) string {
	c.t.Helper()
	var bus string
	c.onNode(m, func(ctx context.Context, rdb *redis.Client) error {
		conf, err := rdb.ConfigGet(ctx, "cluster-port").Result()
		bus = cmp.Or(conf["cluster-port"], strconv.Itoa(m.port+busOffset))
		return err
	})
	return bus
}

// handshake is the maximum time that nodes need to meet with their initial timeout of two seconds. A node that gets no
// processor in that time has to be introduced again.
const handshake = 5 * time.Second

// awaitComplete returns when every node sees a complete cluster. It polls all nodes, because each node has a separate view.
func (c *Cluster) awaitComplete() {
	c.t.Helper()
	introduced := time.Now()
	known := "cluster_known_nodes:" + strconv.Itoa(len(c.Masters)) + "\r\n"
	for _, m := range c.Masters {
		c.onNode(m, func(ctx context.Context, rdb *redis.Client) error {
			info, err := rdb.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, known) {
				return nil
			}
			if time.Since(introduced) > handshake {
				c.introduce()
				introduced = time.Now()
			}
			return errNotComplete
		})
	}
}

var errNotComplete = errors.New("cluster not complete")

// onNode repeats step on the node m until it succeeds.
func (c *Cluster) onNode(m *Server, step func(context.Context, *redis.Client) error) {
	c.t.Helper()
	m.await("cluster", step)
}

// AddReplica starts a replica of master and returns when the replica is in sync.
func (c *Cluster) AddReplica(master *Server) *Server {
	c.t.Helper()
	b := Binary{master.path}
	nodeArgs := b.clusterArgs(c.t)
	s := b.start(c.t, func(ctx context.Context, port int) ([]string, error) {
		args, err := nodeArgs(ctx, port)
		return append(args, "--repl-diskless-sync-delay", "0"), err
	})
	c.meet(s, master)
	introduced := time.Now()
	var id string
	c.onNode(master, func(ctx context.Context, rdb *redis.Client) (err error) {
		id, err = rdb.ClusterMyID(ctx).Result()
		return err
	})
	s.await("replica", func(ctx context.Context, rdb *redis.Client) error {
		if time.Since(introduced) > handshake {
			c.meet(s, master)
			introduced = time.Now()
		}
		return rdb.Do(ctx, "cluster", "replicate", id).Err()
	})
	s.await("replica", infoHas("replication", "master_link_status:up"))
	return s
}

func (c *Cluster) slot(key string) (slot int64) {
	c.t.Helper()
	c.onNode(c.Masters[0], func(ctx context.Context, rdb *redis.Client) (err error) {
		slot, err = rdb.ClusterKeySlot(ctx, key).Result()
		return err
	})
	return slot
}
