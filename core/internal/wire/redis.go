package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// Config says how commands travel.
type Config struct {
	// Timeout is how long one command may take on the wire, and how long a node may say
	// nothing at all before it counts as silent.
	Timeout time.Duration
	// Replication is what replicas have to do with commands that want it; see [Call.Acknowledged].
	Replication Replication
	// Owner is the client after which connections are named; empty: they have no name of ours.
	Owner string
	// Reports are called for silent nodes.
	Reports Reports
}

// Redis is the way to one Redis: a single server, the master that Sentinels name, or a Cluster. It is safe for
// concurrent use.
type Redis struct {
	cfg     Config
	client  redis.UniversalClient
	hooks   hooks    // of the caller's client
	single  *node    // nil in a Cluster
	cluster *cluster // nil outside

	credentials *credentials
	sentinels   *sentinels // nil: no Sentinel names the master

	// era counts how often all connections have to be replaced: at new credentials, and when Sentinels
	// name another master.
	era atomic.Int64
}

// ErrClient refuses a client on which locks cannot be correct.
var ErrClient = errors.New("unsupported redis client")

// New makes the way to the Redis of the caller's client, which stays the caller's to close.
func New(rdb redis.UniversalClient, cfg Config) (*Redis, error) {
	r := &Redis{cfg: cfg, client: rdb}
	switch client := rdb.(type) {
	case *redis.Client:
		if client == nil {
			return nil, fmt.Errorf("%w: nil *redis.Client", ErrClient)
		}
		r.credentials = r.newCredentials(client.Options().StreamingCredentialsProvider)
		r.hooks = hooksOf(client)
		r.single = r.newNode("", client.Options(), newReplicas(1))
		if r.Failover() {
			r.sentinels = newSentinels(r.single.dialer, &r.era)
		}
	case *redis.ClusterClient:
		if client == nil {
			return nil, fmt.Errorf("%w: nil *redis.ClusterClient", ErrClient)
		}
		if ofSentinels(client) {
			return nil, fmt.Errorf("%w: a client of redis.NewFailoverClusterClient takes the servers behind Sentinels for a Redis Cluster; "+
				"use redis.NewFailoverClient, or redis.NewUniversalClient without IsClusterMode, RouteByLatency and RouteRandomly", ErrClient)
		}
		r.credentials = r.newCredentials(client.Options().StreamingCredentialsProvider)
		r.hooks = hooksOfCluster(client)
		r.cluster = newCluster(r, client)
	case *redis.Ring:
		return nil, fmt.Errorf("%w: *redis.Ring moves a held key to another shard when a node comes or goes; "+
			"use a *redis.Client or a *redis.ClusterClient", ErrClient)
	default:
		return nil, fmt.Errorf("%w: %T; use a *redis.Client (redis.NewClient, redis.NewFailoverClient) or a *redis.ClusterClient",
			ErrClient, rdb)
	}
	return r, nil
}

func (r *Redis) newCredentials(provider auth.StreamingCredentialsProvider) *credentials {
	return newCredentials(provider, func() { r.era.Add(1) })
}

// ofSentinels reports whether redis.NewFailoverClusterClient has made a client. Only the name of the function
// that gives its slots shows that.
func ofSentinels(client *redis.ClusterClient) bool {
	slots := client.Options().ClusterSlots
	return slots != nil && strings.Contains(runtime.FuncForPC(reflect.ValueOf(slots).Pointer()).Name(), "NewFailoverClusterClient")
}

// Failover reports whether a Sentinel says which server is the master.
func (r *Redis) Failover() bool {
	client, single := r.client.(*redis.Client)
	return single && client.Options().Addr == "FailoverClient" // the name that go-redis gives it
}

// Clustered reports whether keys live on the nodes of a Cluster.
func (r *Redis) Clustered() bool { return r.cluster != nil }

// Era changes when connections that are made before that should be left; see [Redis].
func (r *Redis) Era() int64 { return r.era.Load() }

// Close ends what the Redis started.
func (r *Redis) Close() {
	if r.sentinels != nil {
		r.sentinels.close()
	}
	if r.cluster != nil {
		r.cluster.close()
	} else {
		r.single.close()
	}
	r.credentials.close()
}

// node returns the master of a key. An error is that of a Cluster; see [cluster.of].
func (r *Redis) node(key string) (*node, error) {
	if r.cluster != nil {
		return r.cluster.of(key)
	}
	return r.single, nil
}

// slot is where the key is in a Cluster.
func (r *Redis) slot(key string) int {
	if r.cluster == nil {
		return 0
	}
	return Slot(key)
}

// Ping asks the master of a key whether it answers, on the way of the locks. No hook sees it.
func (r *Redis) Ping(ctx context.Context, key string, limit time.Time) error {
	n, err := r.node(key)
	if err != nil {
		return err
	}
	if _, err = n.ask(ctx, limit, "ping"); FateOf(err) == Answered {
		n.health.answered()
	}
	return n.health.explain(err)
}

// ask sends a command that no hook sees, and waits for its reply. It sends the command again where the connection hangs.
func (n *node) ask(ctx context.Context, limit time.Time, args ...any) (c *command, err error) {
	for try := 0; try == 0 || hangs(err) && try < mostAttempts; try++ {
		c = internal(nil, args...)
		c.node, c.at = n, time.Now()
		n.health.sent(c.at)
		c.prepare(within(ctx, limit))
		if err = n.lines.submit(c); err == nil {
			err = c.await(ctx, limit)
		}
	}
	return c, err
}

// GaveUp notes that an operation on key was tried for the timeout, and ended with err: if
// the node has said nothing since, it is silent.
func (r *Redis) GaveUp(key string, err error) {
	if n, unrouted := r.node(key); unrouted == nil {
		n.lines.gaveUp(err)
	}
}

// node is the way to one server.
type node struct {
	redis   *Redis
	timeout time.Duration
	maxAge  time.Duration // of a connection; 0: none
	dialer  *dialer
	health  *health
	lines   *lines
	acker   *acker                // nil: no replica has to acknowledge anything
	hooks   atomic.Pointer[hooks] // of a node of a Cluster; nil: there are none
}

// newNode makes the way to the server of some options. The name of the node is for reports.
func (r *Redis) newNode(name string, opts *redis.Options, replicas *replicas) *node {
	n := &node{redis: r, timeout: r.cfg.Timeout, maxAge: max(opts.ConnMaxLifetime, 0), dialer: newDialer(opts, r.cfg.Timeout)}
	n.dialer.credentials, n.dialer.owner = r.credentials, r.cfg.Owner
	n.health = newHealth(name, r.cfg.Timeout, r.cfg.Reports)
	n.lines = newLines(n, pipelineBound(opts.AutoPipelineOptions))
	if r.cfg.Replication.Acks != NoAcks {
		n.acker = newAcker(n, max(1, opts.PoolSize/2), replicas)
	}
	return n
}

// pipeline begins to connect a pipeline.
func (n *node) pipeline(bound int, trip *atomic.Int64, watch func()) *pipeline {
	p := &pipeline{bound: bound, watch: watch, health: n.health}
	p.flow.trip = trip
	p.era.Store(n.redis.era.Load())
	p.connect = func(ctx context.Context) (net.Conn, error) {
		if s := n.redis.sentinels; s != nil {
			p.progress.within(n.dialer.answerTime())
			s.ask(ctx)
			p.progress.none()
		}
		p.era.Store(n.redis.era.Load())
		conn, err := n.dialer.connect(ctx, &p.progress)
		if s := n.redis.sentinels; s != nil && err == nil {
			p.named.Store(s.names(conn))
		}
		return conn, err
	}
	p.start()
	return p
}

// old reports whether new commands should take another pipeline: the server is not the master any more, the
// credentials have changed, Sentinels have not confirmed the master for a while, or the connection is as old as
// the caller's client lets its own get.
func (n *node) old(p *pipeline, now time.Time) bool {
	switch {
	case p.flow.old.Load(), p.era.Load() != n.redis.era.Load():
		return true
	case n.maxAge > 0 && now.Sub(p.born) > n.maxAge:
		return true
	default:
		return n.redis.sentinels != nil && n.redis.sentinels.unsure(p.born, now, p.named.Load())
	}
}

// close ends what goes on to the node.
func (n *node) close() {
	n.lines.close()
	if n.acker != nil {
		n.acker.life.close()
	}
	n.dialer.close()
}
