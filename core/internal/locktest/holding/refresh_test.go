package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A command without an answer may land late and raise the TTL again. Until it can no longer land, a refresh lowers
// neither the TTL nor the deadline of the holder.
func TestRefresh_AfterAnUnansweredReentry(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease, lower = time.Hour, time.Minute
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		stuck := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "sethold", "k")))
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(short, core.LeaseTime(lease))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		if stuck.Hits() != 1 {
			t.Fatal("no re-entry is stuck")
		}
		locktest.Pass(2 * time.Second) // the client takes the entry back
		b.WantCount(hold, "1")

		locktest.Must(t, hold.Refresh(t.Context(), lower))
		b.WantTTL("k", lease-10*time.Second, lease)
		if left := hold.Remaining(); left < lease-time.Minute {
			t.Errorf("remaining: got %s", left)
		}
		locktest.Pass(3 * time.Minute)
		locktest.Must(t, hold.Refresh(t.Context(), lower))
		b.WantTTL("k", lower-time.Second, lower)
		if left := hold.Remaining(); left > lower {
			t.Errorf("remaining: got %s with a lease of %s", left, lower)
		}
		locktest.MustRelease(t, hold)
		stuck.Release()
		locktest.Pass(time.Second)
		b.WantGone("k")
	})
}

// A refresh that shortens the lease and has no answer ends the hold in time, even if the watchdog has to look at
// another hold first.
func TestRefresh_UnansweredEndsInTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, _ = locktest.MustAcquire(t, t.Context(), locks.Lock("other"), core.LeaseTime(30*time.Second))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Refresh(t.Context(), 2*time.Second), core.ErrUnavailable)
		<-ctx.Done()
		locktest.WantSoon(t, "ended after %s", start, 2*time.Second)
		locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
	})
}

// wantNoSecond takes key with another client, and checks that the contexts of its earlier holders ended before.
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

// The reply to a renewal, which raised the TTL, arrives during a refresh that lowers the TTL. The deadline of the
// holder follows the refresh.
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

// A renewal without an answer, sent once or twice, keeps a refresh from lowering the TTL. The refresh returns an
// error within the backend timeout, and the hold lasts no longer than in Redis.
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

// The first command of a lowering refresh is stuck, and the second is answered. If the TTL is raised then, the stuck
// command may still lower it, and the contexts of the hold end in time.
func TestRefresh_StuckCommandLandsLate(t *testing.T) {
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

// If the new lease is so short that it ends before the command reaches Redis, the lock is lost and freed.
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

func TestRefresh_UpAndDown(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Minute))
		for _, lease := range []time.Duration{time.Hour, 30 * time.Second, 2 * time.Hour} {
			if err := hold.Refresh(t.Context(), lease); err != nil {
				t.Fatalf("refresh to %s: %v", lease, err)
			}
			b.WantTTL("k", lease-10*time.Second, lease)
			if left := hold.Remaining(); left > lease || left < lease-lease/100-10*time.Second {
				t.Errorf("remaining after a refresh to %s: got %s", lease, left)
			}
		}
		locktest.MustRelease(t, hold)
	})
}

func TestRefresh_MakesAWatchdogAFixedLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		locktest.Pass(time.Minute)
		locktest.Must(t, hold.Refresh(t.Context(), 5*time.Second))
		locktest.Pass(4 * time.Second)
		locktest.WantAlive(t, ctx)
		locktest.Pass(time.Second)
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("k")
	})
}

// The watchdog stops renewing every key of a MultiLock, not only the first.
func TestRefresh_OfAMultiLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().MultiLock("a", "b", "c"))
		locktest.Must(t, hold.Refresh(t.Context(), 15*time.Second))
		locktest.Pass(15 * time.Second) // after the time of the next renewal
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("a", "b", "c")
	})
}

func TestRefresh_OfAnInnerHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
		locktest.WantOK(t, inner.Refresh(t.Context(), time.Second))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		if outer.Remaining() < 58*time.Minute {
			t.Errorf("remaining of the outer hold: got %s, want at least 58m", outer.Remaining())
		}
		locktest.WantOK(t, inner.Refresh(t.Context(), 2*time.Hour))
		b.WantTTL("k", 119*time.Minute, 2*time.Hour)
		b.WantCount(outer, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
	})
}

func TestRefresh_BadLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, sent := b.Counted()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		before := sent.Hits()
		for _, lease := range []time.Duration{0, -1, time.Microsecond, core.MaxDuration + 1} {
			locktest.WantErr(t, hold.Refresh(t.Context(), lease), core.ErrInvalid)
			locktest.WantErr(t, hold.Leave(t.Context(), lease), core.ErrInvalid)
		}
		locktest.WantSame(t, "commands", sent.Hits()-before, 0)
		locktest.MustRelease(t, hold)
	})
}

// A refresh that Redis refuses sends no message. The next message is from another client, and the holder asks Redis
// about it.
func TestRefresh_RefusedExpectsNoMessage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		waiting, cancel := context.WithCancel(t.Context())
		next := locktest.GoAcquire(waiting, locks.Lock("k"))
		b.AwaitListeners("k", 1)
		proxy.AnswerError(locktest.ScriptOn(t, "acquire", "k"), locktest.Passing()[0]) // the waiter does not ask instead
		proxy.AnswerError(locktest.ScriptOn(t, "refresh", "k"), "NOPERM no")
		locktest.WantErr(t, hold.Refresh(t.Context(), 30*time.Second), core.ErrUnavailable)
		_, err := b.Locks().Lock("k").ForceRelease(t.Context())
		locktest.Must(t, err)
		locktest.Pass(50 * time.Millisecond) // the holder asks every 20 ms at most
		locktest.WantEnded(t, ctx, core.ErrLost)
		cancel()
		<-next
	})
}
