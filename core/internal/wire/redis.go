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

// Config configures a [Redis].
type Config struct {
	// Timeout is the time without any answer after which a node counts as silent. A command may take
	// longer, up to the limit that its caller sets.
	Timeout time.Duration
	// Replication applies to calls that replicas have to acknowledge; see [Call.Acknowledge].
	Replication Replication
	// Owner is the ID of the client that owns the connections. Their names contain it. If Owner
	// is empty, the connections keep the name that the caller's client sets.
	Owner string
	// Reports holds the functions that are called for silent nodes.
	Reports Reports
}

// Redis sends commands to one Redis: a single server, the master that Sentinels name, or a Cluster. It is safe
// for concurrent use.
type Redis struct {
	cfg     Config
	client  redis.UniversalClient
	hooks   hooks    // hooks of the caller's client
	single  *node    // nil in a Cluster
	cluster *cluster // nil outside a Cluster

	credentials *credentials
	sentinels   *sentinels // nil: no Sentinel names the master

	// era counts the events after which all connections have to be replaced: the credentials changed, or
	// the Sentinels name another master.
	era atomic.Int64
}

// New returns a Redis for the server or Cluster of the caller's client. The caller closes the client.
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
		if fromSentinels(client) {
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

// newOrigin returns the origin of the connections to a server. Reports contain the name of the server.
func (r *Redis) newOrigin(name string, opts *redis.Options) *origin {
	o := &origin{timeout: r.cfg.Timeout, maxAge: max(opts.ConnMaxLifetime, 0), dialer: newDialer(opts, r.cfg.Timeout), era: &r.era}
	o.dialer.credentials, o.dialer.owner = r.credentials, r.cfg.Owner
	o.health = newHealth(name, r.cfg.Timeout, r.cfg.Reports)
	return o
}

// fromSentinels reports whether redis.NewFailoverClusterClient created the client. Only the name of the
// function that returns its slots shows that.
func fromSentinels(client *redis.ClusterClient) bool {
	slots := client.Options().ClusterSlots
	return slots != nil && strings.Contains(runtime.FuncForPC(reflect.ValueOf(slots).Pointer()).Name(), "NewFailoverClusterClient")
}

// Failover reports whether a Sentinel names the master.
func (r *Redis) Failover() bool {
	client, single := r.client.(*redis.Client)
	return single && client.Options().Addr == "FailoverClient" // go-redis sets this address for every failover client
}

// Era returns a number that changes when all earlier connections should be replaced; see [Redis].
func (r *Redis) Era() int64 { return r.era.Load() }

// Close stops everything that the Redis started.
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

// node returns the master of a key. It fails only in a Cluster; see [cluster.nodeOf].
func (r *Redis) node(key string) (*node, error) {
	if r.cluster != nil {
		return r.cluster.nodeOf(key)
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

// Ping sends a PING to the master of a key, on the connections of the locks. No hook sees it.
func (r *Redis) Ping(ctx context.Context, key string, limit time.Time) error {
	n, err := r.node(key)
	if err != nil {
		return err
	}
	if _, err = n.lines.ask(ctx, limit, "ping"); FateOf(err) == Answered {
		n.health.recordAnswer()
	}
	return n.health.explain(err)
}

// IsReplica asks a single server, on the connections of the locks, whether it is a replica. A user needs no right to
// HELLO. A server that does not know it, or does not answer, does not count as a replica.
func (r *Redis) IsReplica(ctx context.Context, limit time.Time) bool {
	if r.single == nil {
		return false
	}
	c, err := r.single.lines.ask(ctx, limit, "hello")
	if err != nil {
		return false
	}
	fields, _ := c.reply.([]any) //nolint:errcheck // another reply has no role
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "role" {
			return fields[i+1] == "replica"
		}
	}
	return false
}

// RecordTimeout records that an operation on key timed out with err. If its node has answered nothing for the
// timeout, the node counts as silent.
func (r *Redis) RecordTimeout(key string, err error) {
	if n, unrouted := r.node(key); unrouted == nil {
		n.lines.recordTimeout(err)
	}
}

// Reached reports whether [Redis.Reach] has nothing left to do.
func (r *Redis) Reached() bool { return r.cluster == nil || r.cluster.reached.Load() }

// Reach contacts the Cluster once, before limit. It calls ask with a client that obeys its context, and
// loads the slots. Without slots go-redis would try every node for as long as the caller's client
// allows. Reach may take many round trips. It fails if no node answers. Outside a Cluster it does
// nothing.
func (r *Redis) Reach(ctx context.Context, limit time.Time, ask askFunc) error {
	if r.Reached() {
		return nil
	}
	return r.cluster.reachBy(ctx, limit, ask)
}

// Probe returns a client for questions to the nodes of a Cluster. It obeys the context; the caller's
// client may not.
func (r *Redis) Probe() *redis.ClusterClient { return r.cluster.probe() }
