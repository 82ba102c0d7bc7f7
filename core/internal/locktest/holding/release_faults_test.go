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

// TestRelease_SecondExecutionIsOurs loses the reply of a release, and another client takes the lock before the client
// sends the release again. The answer "not mine" then means that the first release has freed the lock.
func TestRelease_SecondExecutionIsOurs(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		r := locktest.NewProxied(t)
		locks := r.Behind(locktest.Patient)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		release := locktest.ScriptOn(t, "release", "k")
		r.Proxy.DropReply(faultproxy.Nth(1, release))
		second := r.Proxy.HoldRequest(faultproxy.Once(release)) // the first rule applies to the first release
		done := locktest.GoRelease(hold)
		<-second.Hit()
		r.WantFreed("k")
		if taken {
			r.Steal("k")
		}
		second.Release()
		if err := <-done; err != nil {
			t.Errorf("taken %v: %v", taken, err)
		}
		if taken {
			r.WantHolder("k", locktest.Stranger)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
	}
}

// In TestRelease_FirstExecutionIsLost the first execution answers "not mine". That is a loss, however long the reply
// takes.
func TestRelease_FirstExecutionIsLost(t *testing.T) {
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
				t.Error("released, but still there")
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

// The reply of a release is lost, and with it the number of other clients that listen. The process leaves the lock to
// them for a while, as it does if it knows of a listener.
func TestRelease_WhileOthersMayListen(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const wakingUp = 6 * time.Millisecond // of a thread of Redisson: after the resend, before this process takes the lock
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		messages := b.Subscribe(t.Context(), "redisson_lock__channel:{k}")
		defer func() { _ = messages.Close() }()
		_, err := messages.Receive(t.Context())
		locktest.Must(t, err)
		other := make(chan error, 1)
		go func() {
			_, err := messages.ReceiveMessage(t.Context())
			locktest.Must(t, err)
			time.Sleep(wakingUp) // in the time of the bubble
			_, hold, err := b.Locks().Lock("k").Acquire(t.Context(), core.WaitTime(0))
			other <- errors.Join(err, hold.Release(t.Context())) // the bubble waits for its goroutines
		}()
		waiting := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.Pass(100 * time.Millisecond) // the run in this process has ended
		lost := proxy.DropReply(faultproxy.Once(locktest.ScriptOn(t, "release", "k")))
		locktest.MustRelease(t, hold)
		if err := <-other; err != nil || lost.Hits() != 1 {
			t.Errorf("%d replies were lost, and a listening waiter has missed its turn: %v", lost.Hits(), err)
		}
		locktest.MustRelease(t, (<-waiting).Hold)
	})
}

// endlessEntry starts a re-entry without a wait time while Redis refuses all commands. It keeps other operations on
// the hold waiting until Redis answers or until cancel, at most for a minute.
func endlessEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) (refused *faultproxy.Rule, got <-chan locktest.Outcome, cancel func()) {
	t.Helper()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	refused = proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
	got = locktest.GoAcquire(ctx, lock)
	locktest.Pass(10 * time.Millisecond)
	if refused.Hits() == 0 {
		t.Fatal("no re-entry has begun")
	}
	return refused, got, cancel
}

// A release waits for its turn as long as it would wait for an answer. Then it goes on in the background, whatever
// the result of the re-entry before it.
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
				o := <-got
				locktest.Must(t, o.Err)
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
func TestRelease_InnerUnansweredIsPutRight(t *testing.T) {
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
