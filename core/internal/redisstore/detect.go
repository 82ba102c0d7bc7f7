package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// sharding remembers how wake-ups travel in a Cluster.
type sharding struct {
	configured bool
	sharded    atomic.Bool
	reached    atomic.Bool // the Cluster has answered, and its slots are known

	mu     sync.Mutex
	flight *flight // under way; nil: none
	closed bool
	worker sync.WaitGroup
}

// flight is one attempt to reach the Cluster. Who wants it waits for it for as long as he
// likes; it goes on for the others.
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

// ErrUndetected says that the servers could not be asked yet.
var ErrUndetected = errors.New("the cluster could not be asked for its slots and its pub/sub mode")

// Reached reports whether [Store.Detect] has nothing to do.
func (s *Store) Reached() bool { return s.cluster == nil || s.sharding.reached.Load() }

// Detect reaches the Cluster once, until limit at the latest, and finds out whether
// it has sharded pub/sub, as Redisson does, unless that is configured.
// Until then go-redis knows no slots, and would try every node for as long as the
// caller's client allows. It takes many round trips, and ends when no node answers.
// Outside a Cluster it does nothing.
func (s *Store) Detect(ctx context.Context, limit time.Time) error {
	if s.Reached() {
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, limit, errNoAnswer)
	defer cancel()
	f := s.detecting()
	select {
	case <-f.done:
		if s.Reached() {
			return nil
		}
		return errors.Join(ErrUndetected, s.advised(f.err))
	case <-ctx.Done():
		return errors.Join(ErrUndetected, f.trouble.explain(&interruptedError{context.Cause(ctx)}))
	}
}

// detecting is the flight that is under way, or a new one.
func (s *Store) detecting() *flight {
	sh := &s.sharding
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.flight != nil {
		return sh.flight
	}
	f := &flight{done: make(chan struct{})}
	if sh.closed {
		f.land(redis.ErrClosed)
		return f
	}
	sh.flight = f
	sh.worker.Go(func() { s.fly(f) })
	return f
}

// fly detects beside somebody who finds out that no node answers, which go-redis may take
// long to.
func (s *Store) fly(f *flight) {
	ctx, cancel := context.WithCancelCause(s.life)
	defer cancel(nil)
	dials := newDialing(leastDialing * len(s.cluster.Options().Addrs))
	entries := s.entries(dials, &f.trouble, func(err error) {
		f.land(err)
		cancel(err)
	})
	err := s.detect(ctx)
	for _, h := range entries {
		h.close()
	}
	dials.close(s.cfg.Timeout)
	s.sharding.reached.Store(err == nil)
	s.sharding.mu.Lock()
	s.sharding.flight = nil
	s.sharding.mu.Unlock()
	f.land(err)
}

// entries asks all the addresses that the caller's client was given, and says when none
// answers.
func (s *Store) entries(dials *dialing, shared *trouble, silent func(err error)) []*health {
	opts := s.cluster.Options()
	var left atomic.Int64
	left.Store(int64(len(opts.Addrs)))
	all := make([]*health, 0, len(opts.Addrs))
	for _, addr := range opts.Addrs {
		reports := Reports{Silent: func(_ string, cause error) {
			if left.Add(-1) == 0 {
				silent(cause)
			}
		}, Answers: func(string) { left.Add(1) }}
		h := newHealth(addr, Config{Timeout: s.cfg.Timeout, Reports: reports}, entryOf(opts, addr, dials))
		h.trouble = shared
		h.slow.Add(1) // whoever detects waits
		h.doubt()
		all = append(all, h)
	}
	return all
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

// probeSharding asks whether the servers have sharded pub/sub.
func (s *Store) probeSharding(ctx context.Context) (bool, error) {
	probe := s.probe()
	defer probe.Close() //nolint:errcheck // nothing was entrusted to it
	return hasSharding(ctx, probe)
}

// probe is a client of its own for questions, which heeds the context: the caller's may be
// one that does not.
func (s *Store) probe() *redis.ClusterClient {
	opts := *s.cluster.Options()
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = s.cfg.Timeout, s.cfg.Timeout, s.cfg.Timeout
	opts.PoolSize, opts.MinIdleConns = 1, 0
	return redis.NewClusterClient(&opts)
}

func hasSharding(ctx context.Context, probe redis.UniversalClient) (bool, error) {
	err := probe.Do(ctx, "pubsub", "shardnumsub").Err()
	if err != nil && !unknownCommand(err) {
		return false, err
	}
	return err == nil, nil
}

// unknownCommand reports whether a server is too old for a command or subcommand.
func unknownCommand(err error) bool {
	means := meaningOf(err)
	return means == noCommand || means == unsupported
}

// Sharded reports whether wake-ups travel by SPUBLISH.
func (s *Store) Sharded() bool { return s.cluster != nil && s.sharding.sharded.Load() }

// CountsOneNode reports whether the number of subscribers that were notified is that of
// one node only: a Cluster with classic pub/sub.
func (s *Store) CountsOneNode() bool { return s.cluster != nil && !s.Sharded() }
