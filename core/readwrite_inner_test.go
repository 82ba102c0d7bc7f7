package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
)

// wantFreeWithin wants somebody else to get the write lock this soon.
func (b *bed) wantFreeWithin(key string, limit time.Duration) {
	b.t.Helper()
	start := time.Now()
	_, next, err := b.locks().WriteLock(key).Acquire(b.t.Context(), core.WaitTime(2*time.Hour))
	must(b.t, err)
	if took := time.Since(start); took > limit {
		b.t.Errorf("nobody had the lock, and nobody got it for %s", took)
	}
	released(b.t, next)
	b.wantNothing()
}

// A reader inside of a writer makes the lock last longer, but not the writer's own lease: when that is
// over, and the reader has gone, before or after, the lock is free.
func TestReadWrite_InnerReaderDoesNotProlongTheWriter(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	for name, inner := range map[string][]core.AcquireOption{
		"of an hour": {core.LeaseTime(time.Hour)}, "with a watchdog": nil,
	} {
		parallelBubble(t, name+", released before", func(t *testing.T, b *bed) {
			locks := b.locks()
			writing, w := acquired(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(lease))
			_, r := acquired(t, writing, locks.ReadLock("map"), inner...)
			released(t, r)
			b.wantTTL("map", lease-time.Second, lease)
			b.wantHolders("map", map[string]string{"mode": "write", w.Field(): "1"})
			pass(lease)
			wantEnded(t, writing, core.ErrLost)
			wantErr(t, w.Release(t.Context()), core.ErrLost)
			b.wantFreeWithin("map", time.Second)
		})
		parallelBubble(t, name+", released after", func(t *testing.T, b *bed) {
			locks := b.locks()
			writing, w := acquired(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(lease))
			_, r := acquired(t, writing, locks.ReadLock("map"), inner...)
			_, r = r.Handover()
			pass(lease)
			wantErr(t, w.Release(t.Context()), core.ErrLost)
			released(t, r)
			b.wantFreeWithin("map", time.Second)
		})
	}
}

// When a writer's lease is over while a reader inside of it goes on, the lock is a reader's: others read,
// of either library, and nobody writes.
func TestReadWrite_InnerReaderGoesOnAfterTheWritersLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		java, locks, others := b.thread("57"), b.locks(), b.locks()
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(2*time.Second))
		_, r := acquired(t, writing, locks.ReadLock("map"))
		reading, r := r.Handover()
		waiting := acquiring(t.Context(), others.ReadLock("map"))
		waiters(t, others, 1)
		pass(time.Second)
		if _, _, err := others.ReadLock("map").Acquire(t.Context(), core.WaitTime(0)); err == nil {
			t.Error("somebody reads beside the writer")
		} else if e := notAcquired(t, err); e.BlockedBy != w.Field() || e.RetryAfter > time.Second {
			t.Errorf("in the way: %+v, want the writer for what its lease has left", e)
		}
		pass(time.Second)
		wantEnded(t, writing, core.ErrLost)
		start := time.Now()
		other := got(t, waiting)
		wantSoon(t, "a reader waited %s after the writer's lease", start, time.Second)
		if !java.reads("map", time.Minute) {
			t.Error("Redisson does not see readers only")
		}
		b.wantHolders("map", map[string]string{"mode": "read", r.Field(): "1", other.hold.Field(): "1", java.field: "1"})
		_, _, err := others.WriteLock("map").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		pass(time.Minute / 2)
		wantAlive(t, reading)
		java.unlocks(redissonReadUnlock, "map", 0)
		released(t, other.hold)
		released(t, r)
		b.wantNothing()
	})
}

// The marker that a writer leaves lasts as long as it was told, though readers inside of it last longer.
func TestReadWrite_LeaveWithAReaderInside(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
		_, r := acquired(t, writing, locks.ReadLock("map"))
		_, r = r.Handover()
		must(t, w.Leave(t.Context(), 2*time.Second))
		pass(time.Second)
		_, _, err := b.locks().ReadLock("map").Acquire(t.Context(), core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		pass(29 * time.Second)
		_, beside := acquired(t, t.Context(), b.locks().ReadLock("map"), core.WaitTime(0))
		released(t, beside)
		released(t, r)
		b.wantFreeWithin("map", time.Second)
	})
}

// What prolongs or shortens the writer's lease is of the writer, whatever readers inside of it do.
func TestReadWrite_WriterWithAReaderInsideIsRenewed(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		refused := func(left time.Duration) {
			t.Helper()
			_, _, err := b.locks().ReadLock("map").Acquire(t.Context(), core.WaitTime(0))
			if e := notAcquired(t, err); e.RetryAfter > left || e.RetryAfter < left-11*time.Second {
				t.Errorf("the writer has %s left, want about %s", e.RetryAfter, left)
			}
		}
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
		_, r := acquired(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Hour))
		pass(10 * time.Minute)
		wantAlive(t, writing)
		refused(30 * time.Second)
		again, inner := acquired(t, writing, locks.WriteLock("map"), core.LeaseTime(time.Minute))
		refused(time.Minute)
		wantAlive(t, again)
		released(t, inner)
		must(t, w.Refresh(t.Context(), 2*time.Hour))
		refused(2 * time.Hour)
		must(t, w.Refresh(t.Context(), 20*time.Second))
		refused(20 * time.Second)
		b.wantTTL("map", 49*time.Minute, 50*time.Minute)
		_, r = r.Handover()
		released(t, w)
		b.wantHolders("map", map[string]string{"mode": "read", r.Field(): "1"})
		released(t, r)
		b.wantNothing()
	})
}

// Redisson's, who saw that the lock lasts as long as the reader inside of the writer, is told when it does
// not any more.
func TestReadWrite_RedissonIsToldThatTheInnerReaderHasGone(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		sub := b.subscribe(t, rwChannelOf("map"))
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"), core.LeaseTime(time.Minute))
		_, r := acquired(t, writing, locks.ReadLock("map"), core.LeaseTime(time.Hour))
		released(t, r)
		sub.want("1")
		released(t, w)
		sub.want("1")
		b.wantNothing()
	})
}

// Who reads under a writer that was taken away in Redis is told so, and not that others have the lock.
func TestReadWrite_InnerReaderOfALostWriter(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, time.Minute} {
		inBubble(t, func(t *testing.T, b *bed) {
			locks := b.locks()
			writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
			b.Del(t.Context(), "map")
			_, next := acquired(t, t.Context(), b.locks().WriteLock("map"))
			_, _, err := locks.ReadLock("map").Acquire(writing, core.WaitTime(wait))
			wantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
			wantEnded(t, writing, core.ErrLost)
			wantErr(t, w.Release(t.Context()), core.ErrLost)
			released(t, next)
			b.wantNothing()
		})
	}
}

// A reader whose writer is released while it is on its way is told that, which is no loss.
func TestReadWrite_InnerReaderOfAReleasedWriter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		writing, w := acquired(t, t.Context(), locks.WriteLock("map"))
		stuck := proxy.HoldRequest(scriptOn(t, "read/acquire", "map"))
		reads := acquiring(context.WithoutCancel(writing), locks.ReadLock("map"), core.WaitTime(time.Minute))
		<-stuck.Hit()
		b.Del(t.Context(), "map") // what is held back keeps the release from being sent
		b.take("map", stranger, time.Minute)
		releasing := make(chan error, 1)
		go func() { releasing <- w.Release(t.Context()) }()
		synctest.Wait()
		wantEnded(t, writing, core.ErrReleased)
		stuck.Release()
		wantOnly(t, (<-reads).err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
		wantErr(t, <-releasing, core.ErrLost)
	})
}
