package redisstore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is what a Store needs to know.
type Config struct {
	// Timeout is how long one command may take on the wire, and how long a node may say
	// nothing at all before it counts as silent.
	Timeout time.Duration
	// RenewTimeout is the same for renewals.
	RenewTimeout time.Duration
	// Replication is what replicas have to do with what gives a lock or prolongs it.
	Replication Replication
	// Sharded says how wake-ups travel in a Cluster; nil asks the servers.
	Sharded *bool
	// Owner is the client after which the connections of pipelines are named; empty: they have no name of ours.
	Owner string
	// Reports are called for silent nodes.
	Reports Reports
}

// Store runs the scripts on one Redis: a single server, a Sentinel's master or a
// Cluster. It is safe for concurrent use.
type Store struct {
	cfg        Config
	kinds      Kinds
	inspection script // of a key of any kind
	routes     *routes
	hooks      hooks                // of the caller's client
	single     *redis.Client        // nil in a Cluster
	renewer    *redis.Client        // single, with the timeout of renewals
	cluster    *redis.ClusterClient // nil outside
	sharding   sharding
	keyByKey   atomic.Bool     // outside a Cluster: a script over several keys was refused; see [Apart]
	over       context.Context //nolint:containedctx // one that has ended, for looks that do not wait
	life       context.Context //nolint:containedctx // of what is done in the background
	end        context.CancelFunc
}

// ErrClient refuses a client on which locks cannot be correct.
var ErrClient = errors.New("unsupported redis client")

// New makes a Store on the caller's client, which stays the caller's to close.
func New(rdb redis.UniversalClient, cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, kinds: NewKinds(), inspection: inspection()}
	s.life, s.end = context.WithCancel(context.Background()) //nolint:forbidigo // its own lifetime
	over, end := context.WithCancel(s.life)
	end()
	s.over = over
	if cfg.Sharded != nil {
		s.sharding.configured = true
		s.sharding.sharded.Store(*cfg.Sharded)
	}
	var err error
	switch client := rdb.(type) {
	case *redis.Client:
		if client == nil {
			return nil, fmt.Errorf("%w: nil *redis.Client", ErrClient)
		}
		s.single = client.WithTimeout(cfg.Timeout)
		s.renewer = client.WithTimeout(cfg.RenewTimeout)
		s.hooks = hooksOf(client)
		s.routes = clientRoutes(client, cfg)
	case *redis.ClusterClient:
		if client == nil {
			return nil, fmt.Errorf("%w: nil *redis.ClusterClient", ErrClient)
		}
		if ofSentinels(client) {
			return nil, fmt.Errorf("%w: a client of redis.NewFailoverClusterClient takes the servers behind Sentinels for a Redis Cluster; "+
				"use redis.NewFailoverClient, or redis.NewUniversalClient without IsClusterMode, RouteByLatency and RouteRandomly", ErrClient)
		}
		s.cluster = client
		s.hooks = hooksOfCluster(client)
		s.routes, err = clusterRoutes(client, cfg)
	case *redis.Ring:
		return nil, fmt.Errorf("%w: *redis.Ring moves a held key to another shard when a node comes or goes; "+
			"use a *redis.Client or a *redis.ClusterClient", ErrClient)
	default:
		return nil, fmt.Errorf("%w: %T; use a *redis.Client (redis.NewClient, redis.NewFailoverClient) or a *redis.ClusterClient",
			ErrClient, rdb)
	}
	if err != nil {
		return nil, fmt.Errorf("the way of redirected commands: %w", err)
	}
	return s, nil
}

// ofSentinels reports whether redis.NewFailoverClusterClient has made a client. Only the name of the function
// that gives its slots shows that.
func ofSentinels(client *redis.ClusterClient) bool {
	slots := client.Options().ClusterSlots
	return slots != nil && strings.Contains(runtime.FuncForPC(reflect.ValueOf(slots).Pointer()).Name(), "NewFailoverClusterClient")
}

// Kinds are the kinds of lock. They are the same for the whole life of the Store.
func (s *Store) Kinds() Kinds { return s.kinds }

// Close stops what the Store started.
func (s *Store) Close() error {
	s.sharding.mu.Lock()
	s.sharding.closed = true
	s.sharding.mu.Unlock()
	s.end()
	s.sharding.worker.Wait()
	s.routes.close()
	return nil
}

// Ping asks the server that owns key whether it answers.
func (s *Store) Ping(ctx context.Context, key string) error {
	node, err := s.node(ctx, key)
	if err != nil {
		return err
	}
	way, err := s.routes.of(key)
	if err != nil {
		return err
	}
	_, done := way.health.waits() // it finds out why, where go-redis takes longer than ctx
	defer done()
	return way.health.explain(node.Ping(ctx).Err())
}

// GaveUp notes that an operation on key was tried for the timeout, and ended with err: if
// the node has said nothing since, it is silent.
func (s *Store) GaveUp(key string, err error) {
	if way, unrouted := s.routes.of(key); unrouted == nil {
		way.health.gaveUp(err)
	}
}

// node is the master that owns key.
func (s *Store) node(ctx context.Context, key string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	node, err := s.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return node.WithTimeout(s.cfg.Timeout), nil
}

// slot is where the key is, in a Cluster.
func (s *Store) slot(key string) int {
	if s.cluster == nil {
		return 0
	}
	return Slot(key)
}

// apartKeys reports whether a script may have the keys of one lock only: in a Cluster, where a script over
// several locks fails while their slot moves, and after an endpoint has refused such a script.
func (s *Store) apartKeys() bool { return s.cluster != nil || s.keyByKey.Load() }

// Clustered reports whether keys live on the nodes of a Cluster.
func (s *Store) Clustered() bool { return s.cluster != nil }

// Failover reports whether a Sentinel says which server is the master.
func (s *Store) Failover() bool {
	return s.cluster == nil && s.single.Options().Addr == "FailoverClient" // the name that go-redis gives it
}

// Database is the number of the database; a Cluster has only the first.
func (s *Store) Database() int {
	if s.cluster != nil {
		return 0
	}
	return s.single.Options().DB
}

// Address returns where Redis is, for people. go-redis does not show the addresses of Sentinels.
func (s *Store) Address() string {
	switch {
	case s.cluster != nil:
		return "Cluster at " + strings.Join(s.cluster.Options().Addrs, ", ")
	case s.Failover():
		return fmt.Sprintf("the master of a Sentinel, database %d", s.Database())
	default:
		return fmt.Sprintf("%s, database %d", s.single.Options().Addr, s.Database())
	}
}

// NodeName tells the nodes of a Cluster apart; empty outside.
func (s *Store) NodeName(ctx context.Context, key string) string {
	if s.cluster == nil {
		return ""
	}
	node, err := s.cluster.MasterForKey(ctx, key)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// publishVerb is an argument ready to be sent.
func (s *Store) publishVerb() any {
	if s.Sharded() {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// countVerb is the command of PUBSUB that counts all subscribers of a channel; empty where none
// does, as in a Cluster with classic pub/sub.
func (s *Store) countVerb() any {
	switch {
	case s.CountsOneNode():
		return ""
	case s.Sharded():
		return "SHARDNUMSUB"
	default:
		return "NUMSUB"
	}
}
