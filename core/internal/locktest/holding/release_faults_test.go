package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// If the reply to a release says that another client has the lock, the lock was lost, however late the reply arrives.
func TestRelease_OfAStolenLockIsALoss(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks := r.Behind(locktest.Patient)
	_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
	r.Steal("k")
	r.Proxy.DelayReply(faultproxy.Once(locktest.ScriptOn(t, "release", "k")), 30*time.Millisecond)
	locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost, core.ErrNotHeld)
	r.WantHolder("k", locktest.Stranger)
}

// A release frees the lock although its context has ended before, or ends during the release.
func TestRelease_Cancelled(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{{Name: "before"}, locktest.HoldRequest, locktest.HoldReply, locktest.DropReply} {
		locktest.Parallel(t, f.Name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f.Inject == nil {
				cancel()
			} else {
				rule := f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "release", "k")))
				go func() {
					<-rule.Hit()
					cancel()
					rule.Release()
				}()
			}
			locktest.Must(t, hold.Release(ctx))
			if r.Has("k") {
				t.Error("the key still exists after the release")
			}
		})
	}
}

// A release without an answer returns an error within the backend timeout. The client goes on in the background, so
// that the lock is free soon. A release that lands late does not free the lock of another holder.
func TestRelease_Unanswered(t *testing.T) {
	t.Parallel()
	timeout := locktest.Unhurried(300 * time.Millisecond)
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply, locktest.DropRequest, locktest.DropReply} {
		for _, stolen := range []bool{true, false} {
			locktest.Parallel(t, f.Name+map[bool]string{true: "/stolen", false: "/free"}[stolen], func(t *testing.T) {
				r := locktest.NewProxied(t)
				locks, other := r.Behind(core.WithBackendTimeout(timeout)), r.Beside()
				_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
				rule := f.Inject(r.Proxy, locktest.ScriptOn(t, "release", "k"))
				start := time.Now()
				locktest.WantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				locktest.WantAtMost(t, "the release", time.Since(start), timeout)
				locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
				if stolen {
					r.Steal("k")
				}
				if f.Name == locktest.HoldRequest.Name || f.Name == locktest.HoldReply.Name {
					locktest.Land(r.T, rule)
				}
				rule.Remove()
				if stolen {
					r.WantHolder("k", locktest.Stranger)
					return
				}
				start = time.Now()
				_, next := locktest.MustAcquire(t, t.Context(), other.Lock("k"), core.WaitTime(20*time.Second))
				locktest.WantAtMost(t, "the next acquire", time.Since(start), time.Second)
				locktest.MustRelease(t, next)
			})
		}
	}
}

// endlessEntry starts a re-entry without a wait time while Redis refuses all commands. Other operations on the hold
// wait for the re-entry until Redis answers or until cancel, at most for a minute.
func endlessEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) (refused *faultproxy.Rule, got <-chan locktest.Outcome, cancel func()) {
	t.Helper()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	refused = proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
	got = locktest.GoAcquire(ctx, lock)
	locktest.Pass(10 * time.Millisecond)
	if refused.Hits() == 0 {
		t.Fatal("the re-entry has sent no command")
	}
	return refused, got, cancel
}

// A release waits for an earlier operation no longer than for an answer. Then the release goes on in the background,
// whether the re-entry before it succeeds or not.
func TestRelease_BehindAnEndlessReentry(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	for name, enters := range map[string]bool{"that enters": true, "that is given up": false} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
			l := locks.Lock("k")
			ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
			_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
			refused, got, cancel := endlessEntry(t, ctx, proxy, l)
			defer cancel()
			for _, hold := range []*core.Hold{inner, outer} {
				start := time.Now()
				locktest.WantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				locktest.WantSame(t, "took", time.Since(start), timeout)
				locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			}
			b.WantCount(outer, "2")
			if !enters {
				cancel()
				locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired)
			}
			refused.Remove()
			if enters {
				o := locktest.Got(t, got)
				locktest.Pass(time.Second)
				b.WantCount(outer, "1")
				locktest.MustRelease(t, o.Hold)
			}
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// The client corrects the count after an inner release that Redis has not confirmed.
func TestRelease_InnerUnansweredIsCorrected(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
		refused := proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
		locktest.WantErr(t, inner.Release(t.Context()), core.ErrUnavailable)
		b.WantCount(outer, "2")
		refused.Remove()
		locktest.Pass(time.Second)
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}
