package core_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestWatchdog_RenewsEveryThirdOfTheLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		var at []time.Duration
		start := time.Now()
		proxy.Watch(faultproxy.All(locktest.Scripts, func([]string) bool {
			at = append(at, time.Since(start))
			return true
		}))
		locktest.Pass(time.Minute)
		if n := len(at); n < 6 || n > 8 { // the second was the NOSCRIPT of the first, or not
			t.Errorf("renewals within a minute: got %v", at)
		}
		for i, d := range at[1:] {
			if gap := d - at[i]; gap > 10*time.Second {
				t.Errorf("%s between two renewals, want a third of 30s at most", gap)
			}
		}
		b.WantTTL("k", 20*time.Second, 30*time.Second)
		locktest.WantAlive(t, t.Context())
		locktest.MustRelease(t, hold)
	})
}

func TestWatchdog_KeepsALockForHours(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(30 * time.Second))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.Pass(time.Hour)
		locktest.WantAlive(t, ctx)
		b.WantCount(hold, "1")
		if left := hold.Remaining(); left < 19*time.Second || left > 30*time.Second {
			t.Errorf("remaining: got %s", left)
		}
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}

// A message about a lock that is held makes its holder look at once.
func TestWatchdog_ForcedLockIsNoticedByMessage(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		waiting, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(waiting, locks, "k", 1) // a waiter listens
		locktest.AwaitWaiters(t, locks, 1)
		b.AwaitListeners("k", 1)
		b.Take("k", locktest.Stranger, time.Minute)
		b.Publish(t.Context(), locktest.ChannelOf("k"), "0")
		select {
		case <-ctx.Done():
		case <-time.After(locktest.Measured(10 * time.Second)): // a renewal would notice it much later
			t.Error("not noticed")
		}
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		cancel()
		<-done
	})
}

func TestHold_FixedLeaseEndsTheContextWithErrLost(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(10*time.Second))
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took >= 10*time.Second || took < 9*time.Second {
			t.Errorf("ended after %s, want a little before the lease", took)
		}
		if b.Exists(t.Context(), "k").Val() != 1 {
			t.Error("the key was gone before the holder knew")
		}
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, ctx.Err(), context.Canceled)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s", hold.Remaining())
		}
	})
}

// Err compares the clocks itself: no timer has fired, nobody was notified.
func TestHold_ErrLooksAtTheClock(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*core.Hold){
		"wall clock: the machine was suspended": core.EndLeaseOnWallClock,
		"monotonic clock":                       core.EndLeaseOnMonotonicClock,
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
			locktest.WantAlive(t, ctx)
			end(hold)
			select {
			case <-ctx.Done():
				t.Error("somebody else has noticed")
			default:
			}
			if hold.Remaining() != 0 {
				t.Errorf("remaining: got %s", hold.Remaining())
			}
			if _, ok := core.Held(ctx, "k"); ok {
				t.Error("Held is true")
			}
			locktest.WantEnded(t, ctx, core.ErrLost)
			<-ctx.Done() // all who wait for the context are notified then
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			b.WantHolders("k", map[string]string{hold.Field(): "1"}) // a loss frees nothing
		})
	}
}

func TestHold_ReleaseLooksAtTheClock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		before := sent.Hits()
		core.EndLeaseOnWallClock(hold)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
		locktest.WantSame(t, "commands about a lock that may be another's", sent.Hits()-before, 0)
	})
}

func TestWatchdog_TenThousandLocksFewRoundTripsNoGoroutines(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		goroutines := runtime.NumGoroutine()
		var holds []*core.Hold
		for i := range 100 {
			names := make([]string, 100)
			for j := range names {
				names[j] = strconv.Itoa(i) + "/" + strconv.Itoa(j)
			}
			_, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...))
			holds = append(holds, hold)
		}
		locktest.Pass(10 * time.Second) // the first renewals make the script known
		sent := proxy.Watch(locktest.Scripts)
		locktest.Pass(10 * time.Second)
		if got := sent.Hits(); got < 100 || got > 110 {
			t.Errorf("one period: got %d scripts, want one per hundred locks", got)
		}
		if grown := runtime.NumGoroutine() - goroutines; grown > 2_000 { // other tests have some, too
			t.Errorf("%d goroutines more", grown)
		}
		locktest.Pass(15 * time.Second)
		for _, hold := range holds[:3] {
			b.WantCount(hold, "1")
		}
		locktest.WantSame(t, "held", locks.Stats().Holds, 10_000)
	})
}

func TestWatchdog_ScriptFlushDuringRenewals(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		for range 10 {
			b.ScriptFlush(t.Context())
			locktest.Pass(10 * time.Second)
		}
		locktest.WantAlive(t, ctx)
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
	})
}

func TestWatchdog_ScriptFlushOnAServer(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithWatchdog(locktest.Unhurried(3*time.Second)), core.WithObserver(obs.Observer())).Lock("k"))
		for range 3 {
			b.ScriptFlush(t.Context())
			n := obs.Count("renewal")
			locktest.Eventually(t, "another renewal", func() bool { return obs.Count("renewal") > n })
		}
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, hold)
	})
}

func TestWatchdog_TheSameLeaseAsConfigured(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithWatchdog(time.Hour)).Lock("k"))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		locktest.MustRelease(t, hold)
	})
}

// A key that is no lock any more ends its own hold, not those that are renewed by the
// same script.
func TestWatchdog_OverwrittenKeyEndsItsHoldOnly(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		lost, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("overwritten"))
		kept, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		b.Set(t.Context(), "overwritten", "text", 0)
		locktest.Pass(time.Minute)
		if cause := context.Cause(lost); !errors.Is(cause, core.ErrLost) {
			t.Errorf("overwritten: got %v, want lost", cause)
		}
		if kept.Err() != nil {
			t.Errorf("beside it: %v", context.Cause(kept))
		}
		locktest.MustRelease(t, hold)
	})
}
