package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Config says how the scripts of a Store travel.
type Config struct {
	wire.Config

	// RenewTimeout is how long a renewal may take.
	RenewTimeout time.Duration
	// Sharded says how wake-ups travel in a Cluster; nil asks the servers.
	Sharded *bool
}

// Store runs the scripts on one Redis: a single server, a Sentinel's master or a
// Cluster. It is safe for concurrent use.
type Store struct {
	cfg        Config
	wire       *wire.Redis
	kinds      Kinds
	inspection script               // of a key of any kind
	single     *redis.Client        // a clone of the caller's; nil in a Cluster
	cluster    *redis.ClusterClient // the caller's; nil outside
	sharded    atomic.Bool          // in a Cluster: wake-ups travel by SPUBLISH
	keyByKey   atomic.Bool          // outside a Cluster: a script over several keys was refused; see [wire.Apart]
}

// New makes a Store on the caller's client, which stays the caller's to close.
func New(rdb redis.UniversalClient, cfg Config) (*Store, error) {
	way, err := wire.New(rdb, cfg.Config)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, wire: way, kinds: NewKinds(), inspection: inspection()}
	s.sharded.Store(cfg.Sharded != nil && *cfg.Sharded)
	switch client := rdb.(type) {
	case *redis.Client:
		s.single = s.clone(client)
	case *redis.ClusterClient:
		s.cluster = client
	}
	return s, nil
}

// ErrUndetected says that the servers could not be asked yet.
var ErrUndetected = errors.New("the cluster could not be asked for its slots and its pub/sub mode")

// Reached reports whether [Store.Detect] has nothing to do.
func (s *Store) Reached() bool { return s.wire.Reached() }

// Detect reaches a Cluster once, until limit at the latest, and finds out whether it has sharded pub/sub, as
// Redisson does, unless that is configured. See [wire.Redis.Reach].
func (s *Store) Detect(ctx context.Context, limit time.Time) error {
	err := s.wire.Reach(ctx, limit, func(ctx context.Context, probe *redis.ClusterClient) error {
		sharded, err := hasSharding(ctx, probe)
		switch {
		case s.cfg.Sharded == nil && err == nil:
			s.sharded.Store(sharded)
		case s.cfg.Sharded != nil && err != nil && !wire.Transient(err):
			return nil // such as NOPERM: what is configured need not be asked
		}
		return err
	})
	if err != nil {
		return errors.Join(ErrUndetected, s.advised(err))
	}
	return nil
}

func hasSharding(ctx context.Context, probe redis.UniversalClient) (bool, error) {
	err := probe.Do(ctx, "pubsub", "shardnumsub").Err()
	if err != nil && !wire.UnknownCommand(err) {
		return false, err
	}
	return err == nil, nil
}

// Sharded reports whether wake-ups travel by SPUBLISH.
func (s *Store) Sharded() bool { return s.cluster != nil && s.sharded.Load() }

// CountsOneNode reports whether the number of subscribers that were notified is that of
// one node only: a Cluster with classic pub/sub.
func (s *Store) CountsOneNode() bool { return s.cluster != nil && !s.Sharded() }

// Kinds are the kinds of lock. They are the same for the whole life of the Store.
func (s *Store) Kinds() Kinds { return s.kinds }

// Close stops what the Store started.
func (s *Store) Close() error {
	s.wire.Close()
	return nil
}

// Ping asks the server that owns key whether it answers, on the way of the locks.
func (s *Store) Ping(ctx context.Context, key string) error {
	return s.advised(s.wire.Ping(ctx, key, time.Now().Add(s.cfg.Timeout)))
}

// GaveUp notes that an operation on key was tried for the timeout, and ended with err: if
// the node has said nothing since, it is silent.
func (s *Store) GaveUp(key string, err error) { s.wire.GaveUp(key, err) }

// node is the master that owns key.
func (s *Store) node(ctx context.Context, key string) (*redis.Client, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	node, err := s.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.clone(node), nil
}

// clone returns a client on the pool of another one, with the timeout of the Config and without its Limiter: that
// is for the commands of the business.
func (s *Store) clone(client *redis.Client) *redis.Client {
	clone := client.WithTimeout(s.cfg.Timeout)
	clone.Options().Limiter = nil // of its own copy
	return clone
}

// apartKeys reports whether a script may have the keys of one lock only: in a Cluster, where a script over
// several locks fails while their slot moves, and after an endpoint has refused such a script.
func (s *Store) apartKeys() bool { return s.cluster != nil || s.keyByKey.Load() }

// Clustered reports whether keys live on the nodes of a Cluster.
func (s *Store) Clustered() bool { return s.cluster != nil }

// Failover reports whether a Sentinel says which server is the master.
func (s *Store) Failover() bool { return s.wire.Failover() }

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
