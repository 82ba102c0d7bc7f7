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

var aMinute = core.MaxHold(time.Minute)

// The hold of each kind ends at its limit. The lock stays until the lease ends, and is not renewed until then.
func TestMaxHold_EachKind(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine, aMinute)
		locktest.Pass(59 * time.Second)
		locktest.WantAlive(t, ctx)
		locktest.Pass(time.Second)
		locktest.WantEnded(t, ctx, core.ErrHeldTooLong)
		locktest.WantErr(t, context.Cause(ctx), core.ErrLost, core.ErrNotHeld)
		sent := w.WatchScripts()
		w.WantTaken()
		if left := hold.Remaining(); left <= 0 {
			t.Errorf("remaining when the limit has passed: got %s, want the rest of the lease", left)
		}
		locktest.Pass(9 * time.Second)
		for i, s := range sent {
			if n := s.Hits(); n > 0 {
				t.Errorf("server %d: %d scripts after the limit, want none", i, n)
			}
		}
		w.WantFree()
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
	}, nineSeconds)
}

// A handler that obeys its context releases the lock soon after the limit. The release frees the lock at once, and also
// returns the error.
func TestMaxHold_EachKind_ReleaseFreesAtOnce(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine, aMinute)
		next := locktest.GoAcquire(t.Context(), w.Other)
		<-ctx.Done()
		locktest.Pass(100 * time.Millisecond)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
		o := locktest.Got(t, next)
		if o.Took < time.Minute || o.Took > 62*time.Second { // a Redlock and a spin lock poll
			t.Errorf("the next holder waited for %s, want a little more than a minute", o.Took)
		}
		locktest.MustRelease(t, o.Hold)
		locktest.Pass(time.Second)
		w.WantNothing("after both")
	})
}

func TestMaxHold_Do(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		fn   func(ctx context.Context) error
		want []error
	}{
		"ends early":             {func(context.Context) error { locktest.Pass(time.Second); return nil }, nil},
		"obeys, its own error":   {func(ctx context.Context) error { <-ctx.Done(); return broken }, []error{broken, core.ErrHeldTooLong}},
		"obeys, ctx.Err":         {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, []error{context.Canceled, core.ErrHeldTooLong}},
		"obeys, the cause":       {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, []error{core.ErrHeldTooLong}},
		"ignores it":             {func(context.Context) error { locktest.Pass(65 * time.Second); return nil }, []error{core.ErrHeldTooLong}},
		"ignores it for minutes": {func(context.Context) error { locktest.Pass(5 * time.Minute); return nil }, []error{core.ErrHeldTooLong}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			err := b.Locks(core.WithObserver(obs.Observer())).Lock("k").Do(t.Context(), tt.fn, aMinute)
			if tt.want == nil {
				locktest.WantOK(t, err)
			} else {
				locktest.WantErr(t, err, tt.want...)
			}
			b.WantGone("k")
			locktest.Pass(2 * time.Minute)
			locktest.WantSame(t, "losses reported", obs.Count("loss"), min(len(tt.want), 1))
		})
	}
}

// A hold has its own limit and the limit of the hold that it re-enters.
func TestMaxHold_Reentry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		outer, inner       core.AcquireOption
		outerEnds, innerAt time.Duration // 0: within an hour it does not end
		renewed            bool          // after two minutes the lease is still renewed
	}{
		"outer limited":                     {outer: aMinute, outerEnds: time.Minute, innerAt: time.Minute},
		"inner limited":                     {inner: aMinute, innerAt: 70 * time.Second, renewed: true},
		"both, inner earlier":               {outer: core.MaxHold(2 * time.Hour), inner: aMinute, innerAt: 70 * time.Second, renewed: true},
		"both, outer earlier":               {outer: aMinute, inner: aMinute, outerEnds: time.Minute, innerAt: time.Minute},
		"inner limited, outer fixed":        {outer: core.LeaseTime(2 * time.Hour), inner: aMinute, innerAt: 70 * time.Second},
		"outer limited, inner fixed, short": {outer: aMinute, inner: core.LeaseTime(time.Second), outerEnds: time.Minute},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			start := time.Now()
			ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), tt.outer)
			locktest.Pass(10 * time.Second)
			innerCtx, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"), tt.inner)
			for _, end := range []struct {
				ctx context.Context
				at  time.Duration
			}{{innerCtx, tt.innerAt}, {ctx, tt.outerEnds}} {
				if end.at > 0 {
					<-end.ctx.Done()
					locktest.WantSame(t, "time of the end", time.Since(start), end.at)
					locktest.WantErr(t, context.Cause(end.ctx), core.ErrHeldTooLong)
				}
			}
			locktest.Pass(2*time.Minute - time.Since(start))
			renewals := proxy.Watch(locktest.ScriptOn(t, "renew", "k"))
			locktest.Pass(58 * time.Minute)
			if n := renewals.Hits(); n > 0 != tt.renewed {
				t.Errorf("%d renewals after the limit", n)
			}
			if tt.outerEnds == 0 {
				locktest.WantAlive(t, ctx)
				locktest.WantErr(t, inner.Release(t.Context()), core.ErrHeldTooLong)
				b.WantCount(outer, "1")
				locktest.MustRelease(t, outer)
			}
			b.WantGone("k")
		})
	}
}

// A stuck caller that re-enters after the limit of its hold gets no longer lease than the rest of that limit.
func TestMaxHold_ReentryAfterTheLimit(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		lock := b.Locks().Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), lock, aMinute)
		<-ctx.Done()
		_, _, err := lock.Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled)
		inner, again := locktest.MustAcquire(t, context.WithoutCancel(ctx), lock)
		locktest.Pass(0)
		locktest.WantEnded(t, inner, core.ErrHeldTooLong)
		locktest.Pass(30 * time.Second)
		b.WantGone("k")
		locktest.WantErr(t, again.Release(t.Context()), core.ErrHeldTooLong)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
	})
}

// A lease that Refresh has fixed has no limit. After the limit Refresh sends nothing.
func TestMaxHold_Refresh(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one key": {"k"}, "several": {"a", "k"}} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, sent := b.Counted()
			lock := locks.MultiLock(names...)
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock, aMinute)
			locktest.Pass(59 * time.Second)
			locktest.Must(t, hold.Refresh(t.Context(), time.Hour))
			locktest.Pass(50 * time.Minute)
			locktest.WantAlive(t, ctx)
			locktest.MustRelease(t, hold)

			ctx, hold = locktest.MustAcquire(t, t.Context(), lock, aMinute)
			<-ctx.Done()
			before := sent.Hits()
			locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrHeldTooLong)
			locktest.WantSame(t, "scripts of Refresh", sent.Hits()-before, 0)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
			b.WantGone(names...)
		})
	}
}

// A Refresh that waits for its turn when the limit passes sends nothing.
func TestMaxHold_RefreshWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(10 * time.Second))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), aMinute)
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"))
		locktest.Pass(59 * time.Second)
		slow := proxy.HoldReply(locktest.ScriptOn(t, "sethold", "k"))
		first := locktest.GoRelease(inner)
		<-slow.Hit()
		late := locktest.Go(func() error { return hold.Refresh(t.Context(), time.Hour) })
		locktest.Pass(2 * time.Second)
		slow.Release()
		locktest.Must(t, <-first)
		locktest.WantErr(t, <-late, core.ErrHeldTooLong)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
		b.WantGone("k")
	})
}

// The limit of a hold that is handed over still counts from its acquisition.
func TestMaxHold_Handover(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"before the limit": 50 * time.Second, "after it": 61 * time.Second} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			start := time.Now()
			_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), aMinute)
			locktest.Pass(at)
			ctx, hold := old.Handover()
			<-ctx.Done()
			locktest.WantSame(t, "time of the end", time.Since(start), max(at, time.Minute))
			locktest.WantEnded(t, ctx, core.ErrHeldTooLong)
			locktest.WantErr(t, old.Release(t.Context()), core.ErrNotHeld)
			if left := hold.Remaining(); left <= 0 {
				t.Errorf("remaining: got %s, want the rest of the lease", left)
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrHeldTooLong)
			b.WantGone("k")
			locktest.WantSame(t, "losses reported", obs.Count("loss"), 1)
		})
	}
}

func TestMaxHold_Leave(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), aMinute)
		<-ctx.Done()
		locktest.WantErr(t, hold.Leave(t.Context(), 5*time.Second), core.ErrHeldTooLong)
		b.WantTTL("k", 4*time.Second, 5*time.Second)
		locktest.Pass(5 * time.Second)
		b.WantGone("k")
	})
}

// A hold with a limit that was garbage-collected is a leak, and not a hold that lasted for too long.
func TestMaxHold_Leak(t *testing.T) {
	t.Parallel()
	b, obs := locktest.Embedded(t), &locktest.Recorder{}
	locks := b.Locks(core.WithObserver(obs.Observer()), core.WithWatchdog(3*time.Second))
	func() { locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.MaxHold(time.Hour)) }()
	locktest.EventuallyCollected(t, "the leak to be reported", func() bool { return obs.Count("leak") == 1 })
	locktest.Eventually(t, "the lease to end", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
	locktest.WantSame(t, "losses reported", obs.Count("loss"), 0)
}

// Observers are notified of the limit once. The result of the hold reports the limit, and a loss only if the lease had
// ended, too.
func TestMaxHold_Observers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		released       time.Duration // after the limit
		fails          func(p *faultproxy.Proxy, locks *core.Client)
		want           error
		isLost, isLeft bool
	}{
		"released in time":     {released: time.Second, want: core.ErrHeldTooLong},
		"released after it":    {released: time.Minute, want: core.ErrHeldTooLong, isLost: true},
		"client closed before": {released: time.Second, want: core.ErrClosed, isLeft: true, fails: func(_ *faultproxy.Proxy, locks *core.Client) { <-locktest.GoClose(locks) }},
		"no answer":            {released: time.Second, want: core.ErrUnavailable, fails: func(p *faultproxy.Proxy, _ *core.Client) { p.BlackHole(true) }},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), aMinute)
			<-ctx.Done()
			locktest.Pass(tt.released)
			if tt.fails != nil {
				tt.fails(proxy, locks)
			}
			err := hold.Release(t.Context())
			locktest.WantErr(t, err, tt.want)
			locktest.WantSame(t, "losses reported", obs.Count("loss"), 1)
			locktest.WantErr(t, obs.First(t, "loss").Data.(core.Loss).Cause, core.ErrHeldTooLong)
			r := obs.Last(t, "hold end").Data.(core.HoldResult)
			if !r.HeldTooLong || r.Lost != tt.isLost || r.Left != tt.isLeft || r.Remaining > 0 == (tt.isLost || tt.isLeft) || !errors.Is(r.Err, tt.want) {
				t.Errorf("hold end: got %+v", r)
			}
		})
	}
}

// A lost hold stays lost when its limit passes.
func TestMaxHold_LostBefore(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), aMinute)
		b.Del(t.Context(), "k")
		<-ctx.Done()
		locktest.Pass(2 * time.Minute)
		locktest.WantOnly(t, context.Cause(ctx), core.ErrLost, core.ErrHeldTooLong)
		locktest.WantOnly(t, hold.Refresh(t.Context(), time.Minute), core.ErrLost, core.ErrHeldTooLong)
		locktest.WantOnly(t, hold.Release(t.Context()), core.ErrLost, core.ErrHeldTooLong)
		locktest.WantSame(t, "losses reported", obs.Count("loss"), 1)
	})
}

// The limit passes while a hold is released, handed over or refreshed. The outcome is one of both, and the next caller of
// the run keeps the lock.
func TestMaxHold_Races(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *core.Hold) (*core.Hold, error){
		"release":  func(h *core.Hold) (*core.Hold, error) { return nil, h.Release(context.Background()) },
		"handover": func(h *core.Hold) (*core.Hold, error) { _, to := h.Handover(); return to, nil },
		"refresh":  func(h *core.Hold) (*core.Hold, error) { return h, h.Refresh(context.Background(), time.Hour) },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks := b.Locks()
			for range 50 {
				_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.MaxHold(time.Millisecond))
				limit := time.NewTimer(time.Millisecond)
				next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
				<-limit.C // the timer of the hold fires, too
				to, err := end(hold)
				if err != nil {
					locktest.WantErr(t, err, core.ErrHeldTooLong)
				}
				if to != nil {
					if err := to.Release(t.Context()); err != nil {
						locktest.WantErr(t, err, core.ErrHeldTooLong)
					}
				}
				o := locktest.Got(t, next)
				locktest.Pass(31 * time.Second) // a lease that is not renewed has ended
				locktest.WantAlive(t, o.Ctx)
				locktest.MustRelease(t, o.Hold)
			}
			b.WantGone("k")
		})
	}
}
