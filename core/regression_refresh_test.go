package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// knowing is behindProxy on a server that knows all scripts, so that a rule can name
// one of them.
func (b *bed) knowing(opts ...core.Option) (*core.Client, *faultproxy.Proxy) {
	b.t.Helper()
	for _, source := range scriptSources(b.t) {
		must(b.t, b.ScriptLoad(context.Background(), source).Err())
	}
	return b.behindProxy(opts...)
}

// wantNoSecond has another client take key, and wants the contexts of those who
// held it to have ended by then.
func (b *bed) wantNoSecond(key string, holders ...context.Context) {
	b.t.Helper()
	_, second := acquired(b.t, context.Background(), b.locks().Lock(key), core.LeaseTime(time.Minute))
	for _, ctx := range holders {
		select {
		case <-ctx.Done():
			wantErr(b.t, context.Cause(ctx), core.ErrLost)
		default:
			b.t.Error("two holders: a context has not ended")
		}
	}
	released(b.t, second)
}

// The reply of a renewal that raised the TTL comes while a refresh that lowers it is
// asked for. The renewal must not be believed after the refresh.
func TestRefresh_LowersUnderARenewalOnItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldReply(faultproxy.Once(scriptOn(t, "renew", "k")))
		<-renewal.Hit()
		time.AfterFunc(50*time.Millisecond, renewal.Release)
		must(t, hold.Refresh(t.Context(), 300*time.Millisecond))
		if renewal.Executed() != 1 {
			t.Error("the renewal was not executed")
		}
		if left := hold.Remaining(); left <= 0 || left > 300*time.Millisecond {
			t.Errorf("remaining: got %s, want up to 300ms", left)
		}
		b.wantTTL("k", 0, 300*time.Millisecond)
		b.wantNoSecond("k", ctx)
	})
}

// A renewal without an answer, also where it is sent again, keeps the refresh from lowering the TTL: it says so
// within the backend timeout, and the hold is no longer believed in than Redis has it.
func TestRefresh_UnderARenewalWithoutAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		renewal := proxy.HoldRequest(scriptOn(t, "renew", "k"))
		<-renewal.Hit()
		start := time.Now()
		wantErr(t, hold.Refresh(t.Context(), 300*time.Millisecond), core.ErrUnavailable)
		wantSoon(t, "returned after %s", start, core.DefaultBackendTimeout)
		wantAlive(t, ctx)
		b.wantNoSecond("k", ctx)
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
			must(t, hold.Refresh(t.Context(), 10*time.Second))
			return ctx
		},
		"by a re-entry": func(t *testing.T, ctx context.Context, lock core.Lock, _ *core.Hold) context.Context {
			t.Helper()
			inner, _ := acquired(t, ctx, lock, core.LeaseTime(10*time.Second))
			return inner
		},
		"by a re-entry under the watchdog": func(t *testing.T, ctx context.Context, lock core.Lock, _ *core.Hold) context.Context {
			t.Helper()
			inner, _ := acquired(t, ctx, lock)
			return inner
		},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(10*time.Second))
			stuck := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "refresh", "k")))
			must(t, hold.Refresh(t.Context(), lowered))
			if stuck.Hits() != 1 {
				t.Fatal("no send was stuck")
			}
			inner := raise(t, ctx, locks.Lock("k"), hold)
			pass(50 * time.Millisecond)
			b.wantTTL("k", 9*time.Second, 30*time.Second)
			stuck.Release()
			pass(time.Millisecond)
			b.wantTTL("k", 0, lowered)
			wantAlive(t, inner)
			b.wantNoSecond("k", ctx, inner)
		})
	}
}

// A new lease that ends before its command reaches Redis has had its effect: the lock is lost, and free.
func TestRefresh_ShorterThanItsWay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		late := proxy.DelayRequest(scriptOn(t, "refresh", "k"), 200*time.Millisecond)
		must(t, hold.Refresh(t.Context(), 10*time.Millisecond))
		late.Remove()
		wantEnded(t, ctx, core.ErrLost)
		b.wantGone("k")
	})
}

// A machine that was suspended has a monotonic clock that stood still. Who waits for
// nothing but Done is notified all the same, soon after it goes on.
func TestWatchdog_WallClockJumpClosesDone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks(core.WithWatchdog(time.Hour))
		renewed, first := acquired(t, t.Context(), locks.Lock("renewed"))
		fixed, second := acquired(t, t.Context(), locks.Lock("fixed"), core.LeaseTime(30*time.Minute))
		pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute) // less than any lease: nothing happens
		pass(5 * time.Second)
		wantAlive(t, renewed)
		wantAlive(t, fixed)

		core.JumpWallClock(locks, 20*time.Minute)
		wantEndsSoon(t, fixed)
		wantErr(t, second.Release(t.Context()), core.ErrLost)
		wantAlive(t, renewed)

		core.JumpWallClock(locks, time.Hour)
		wantEndsSoon(t, renewed)
		wantErr(t, first.Release(t.Context()), core.ErrLost)
	})
}

// One that was suspended for a part of the lease has that much less of it.
func TestWatchdog_WallClockJumpWithinTheLeaseClosesDone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(30*time.Minute))
		pass(time.Minute)
		core.JumpWallClock(locks, 10*time.Minute)
		left := hold.Remaining()
		pass(left - time.Second)
		wantAlive(t, ctx)
		pass(500 * time.Millisecond)
		wantEndsSoon(t, ctx)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// wantEndsSoon wants a lock to be lost, and its holder notified, within about a second.
func wantEndsSoon(t *testing.T, ctx context.Context) {
	t.Helper()
	start := time.Now()
	<-ctx.Done()
	wantSoon(t, "told after %s", start, 1100*time.Millisecond)
	wantErr(t, context.Cause(ctx), core.ErrLost)
}
