package core_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

func TestReenter_FiftyFold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		l := locks.Lock("k")
		ctx := t.Context()
		var holds []*core.Hold
		for range 50 {
			var hold *core.Hold
			ctx, hold = locktest.MustAcquire(t, ctx, l)
			holds = append(holds, hold)
		}
		b.WantCount(holds[0], "50")
		for i := 49; i > 0; i-- {
			locktest.MustRelease(t, holds[i])
			b.WantCount(holds[0], strconv.Itoa(i))
		}
		locktest.MustRelease(t, holds[0])
		b.WantGone("k")
		if s := locks.Stats(); s.Holds != 0 || s.Waiters != 0 {
			t.Errorf("stats: got %+v, want nothing held", s)
		}
	})
}

func TestReenter_ReleaseInAnyOrder(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, context.WithoutCancel(ctx), l)
		locktest.MustRelease(t, outer)
		b.WantHolders("k", map[string]string{inner.Field(): "1"})
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.MustRelease(t, inner)
		b.WantGone("k")
	})
}

// Children of one request enter at the same time; the count is exact whenever
// nothing is on the way.
func TestReenter_ConcurrentChildrenCountExactly(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		for range 5 {
			var children sync.WaitGroup
			holds := make([]*core.Hold, 8)
			for i := range holds {
				children.Go(func() {
					_, hold, err := l.Acquire(ctx, core.WaitTime(time.Minute))
					if err != nil {
						t.Errorf("child: %v", err)
						return
					}
					holds[i] = hold
				})
			}
			children.Wait()
			b.WantCount(outer, "9")
			for _, hold := range holds {
				children.Go(func() { locktest.MustRelease(t, hold) })
			}
			children.Wait()
			b.WantCount(outer, "1")
		}
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}

// A child that enters while its parent releases has the lock to itself, or an
// error: never a hold on a lock that is gone.
func TestReenter_WhileTheOuterIsReleased(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		for range 200 {
			ctx, outer := locktest.MustAcquire(t, t.Context(), l)
			type result struct {
				hold *core.Hold
				err  error
			}
			child := make(chan result, 1)
			go func() {
				_, hold, err := l.Acquire(context.WithoutCancel(ctx), core.WaitTime(10*time.Second))
				child <- result{hold, err}
			}()
			locktest.MustRelease(t, outer)
			r := <-child
			if r.err != nil {
				locktest.WantOnly(t, r.err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
				b.WantGone("k")
				continue
			}
			b.WantHolders("k", map[string]string{r.hold.Field(): "1"})
			locktest.MustRelease(t, r.hold)
			b.WantGone("k")
		}
	})
}

func TestReenter_DetachedContextIsAStranger(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		type key struct{}
		ctx, hold := locktest.MustAcquire(t, context.WithValue(t.Context(), key{}, "v"), l)
		apart := core.Detach(ctx)
		_, _, err := l.Acquire(apart, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		if _, held := core.Held(apart, "k"); held {
			t.Error("Held: a detached context holds the lock")
		}
		if apart.Value(key{}) != "v" {
			t.Error("values are lost")
		}
		locktest.MustRelease(t, hold)
		locktest.WantAlive(t, apart)
	})
}

func TestReenter_ReleasedContextReentersNothing(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		locktest.MustRelease(t, hold)
		_, _, err := l.Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled, core.ErrReleased)
		_, second := locktest.MustAcquire(t, context.WithoutCancel(ctx), l) // alive, but not an owner
		if second.Field() == hold.Field() {
			t.Error("the released hold was entered again")
		}
		b.WantCount(second, "1")
		locktest.MustRelease(t, second)
	})
}

func TestReenter_TwoRequestsAreTwoOwners(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		type requestID struct{}
		same := context.WithValue(t.Context(), requestID{}, "the same id")
		l := b.Locks().Lock("k")
		_, hold := locktest.MustAcquire(t, same, l)
		_, _, err := l.Acquire(same, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, hold)
	})
}

func TestReenter_AnotherClientIsAStranger(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		_, _, err := b.Locks().Lock("k").Acquire(ctx, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
		locktest.MustRelease(t, hold)
	})
}

func TestReenter_AnotherLockIsNot(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, a := locktest.MustAcquire(t, t.Context(), locks.Lock("a"))
		ctx, other := locktest.MustAcquire(t, ctx, locks.Lock("b"))
		_, again := locktest.MustAcquire(t, ctx, locks.Lock("a")) // through the hold of b
		b.WantCount(a, "2")
		b.WantCount(other, "1")
		for _, h := range []*core.Hold{again, other, a} {
			locktest.MustRelease(t, h)
		}
		b.WantGone("a", "b")
	})
}

// ginContext looks values up by string only, as gin's context does.
type ginContext struct {
	context.Context

	keys map[string]any
}

func (c ginContext) Value(key any) any {
	if name, ok := key.(string); ok {
		return c.keys[name]
	}
	return nil
}

func TestReenter_FrameworkContextWithStringKeys(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		framework := ginContext{Context: t.Context(), keys: map[string]any{core.ContextKey: ctx.Value(core.ContextKey)}}
		_, inner := locktest.MustAcquire(t, framework, l, core.WaitTime(0))
		b.WantCount(hold, "2")
		if h, ok := core.Held(framework, "k"); !ok || h != hold {
			t.Errorf("Held: got %v, %v", h, ok)
		}
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
	})
}

func TestReenter_RaisesTheLeaseWhenItNeedsMore(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Minute))
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
	})
}

// A watchdog inside a fixed lease keeps the lock for as long as it is there.
func TestReenter_WatchdogInsideAFixedLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(5*time.Second))
		innerCtx, inner := locktest.MustAcquire(t, ctx, l)
		locktest.Pass(10 * time.Minute)
		locktest.WantAlive(t, innerCtx)
		b.WantCount(outer, "2")
		locktest.MustRelease(t, inner)
		locktest.WantAlive(t, ctx)
		locktest.Pass(31 * time.Second) // nobody renews for the outer one
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("k")
	})
}

func TestReenter_FixedLeaseInsideAWatchdog(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Second))
		locktest.Pass(10 * time.Minute)
		locktest.MustRelease(t, inner)
		locktest.Pass(10 * time.Minute)
		locktest.WantAlive(t, ctx)
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}

func TestReenter_LostLockIsLost(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		b.Del(t.Context(), "k")
		_, _, err := l.Acquire(ctx)
		locktest.WantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantGone("k")
	})
}

func TestReenter_BypassesTheQueue(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		waiting, cancel := context.WithCancel(t.Context())
		done := locktest.KeepBusy(waiting, locks, "k", 3)
		locktest.AwaitWaiters(t, locks, 3)
		_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"), core.WaitTime(time.Minute))
		locktest.MustRelease(t, inner)
		cancel()
		<-done
		locktest.MustRelease(t, outer)
	})
}

// The answer to a command that raises the lease may come after the end of the lease that was there. The lock
// is lost by then. It does not last for as long as the lease that was asked for.
func TestHold_RaisedTooLate(t *testing.T) {
	t.Parallel()
	for name, raise := range map[string]func(lock core.Lock, ctx context.Context, hold *core.Hold) error{
		"by a re-entry": func(lock core.Lock, ctx context.Context, _ *core.Hold) error {
			_, _, err := lock.Acquire(ctx, core.LeaseTime(time.Hour))
			return err
		},
		"by a refresh": func(_ core.Lock, ctx context.Context, hold *core.Hold) error {
			return hold.Refresh(context.WithoutCancel(ctx), time.Hour)
		},
		"by a refresh beside another hold": func(lock core.Lock, ctx context.Context, hold *core.Hold) error {
			if _, _, err := lock.Acquire(ctx, core.LeaseTime(100*time.Millisecond)); err != nil {
				return err
			}
			return hold.Refresh(context.WithoutCancel(ctx), time.Hour)
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(100*time.Millisecond))
			late := proxy.DelayReply(faultproxy.Containing("3600000"), 200*time.Millisecond)
			if err := raise(locks.Lock("k"), ctx, hold); err != nil { // a refresh has set the lease, late as it was
				locktest.WantErr(t, err, core.ErrLost)
			}
			late.Remove()
			locktest.WantEnded(t, ctx, core.ErrLost)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// A command that raises the lease may have no answer. When the lease that was there ends, the lock is lost. It
// does not last for as long as the lease that was asked for.
func TestHold_RaisedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lease  core.AcquireOption // the zero value: renewed
		script string
		raise  func(ctx context.Context, lock core.Lock)
	}{
		"by a renewal": {core.AcquireOption{}, "renew", func(context.Context, core.Lock) {}},
		"by a re-entry": {core.LeaseTime(5 * time.Second), "sethold", func(ctx context.Context, lock core.Lock) {
			o := <-locktest.GoAcquire(ctx, lock, core.LeaseTime(time.Hour), core.WaitTime(time.Second))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), tt.lease)
			lost := proxy.DropReply(locktest.ScriptOn(t, tt.script, "k"))
			tt.raise(ctx, locks.Lock("k"))
			<-ctx.Done()
			b.WantTTL("k", 10*time.Second, time.Hour)
			lost.Remove()
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}
