package kinds_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A waiter for several keys holds none of them, and costs Redis no more than a waiter for one key.
func TestMultiLock_HoldsNothingWhileItWaits(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		b.Take("b", locktest.Stranger, 10*time.Second)
		before := sent.Hits()
		got := locktest.GoAcquire(t.Context(), locks.MultiLock("a", "b", "c"))
		for range 90 {
			locktest.Pass(100 * time.Millisecond)
			b.WantGone("a", "c")
		}
		if n := sent.Hits() - before; n > 20 { // polls of 750 ms to a second
			t.Errorf("%d scripts in 9 s, want at most 20", n)
		}
		start := time.Now()
		b.Free("b")
		o := locktest.Got(t, got)
		locktest.WantSoon(t, "woken after %s", start, time.Millisecond)
		locktest.MustRelease(t, o.Hold)
	})
}

// An attempt with WaitTime(0) is one round trip, refused or not.
func TestMultiLock_NoWaitIsOneScript(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		b.Warm(locks)
		locktest.MustRelease(t, second(locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b"))))
		b.Take("b", locktest.Stranger, time.Hour)
		before := sent.Hits()
		_, _, err := locks.MultiLock("a", "b").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.WantSame(t, "scripts", sent.Hits()-before, 1)
	})
}

// A waiter for a and b does not block callers of a while b is taken.
func TestMultiLock_CallersOfFreeKeys(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		locks := b.Locks()
		b.Take("b", locktest.Stranger, time.Hour)
		alone := locktest.TakeTurns(t, ctx, locks.Lock("a"), 4, time.Millisecond)
		locktest.Pass(3 * time.Second)
		before, longest := alone.Taken.Load(), alone.Longest()
		locktest.GoAcquire(ctx, locks.MultiLock("a", "b"))
		locktest.Pass(3 * time.Second)
		if beside := alone.Taken.Load() - before; beside < before*9/10 {
			t.Errorf("%d turns beside the waiter, want nine tenths of the %d without it", beside, before)
		}
		if alone.Longest() > longest+20*time.Millisecond {
			t.Errorf("waits of up to %s beside the waiter, want about the %s without it", alone.Longest(), longest)
		}
	})
}
