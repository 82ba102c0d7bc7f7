package redisstore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// sharding remembers how wake-ups travel in a Cluster.
type sharding struct {
	configured bool
	sharded    atomic.Bool
	reached    atomic.Bool // the Cluster has answered, and its slots are known

	turn chan struct{} // held by the one who asks; capacity 1
}

// ErrUndetected says that the servers could not be asked yet.
var ErrUndetected = errors.New("the cluster could not be asked for its slots and its pub/sub mode")

// Reached says whether [Store.Detect] has nothing to do.
func (s *Store) Reached() bool { return s.cluster == nil || s.sharding.reached.Load() }

// Detect reaches the Cluster once, until limit at the latest, and finds out whether
// it has sharded pub/sub, as Redisson does, unless that is configured.
// Until then go-redis knows no slots, and would try every node for as long as the
// caller's client allows. Outside a Cluster it does nothing.
func (s *Store) Detect(ctx context.Context, limit time.Time) error {
	if s.Reached() {
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	select {
	case s.sharding.turn <- struct{}{}:
		defer func() { <-s.sharding.turn }()
	case <-ctx.Done():
		return errors.Join(ErrUndetected, context.Cause(ctx))
	}
	if s.Reached() {
		return nil
	}
	err := s.detect(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return errors.Join(ErrUndetected, err)
	}
	s.sharding.reached.Store(true)
	return nil
}

func (s *Store) detect(ctx context.Context) error {
	sharded, err := s.probeSharding(ctx)
	refused := err != nil && !Transient(err) // such as NOPERM: what is configured need not be asked
	if err != nil && !(refused && s.sharding.configured) {
		return err
	}
	if !s.sharding.configured {
		s.sharding.sharded.Store(sharded)
	}
	_, err = s.cluster.MasterForKey(ctx, "") // loads the slots
	return err
}

// probeSharding asks with a client of its own, which heeds the context: the caller's
// may be one that does not.
func (s *Store) probeSharding(ctx context.Context) (bool, error) {
	opts := *s.cluster.Options()
	opts.ContextTimeoutEnabled = true
	opts.PoolSize, opts.MinIdleConns = 1, 0
	probe := redis.NewClusterClient(&opts)
	defer probe.Close() //nolint:errcheck // nothing was entrusted to it
	err := probe.Do(ctx, "pubsub", "shardnumsub").Err()
	if err != nil && !unknownCommand(err) {
		return false, err
	}
	return err == nil, nil
}

// unknownCommand says whether a server is too old for a command or subcommand.
func unknownCommand(err error) bool {
	text := strings.ToLower(err.Error())
	return strings.HasPrefix(text, "err unknown")
}

// Sharded says whether wake-ups travel by SPUBLISH.
func (s *Store) Sharded() bool { return s.cluster != nil && s.sharding.sharded.Load() }

// CountsOneNode says whether the number of subscribers that were told is that of
// one node only: a Cluster with classic pub/sub.
func (s *Store) CountsOneNode() bool { return s.cluster != nil && !s.Sharded() }
