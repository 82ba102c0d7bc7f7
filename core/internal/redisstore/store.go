package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// Config configures how a Store sends its scripts.
type Config struct {
	wire.Config

	// RenewTimeout is the time limit of a renewal.
	RenewTimeout time.Duration
	// Sharded decides whether wake-ups use sharded pub/sub in a Cluster. If it is nil, Detect asks the servers.
	Sharded *bool
	// Notices makes [Store.Rights] include the channels of [Store.NoticeChannel].
	Notices bool
}

// Store runs the scripts on one Redis: a single server, the master of a Sentinel, or a Cluster. It is
// safe for concurrent use.
type Store struct {
	cfg        Config
	wire       *wire.Redis
	kinds      Kinds
	inspection script               // inspects a key of any kind
	single     *redis.Client        // a clone of the caller's client; nil in a Cluster
	cluster    *redis.ClusterClient // the caller's client; nil outside a Cluster
	sharded    atomic.Bool          // in a Cluster: wake-ups are sent by SPUBLISH
	database   atomic.Int64         // in a Cluster: the database that OnConnect selects
	wrote      atomic.Bool          // a script has changed something: the server is a master, or was
	keyByKey   atomic.Bool          // outside a Cluster: a script over several keys was refused; see [wire.Apart]
}

// New returns a Store that uses the caller's client. The caller closes the client.
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

// Reached reports whether [Store.Detect] has nothing left to do.
func (s *Store) Reached() bool { return s.wire.Reached() }

// Detect contacts a Cluster once, before limit. Unless Config.Sharded is set, it detects
// whether the Cluster has sharded pub/sub, as Redisson does. If the caller's client has an OnConnect, Detect finds out
// which database OnConnect selects. See [wire.Redis.Reach].
func (s *Store) Detect(ctx context.Context, limit time.Time) error {
	err := s.wire.Reach(ctx, limit, func(ctx context.Context, probe *redis.ClusterClient) error {
		sharded, err := hasSharding(ctx, probe)
		if s.cluster.Options().OnConnect != nil {
			s.database.Store(databaseOf(ctx, probe))
		}
		switch {
		case s.cfg.Sharded == nil && err == nil:
			s.sharded.Store(sharded)
		case s.cfg.Sharded != nil && err != nil && !wire.Transient(err):
			return nil // an error such as NOPERM: the mode is configured, so the answer is not needed
		}
		return err
	})
	if err != nil {
		return errors.Join(ErrUndetected, addAdvice(err, s.Clustered()))
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

// databaseOf returns the number of the database that a client uses. It returns 0 if the server does not show the number,
// because it is too old or the user has no right to CLIENT INFO.
func databaseOf(ctx context.Context, probe redis.UniversalClient) int64 {
	info, err := probe.Do(ctx, "client", "info").Text()
	if err != nil {
		return 0
	}
	for field := range strings.FieldsSeq(info) {
		if number, is := strings.CutPrefix(field, "db="); is {
			n, _ := strconv.ParseInt(number, 10, 32) //nolint:errcheck // 0 if it is not a number
			return n
		}
	}
	return 0
}

// Sharded reports whether wake-ups are sent by SPUBLISH.
func (s *Store) Sharded() bool { return s.cluster != nil && s.sharded.Load() }

// CountsOneNode reports whether PUBLISH counts the subscribers of one node only, as in a
// Cluster with classic pub/sub.
func (s *Store) CountsOneNode() bool { return s.cluster != nil && !s.Sharded() }

// Kinds returns the kinds of lock. They stay the same for the life of the Store.
func (s *Store) Kinds() Kinds { return s.kinds }

// Close stops everything that the Store started.
func (s *Store) Close() error {
	s.wire.Close()
	return nil
}

// Ping asks the server that owns key for an answer, on the connections of the locks. If no Sentinel and no Cluster names
// the master, and no lock was acquired yet, it also asks whether the server is a replica.
func (s *Store) Ping(ctx context.Context, key string) error {
	if err := s.wire.Ping(ctx, key, time.Now().Add(s.cfg.Timeout)); err != nil {
		return addAdvice(err, s.Clustered())
	}
	if s.fixed() && !s.wrote.Load() && s.wire.IsReplica(ctx, time.Now().Add(s.cfg.Timeout)) {
		return errReplica
	}
	return nil
}

// RecordTimeout records that an operation on key timed out with err. If the node has not answered since, it
// counts as silent.
func (s *Store) RecordTimeout(key string, err error) { s.wire.RecordTimeout(key, err) }

// node returns a client of the master that owns key.
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

// clone returns a client on the pool of another one, with the timeout of the Config. The clone has
// no Limiter, because a Limiter is meant for the commands of the application.
func (s *Store) clone(client *redis.Client) *redis.Client {
	clone := client.WithTimeout(s.cfg.Timeout)
	clone.Options().Limiter = nil // WithTimeout copied the options
	return clone
}

// oneLockPerScript reports whether a script may use the keys of one lock only. This is the case in a
// Cluster, where a script over several locks fails while their slot moves, and after an endpoint
// refused such a script.
func (s *Store) oneLockPerScript() bool { return s.cluster != nil || s.keyByKey.Load() }

// Clustered reports whether keys live on the nodes of a Cluster.
func (s *Store) Clustered() bool { return s.cluster != nil }

// Failover reports whether a Sentinel names the master.
func (s *Store) Failover() bool { return s.wire.Failover() }

// Database returns the number of the database. In a Cluster it is 0 until the Cluster was reached, and the number may
// differ from 0 only if OnConnect selects another database (Valkey 9).
func (s *Store) Database() int {
	if s.cluster != nil {
		return int(s.database.Load())
	}
	return s.single.Options().DB
}

// Address returns a human-readable address of Redis. go-redis does not reveal the addresses of
// Sentinels.
func (s *Store) Address() string {
	switch nodes := "Cluster at "; {
	case s.cluster != nil && s.Database() != 0:
		return fmt.Sprintf("%s%s, database %d", nodes, strings.Join(s.cluster.Options().Addrs, ", "), s.Database())
	case s.cluster != nil:
		return nodes + strings.Join(s.cluster.Options().Addrs, ", ")
	case s.Failover():
		return fmt.Sprintf("the master of a Sentinel, database %d", s.Database())
	default:
		return fmt.Sprintf("%s, database %d", s.single.Options().Addr, s.Database())
	}
}

// NodeName returns the name of the Cluster node that owns key. It is empty outside a Cluster.
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

// publishVerb returns the command that publishes, as an argument of a script.
func (s *Store) publishVerb() any {
	if s.Sharded() {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// countVerb returns the PUBSUB subcommand that counts all subscribers of a channel. It is empty in a
// Cluster with classic pub/sub, where no subcommand counts all of them.
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

// call prepares a script. args are the arguments of EVALSHA after the digest: the number of keys, the
// keys, the rest. key is the first of the keys.
func (s *Store) call(now time.Time, sc *script, key string, args ...any) wire.Call {
	if sc.sharded != nil && s.Sharded() {
		sc = sc.sharded
	}
	return s.wire.Call(now, sc.Script, key, args...)
}

// learn reports whether err shows that a script may use the keys of one lock only. If so, it
// records that permanently.
func (s *Store) learn(err error) bool {
	if s.cluster != nil || !wire.Apart(err) {
		return false
	}
	s.keyByKey.Store(true)
	return true
}
