package wire

import (
	"context"
	"fmt"
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
	// Timeout is how long a node may answer nothing at all before it counts as silent. A command may take
	// longer, up to the limit that its caller gives.
	Timeout time.Duration
	// Replication applies to calls that replicas have to acknowledge; see [Call.Acknowledge].
	Replication Replication
	// Owner is the client after which connections are named; empty: they keep the name of the caller's
	// client.
	Owner string
	// Reports are called for silent nodes.
	Reports Reports
}

// Redis is the way to one Redis: a single server, the master that Sentinels name, or a Cluster. It is safe for
// concurrent use.
type Redis struct {
	cfg     Config
	client  redis.UniversalClient
	hooks   hooks    // hooks of the caller's client
	single  *node    // nil in a Cluster
	cluster *cluster // nil outside a Cluster

	credentials *credentials
	sentinels   *sentinels // nil: no Sentinel names the master

	// era counts how often all connections have to be replaced: at new credentials, and when Sentinels
	// name another master.
	era atomic.Int64
}

// New makes the way to the Redis of the caller's client, which the caller closes.
func New(rdb redis.UniversalClient, cfg Config) (*Redis, error) {
	r := &Redis{cfg: cfg, client: rdb}
	switch client := rdb.(type) {
	case *redis.Client:
		if client == nil {
			return nil, fmt.Errorf("%w: nil *redis.Client", ErrClient)
		}
		r.credentials = r.newCredentials(client.Options().StreamingCredentialsProvider)
		r.hooks = hooksOf(client)
		o := r.newOrigin("", client.Options())
		if r.Failover() {
			o.sentinels = newSentinels(o.dialer, &r.era)
			r.sentinels = o.sentinels
		}
		r.single = newNode(o, client.Options(), cfg.Replication, newReplicas(1))
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
		replicas := newReplicas(slots)
		r.cluster = newCluster(client, cfg.Timeout, func(opts *redis.Options) *node {
			return newNode(r.newOrigin(opts.Addr, opts), opts, cfg.Replication, replicas)
		})
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

// newOrigin makes the origin of the connections to the server of some options. Reports carry the name
// of the server.
func (r *Redis) newOrigin(name string, opts *redis.Options) *origin {
	o := &origin{timeout: r.cfg.Timeout, maxAge: max(opts.ConnMaxLifetime, 0), dialer: newDialer(opts, r.cfg.Timeout), era: &r.era}
	o.dialer.credentials, o.dialer.owner = r.credentials, r.cfg.Owner
	o.health = newHealth(name, r.cfg.Timeout, r.cfg.Reports)
	return o
}

// ofSentinels reports whether redis.NewFailoverClusterClient has made a client. Only the name of the
// function that returns its slots shows that.
func ofSentinels(client *redis.ClusterClient) bool {
	slots := client.Options().ClusterSlots
	return slots != nil && strings.Contains(runtime.FuncForPC(reflect.ValueOf(slots).Pointer()).Name(), "NewFailoverClusterClient")
}

// Failover reports whether a Sentinel names the master.
func (r *Redis) Failover() bool {
	client, single := r.client.(*redis.Client)
	return single && client.Options().Addr == "FailoverClient" // the name that go-redis gives it
}

// Clustered reports whether keys live on the nodes of a Cluster.
func (r *Redis) Clustered() bool { return r.cluster != nil }

// Era changes when the connections that were made before should be left; see [Redis].
func (r *Redis) Era() int64 { return r.era.Load() }

// Close ends everything that the Redis started.
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

// node returns the master of a key. An error comes from a Cluster; see [cluster.of].
func (r *Redis) node(key string) (*node, error) {
	if r.cluster != nil {
		return r.cluster.of(key)
	}
	return r.single, nil
}

// slot returns the slot of the key in a Cluster.
func (r *Redis) slot(key string) int {
	if r.cluster == nil {
		return 0
	}
	return Slot(key)
}

// Ping asks the master of a key for an answer, on the connections of the locks. No hook sees it.
func (r *Redis) Ping(ctx context.Context, key string, limit time.Time) error {
	n, err := r.node(key)
	if err != nil {
		return err
	}
	if _, err = n.lines.ask(ctx, limit, "ping"); FateOf(err) == Answered {
		n.health.answered()
	}
	return n.health.explain(err)
}

// GaveUp notes that an operation on key was tried until its timeout and ended with err. If the node
// has not answered since, it is silent.
func (r *Redis) GaveUp(key string, err error) {
	if n, unrouted := r.node(key); unrouted == nil {
		n.lines.gaveUp(err)
	}
}

// Reached reports whether [Redis.Reach] has nothing left to do.
func (r *Redis) Reached() bool { return r.cluster == nil || r.cluster.reached.Load() }

// Reach reaches the Cluster once, until limit at the latest. It calls ask with a client that obeys
// its context, and loads the slots. Before that go-redis knows no slots, and would try every node for
// as long as the caller's client allows. Reach takes many round trips, and ends when no node answers.
// Outside a Cluster it does nothing.
func (r *Redis) Reach(ctx context.Context, limit time.Time, ask func(ctx context.Context, probe *redis.ClusterClient) error) error {
	if r.Reached() {
		return nil
	}
	return r.cluster.reachBy(ctx, limit, ask)
}

// Probe makes a client for questions to the nodes of a Cluster. It obeys the context; the caller's
// client may not.
func (r *Redis) Probe() *redis.ClusterClient { return r.cluster.probe() }
