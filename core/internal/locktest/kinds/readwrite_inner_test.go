package kinds_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// wantFreeWithin checks that another client gets the write lock within limit.
func wantFreeWithin(b *locktest.Redis, key string, limit time.Duration) {
	b.T.Helper()
	start := time.Now()
	_, next, err := b.Locks().WriteLock(key).Acquire(b.T.Context(), core.WaitTime(2*time.Hour))
	locktest.Must(b.T, err)
	if took := time.Since(start); took > limit {
		b.T.Errorf("no caller got the lock for %s", took)
	}
	locktest.MustRelease(b.T, next)
	b.WantNothing()
}

// A writer that also reads has two leases. The lease of the inner reader may extend the TTL of the lock, but not the
// lease of the writer. When the lease of the writer has expired and the inner reader has released, in either order, the
// lock is free.
func TestReadWrite_InnerReaderDoesNotProlongTheWriter(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	for name, inner := range map[string][]core.AcquireOption{
		"of an hour": {core.LeaseTime(time.Hour)}, "with a watchdog": nil,
	} {
		locktest.ParallelBubble(t, name+", released before", func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(lease))
			_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), inner...)
			locktest.MustRelease(t, r)
			b.WantTTL("map", lease-time.Second, lease)
			b.WantHolders("map", map[string]string{"mode": "write", w.Field(): "1"})
			locktest.Pass(lease)
			locktest.WantEnded(t, writing, core.ErrLost)
			locktest.WantErr(t, w.Release(t.Context()), core.ErrLost)
			wantFreeWithin(b, "map", time.Second)
		})
		locktest.ParallelBubble(t, name+", released after", func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(lease))
			_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), inner...)
			_, r = r.Handover()
			locktest.Pass(lease)
			locktest.WantErr(t, w.Release(t.Context()), core.ErrLost)
			locktest.MustRelease(t, r)
			wantFreeWithin(b, "map", time.Second)
		})
	}
}

// When the lease of a writer expires before the lease of its inner reader, the lock becomes a read lock. Other readers
// of both libraries get it, and writers do not.
func TestReadWrite_InnerReaderOutlivesTheWriter(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		java, locks, others := b.NewReadWriteThread("57"), b.Locks(), b.Locks()
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(2*time.Second))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"))
		reading, r := r.Handover()
		waiting := locktest.GoAcquire(t.Context(), others.ReadLock("map"))
		locktest.AwaitWaiters(t, others, 1)
		locktest.Pass(time.Second)
		if _, _, err := others.ReadLock("map").Acquire(t.Context(), core.WaitTime(0)); err == nil {
			t.Error("a reader has the lock beside a writer")
		} else if e := locktest.NotAcquired(t, err); e.BlockedBy != w.Field() || e.RetryAfter > time.Second {
			t.Errorf("holder: %+v, want the writer with the rest of its lease", e)
		}
		locktest.Pass(time.Second)
		locktest.WantEnded(t, writing, core.ErrLost)
		start := time.Now()
		other := locktest.Got(t, waiting)
		locktest.WantSoon(t, "a reader waited %s after the writer's lease", start, time.Second)
		if !java.Reads("map", time.Minute) {
			t.Error("Redisson is refused although there are only readers")
		}
		b.WantHolders("map", map[string]string{"mode": "read", r.Field(): "1", other.Hold.Field(): "1", java.Field: "1"})
		_, _, err := others.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.Pass(time.Minute / 2)
		locktest.WantAlive(t, reading)
		java.Unlocks(locktest.RedissonReadUnlock, "map", 0)
		locktest.MustRelease(t, other.Hold)
		locktest.MustRelease(t, r)
		b.WantNothing()
	})
}

// The marker that a writer leaves lasts as long as requested, although an inner reader has a longer lease.
func TestReadWrite_LeaveWithAnInnerReader(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"))
		_, r = r.Handover()
		locktest.Must(t, w.Leave(t.Context(), 2*time.Second))
		locktest.Pass(time.Second)
		_, _, err := b.Locks().ReadLock("map").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.Pass(29 * time.Second)
		_, beside := locktest.MustAcquire(t, t.Context(), b.Locks().ReadLock("map"), core.WaitTime(0))
		locktest.MustRelease(t, beside)
		locktest.MustRelease(t, r)
		wantFreeWithin(b, "map", time.Second)
	})
}

// Only renewals and refreshes of the writer change its lease. Operations of inner readers do not.
func TestReadWrite_RenewalWithAnInnerReader(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		refused := func(left time.Duration) {
			t.Helper()
			_, _, err := b.Locks().ReadLock("map").Acquire(t.Context(), core.WaitTime(0))
			if e := locktest.NotAcquired(t, err); e.RetryAfter > left || e.RetryAfter < left-11*time.Second {
				t.Errorf("the writer has %s left, want about %s", e.RetryAfter, left)
			}
		}
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Hour))
		locktest.Pass(10 * time.Minute)
		locktest.WantAlive(t, writing)
		refused(30 * time.Second)
		again, inner := locktest.MustAcquire(t, writing, locks.WriteLock("map"), core.LeaseTime(time.Minute))
		refused(time.Minute)
		locktest.WantAlive(t, again)
		locktest.MustRelease(t, inner)
		locktest.Must(t, w.Refresh(t.Context(), 2*time.Hour))
		refused(2 * time.Hour)
		locktest.Must(t, w.Refresh(t.Context(), 20*time.Second))
		refused(20 * time.Second)
		b.WantTTL("map", 49*time.Minute, 50*time.Minute)
		_, r = r.Handover()
		locktest.MustRelease(t, w)
		b.WantHolders("map", map[string]string{"mode": "read", r.Field(): "1"})
		locktest.MustRelease(t, r)
		b.WantNothing()
	})
}

// A waiter of Redisson may have seen the TTL that an inner reader has set. The release of the reader shortens the TTL
// and notifies the waiter.
func TestReadWrite_InnerReaderNotifiesRedisson(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		sub := b.SubscribeTo(t, locktest.ReadWriteChannelOf("map"))
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(time.Minute))
		_, r := locktest.MustAcquire(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Hour))
		locktest.MustRelease(t, r)
		sub.Want("1")
		locktest.MustRelease(t, w)
		sub.Want("1")
		b.WantNothing()
	})
}

// A writer that has lost its lock and wants to read gets ErrLost, not ErrNotAcquired.
func TestReadWrite_InnerReaderOfALostWriter(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Minute} {
		locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
			b.Del(t.Context(), "map")
			_, next := locktest.MustAcquire(t, t.Context(), b.Locks().WriteLock("map"))
			_, _, err := locks.ReadLock("map").Acquire(writing, core.WaitTime(wait))
			locktest.WantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
			locktest.WantEnded(t, writing, core.ErrLost)
			locktest.WantErr(t, w.Release(t.Context()), core.ErrLost)
			locktest.MustRelease(t, next)
			b.WantNothing()
		})
	}
}

// If a writer releases while its acquisition of the read lock is under way, the acquisition returns ErrNotHeld, not
// ErrLost.
func TestReadWrite_InnerReaderOfAReleasedWriter(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		writing, w := locktest.MustAcquire(t, t.Context(), locks.WriteLock("map"))
		stuck := proxy.HoldRequest(locktest.ScriptOn(t, "read/acquire", "map"))
		reads := locktest.GoAcquire(context.WithoutCancel(writing), locks.ReadLock("map"), core.WaitTime(time.Minute))
		<-stuck.Hit()
		b.Del(t.Context(), "map") // the held command keeps the release from being sent
		b.Take("map", locktest.Stranger, time.Minute)
		releasing := locktest.Go(func() error { return w.Release(t.Context()) })
		synctest.Wait()
		locktest.WantEnded(t, writing, core.ErrReleased)
		stuck.Release()
		locktest.WantOnly(t, (<-reads).Err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
		locktest.WantErr(t, <-releasing, core.ErrLost)
	})
}
