package holding_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The watchdog repeats a failed renewal at once, not a third of the lease later. Otherwise three failures in a row
// would lose the lock.
func TestWatchdog_SurvivesThreeFailedRenewals(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.DropRequest, locktest.DropReply, locktest.HoldRequest, locktest.HoldReply} {
		locktest.ParallelBubble(t, f.Name, func(t *testing.T, b *locktest.Redis) {
			const lease = 30 * time.Second
			locks, proxy := b.BehindAProxy()
			sent := proxy.Watch(locktest.ScriptOn(t, "renew", "k"))
			var failed []*faultproxy.Rule
			for range 3 {
				failed = append(failed, f.Inject(proxy, faultproxy.Once(locktest.ScriptOn(t, "renew", "k"))))
			}
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			locktest.Pass(lease)
			if n := sent.Hits(); n < 4 || failed[2].Hits() != 1 {
				t.Errorf("%d renewals within a lease, the first three of which failed", n)
			}
			locktest.Pass(lease)
			locktest.WantAlive(t, ctx)
			b.WantCount(hold, "1")
			b.WantTTL("k", lease/2, lease)
			locktest.MustRelease(t, hold)
		})
	}
}

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
		if n := len(at); n < 6 || n > 8 { // with or without a NOSCRIPT at the first renewal
			t.Errorf("renewals within a minute: got %v, want 6 to 8 of them", at)
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
			t.Errorf("remaining: got %s, want 19s to 30s", left)
		}
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}

// A message about a held lock makes its holder ask Redis at once.
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
		case <-time.After(locktest.Measured(10 * time.Second)): // a renewal would find the loss much later
			t.Error("the holder has not noticed the loss")
		}
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		cancel()
		<-done
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

func TestWatchdog_TakesTheConfiguredLease(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithWatchdog(time.Hour)).Lock("k"))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		locktest.MustRelease(t, hold)
	})
}

// If a key is overwritten, its hold is lost. The other holds that the same script renews are not lost.
func TestWatchdog_OverwrittenKey(t *testing.T) {
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
