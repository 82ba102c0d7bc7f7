package clusters_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// A slot moves while readers have the lock. Renewals and releases are not refused, also if a timeout key has moved
// first. A missing timeout key does not count as a dead reader then.
func TestCluster_ReadersOnASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	const key = "{moving}map"
	locks := locktest.ClusterClient(t, cluster)
	other := locktest.ClusterClient(t, cluster)
	lock := locks.ReadLock(key)
	ctx, one := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, two := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))
	_, three := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(time.Minute))

	move := cluster.BeginMove(key)
	locktest.Must(t, one.Refresh(t.Context(), 2*time.Minute)) // all keys are still on the old node
	move.Keys(locktest.ReaderTimeoutOf(key, two.Field(), "1"))
	locktest.MustRelease(t, three) // a reader whose key has moved first is not dead
	for _, l := range []core.Lock{other.WriteLock(key), other.ReadLock(key)} {
		_, _, err := l.Acquire(t.Context(), core.WaitTime(100*time.Millisecond))
		if err == nil {
			t.Errorf("acquired from a slot on the move")
		}
	}
	move.Keys(key, locktest.ReaderTimeoutOf(key, one.Field(), "1"))
	_, _, err := other.WriteLock(key).Acquire(t.Context(), core.WaitTime(0))
	locktest.WantErr(t, err, core.ErrNotAcquired)
	_, again := locktest.MustAcquire(t, ctx, lock)
	locktest.MustRelease(t, again)
	locktest.Must(t, two.Refresh(t.Context(), 3*time.Minute))
	locktest.MustRelease(t, two)
	move.End()
	writing := locktest.GoAcquire(t.Context(), other.WriteLock(key))
	locktest.AwaitWaiters(t, other, 1)
	locktest.MustRelease(t, one)
	locktest.MustRelease(t, locktest.Got(t, writing).Hold)
	locktest.Must(t, locks.ReadLock(key).Do(context.Background(), func(context.Context) error { return nil }))
	if keys := append(move.Left(), move.Arrived()...); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

// While the timeout key of a reader is on another node than the lock, its TTL is unknown. A command that extends the
// lease waits until it can extend this key, too.
func TestCluster_LeaseOfAReaderWhoseKeysAreApart(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	locks := locktest.ClusterClient(t, cluster)
	for name, longer := range map[string]func(ctx context.Context, hold *core.Hold, lock core.Lock) error{
		"refresh": func(_ context.Context, hold *core.Hold, _ core.Lock) error {
			return hold.Refresh(context.Background(), time.Minute)
		},
		"re-entry": func(ctx context.Context, _ *core.Hold, lock core.Lock) error {
			_, inner, err := lock.Acquire(ctx, core.LeaseTime(time.Minute))
			if err != nil {
				return err
			}
			return inner.Release(context.Background())
		},
	} {
		lock := locks.ReadLock(name)
		ctx, hold := locktest.MustAcquire(t, t.Context(), lock, core.LeaseTime(20*time.Second))
		move := cluster.BeginMove(name)
		move.Keys(name)
		done := make(chan error, 1)
		go func() { done <- longer(ctx, hold, lock) }()
		before := tryAgains(t, cluster)
		locktest.Eventually(t, "an answer", func() bool { return len(done) > 0 || tryAgains(t, cluster) != before })
		move.End()
		locktest.Must(t, <-done)
		ttl := move.To.Client().PTTL(t.Context(), locktest.ReaderTimeoutOf(name, hold.Field(), "1")).Val()
		if left := hold.Remaining(); ttl < left {
			t.Errorf("%s: a lease of %s, of which others see %s", name, left, ttl)
		}
		locktest.MustRelease(t, hold)
	}
}

// The lease of a writer is kept with the lock. It counts while the slot moves, also if the timeout key of the reader
// inside is still on the old node.
func TestCluster_WriterWithAReaderInsideOnASlotOnTheMove(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t)
	const key = "{moving}map"
	locks, other := locktest.ClusterClient(t, cluster), locktest.ClusterClient(t, cluster)
	writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock(key), core.LeaseTime(time.Minute))
	_, r := locktest.MustAcquire(t, writing, locks.ReadLock(key), core.LeaseTime(time.Hour))
	_, r = r.Handover()
	move := cluster.BeginMove(key)
	move.Keys(key)
	locktest.Must(t, w.Refresh(t.Context(), 2*time.Minute))
	_, _, err := other.ReadLock(key).Acquire(t.Context(), core.WaitTime(0))
	if e := locktest.NotAcquired(t, err); e.BlockedBy != w.Field() || e.RetryAfter > 2*time.Minute {
		t.Errorf("holder: %+v, want the writer with the rest of its lease", e)
	}
	locktest.MustRelease(t, w)
	move.Keys(locktest.ReaderTimeoutOf(key, r.Field(), "1"))
	move.End()
	_, beside := locktest.MustAcquire(t, t.Context(), other.ReadLock(key), core.WaitTime(time.Minute))
	locktest.MustRelease(t, beside)
	locktest.MustRelease(t, r)
	if keys := append(move.Left(), move.Arrived()...); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}
