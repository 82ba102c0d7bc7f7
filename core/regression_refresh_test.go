package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// wantNoSecond has another client take key, and wants the contexts of those who
// held it to have ended by then.
func wantNoSecond(b *locktest.Redis, key string, holders ...context.Context) {
	b.T.Helper()
	_, second := locktest.MustAcquire(b.T, context.Background(), b.Locks().Lock(key), core.LeaseTime(time.Minute))
	for _, ctx := range holders {
		select {
		case <-ctx.Done():
			locktest.WantErr(b.T, context.Cause(ctx), core.ErrLost)
		default:
			b.T.Error("two holders: a context has not ended")
		}
	}
	locktest.MustRelease(b.T, second)
}

// The reply of a renewal that raised the TTL comes while a refresh that lowers it is
// asked for. The renewal must not be believed after the refresh.
func TestRefresh_LowersUnderARenewalOnItsWay(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "renew", "k")))
		<-renewal.Hit()
		time.AfterFunc(50*time.Millisecond, renewal.Release)
		locktest.Must(t, hold.Refresh(t.Context(), 300*time.Millisecond))
		if renewal.Executed() != 1 {
			t.Error("the renewal was not executed")
		}
		if left := hold.Remaining(); left <= 0 || left > 300*time.Millisecond {
			t.Errorf("remaining: got %s, want up to 300ms", left)
		}
		b.WantTTL("k", 0, 300*time.Millisecond)
		wantNoSecond(b, "k", ctx)
	})
}

// A renewal without an answer, also where it is sent again, keeps the refresh from lowering the TTL: it says so
// within the backend timeout, and the hold is no longer believed in than Redis has it.
func TestRefresh_UnderARenewalWithoutAnswer(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldRequest(locktest.ScriptOn(t, "renew", "k"))
		<-renewal.Hit()
		start := time.Now()
		locktest.WantErr(t, hold.Refresh(t.Context(), 300*time.Millisecond), core.ErrUnavailable)
		locktest.WantSoon(t, "returned after %s", start, core.DefaultBackendTimeout)
		locktest.WantAlive(t, ctx)
		wantNoSecond(b, "k", ctx)
	})
}

// The first send of a lowering refresh is stuck, its resend is answered. Whatever
// raises the TTL then, the stuck one may still cut it, and the holder knows.
func TestRefresh_StuckSendLandsAfterTheTTLWasRaised(t *testing.T) {
	t.Parallel()
	const lowered = 500 * time.Millisecond
	for name, raise := range map[string]func(t *testing.T, ctx context.Context, lock core.Lock, hold *core.Hold) context.Context{
		"by a refresh": func(t *testing.T, ctx context.Context, _ core.Lock, hold *core.Hold) context.Context {
			t.Helper()
			locktest.Must(t, hold.Refresh(t.Context(), 10*time.Second))
			return ctx
		},
		"by a re-entry": func(t *testing.T, ctx context.Context, lock core.Lock, _ *core.Hold) context.Context {
			t.Helper()
			inner, _ := locktest.MustAcquire(t, ctx, lock, core.LeaseTime(10*time.Second))
			return inner
		},
		"by a re-entry under the watchdog": func(t *testing.T, ctx context.Context, lock core.Lock, _ *core.Hold) context.Context {
			t.Helper()
			inner, _ := locktest.MustAcquire(t, ctx, lock)
			return inner
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(10*time.Second))
			stuck := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "refresh", "k")))
			locktest.Must(t, hold.Refresh(t.Context(), lowered))
			if stuck.Hits() != 1 {
				t.Fatal("no send was stuck")
			}
			inner := raise(t, ctx, locks.Lock("k"), hold)
			locktest.Pass(50 * time.Millisecond)
			b.WantTTL("k", 9*time.Second, 30*time.Second)
			stuck.Release()
			locktest.Pass(time.Millisecond)
			b.WantTTL("k", 0, lowered)
			locktest.WantAlive(t, inner)
			wantNoSecond(b, "k", ctx, inner)
		})
	}
}

// A new lease that ends before its command reaches Redis has had its effect: the lock is lost, and free.
func TestRefresh_ShorterThanItsWay(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		late := proxy.DelayRequest(locktest.ScriptOn(t, "refresh", "k"), 200*time.Millisecond)
		locktest.Must(t, hold.Refresh(t.Context(), 10*time.Millisecond))
		late.Remove()
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("k")
	})
}

// A machine that was suspended has a monotonic clock that stood still. Who waits for
// nothing but Done is notified all the same, soon after it goes on.
func TestWatchdog_WallClockJumpClosesDone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(time.Hour))
		renewed, first := locktest.MustAcquire(t, t.Context(), locks.Lock("renewed"))
		fixed, second := locktest.MustAcquire(t, t.Context(), locks.Lock("fixed"), core.LeaseTime(30*time.Minute))
		locktest.Pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute) // less than any lease: nothing happens
		locktest.Pass(5 * time.Second)
		locktest.WantAlive(t, renewed)
		locktest.WantAlive(t, fixed)

		core.JumpWallClock(locks, 20*time.Minute)
		wantEndsSoon(t, fixed)
		locktest.WantErr(t, second.Release(t.Context()), core.ErrLost)
		locktest.WantAlive(t, renewed)

		core.JumpWallClock(locks, time.Hour)
		wantEndsSoon(t, renewed)
		locktest.WantErr(t, first.Release(t.Context()), core.ErrLost)
	})
}

// One that was suspended for a part of the lease has that much less of it.
func TestWatchdog_WallClockJumpWithinTheLeaseClosesDone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(30*time.Minute))
		locktest.Pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute)
		left := hold.Remaining()
		locktest.Pass(left - time.Second)
		locktest.WantAlive(t, ctx)
		locktest.Pass(500 * time.Millisecond)
		wantEndsSoon(t, ctx)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// wantEndsSoon wants a lock to be lost, and its holder notified, within about a second.
func wantEndsSoon(t *testing.T, ctx context.Context) {
	t.Helper()
	start := time.Now()
	<-ctx.Done()
	locktest.WantSoon(t, "told after %s", start, 1100*time.Millisecond)
	locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
}
