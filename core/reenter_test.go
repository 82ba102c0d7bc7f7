package core_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

func TestReenter_FiftyFold(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		l := locks.Lock("k")
		ctx := t.Context()
		var holds []*core.Hold
		for range 50 {
			var hold *core.Hold
			ctx, hold = acquired(t, ctx, l)
			holds = append(holds, hold)
		}
		b.wantCount(holds[0], "50")
		for i := 49; i > 0; i-- {
			released(t, holds[i])
			b.wantCount(holds[0], strconv.Itoa(i))
		}
		released(t, holds[0])
		b.wantGone("k")
		if s := locks.Stats(); s.Holds != 0 || s.Waiters != 0 {
			t.Errorf("stats: got %+v, want nothing held", s)
		}
	})
}

func TestReenter_ReleaseInAnyOrder(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l)
		_, inner := acquired(t, context.WithoutCancel(ctx), l)
		released(t, outer)
		b.wantHolders("k", map[string]string{inner.Field(): "1"})
		wantEnded(t, ctx, core.ErrReleased)
		released(t, inner)
		b.wantGone("k")
	})
}

// Children of one request enter at the same time; the count is exact whenever
// nothing is on the way.
func TestReenter_ConcurrentChildrenCountExactly(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l)
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
			b.wantCount(outer, "9")
			for _, hold := range holds {
				children.Go(func() { released(t, hold) })
			}
			children.Wait()
			b.wantCount(outer, "1")
		}
		released(t, outer)
		b.wantGone("k")
	})
}

// A child that enters while its parent releases has the lock to itself, or an
// error: never a hold on a lock that is gone.
func TestReenter_WhileTheOuterIsReleased(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		for range 200 {
			ctx, outer := acquired(t, t.Context(), l)
			type result struct {
				hold *core.Hold
				err  error
			}
			child := make(chan result, 1)
			go func() {
				_, hold, err := l.Acquire(context.WithoutCancel(ctx), core.WaitTime(10*time.Second))
				child <- result{hold, err}
			}()
			released(t, outer)
			r := <-child
			if r.err != nil {
				wantOnly(t, r.err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
				b.wantGone("k")
				continue
			}
			b.wantHolders("k", map[string]string{r.hold.Field(): "1"})
			released(t, r.hold)
			b.wantGone("k")
		}
	})
}

func TestReenter_DetachedContextIsAStranger(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		type key struct{}
		ctx, hold := acquired(t, context.WithValue(t.Context(), key{}, "v"), l)
		apart := core.Detach(ctx)
		_, _, err := l.Acquire(apart, core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		if _, held := core.Held(apart, "k"); held {
			t.Error("Held: a detached context holds the lock")
		}
		if apart.Value(key{}) != "v" {
			t.Error("values are lost")
		}
		released(t, hold)
		wantAlive(t, apart)
	})
}

func TestReenter_ReleasedContextReentersNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, hold := acquired(t, t.Context(), l)
		released(t, hold)
		_, _, err := l.Acquire(ctx)
		wantErr(t, err, core.ErrNotAcquired, context.Canceled, core.ErrReleased)
		_, second := acquired(t, context.WithoutCancel(ctx), l) // alive, but not an owner
		if second.Field() == hold.Field() {
			t.Error("the released hold was entered again")
		}
		b.wantCount(second, "1")
		released(t, second)
	})
}

func TestReenter_TwoRequestsAreTwoOwners(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		type requestID struct{}
		same := context.WithValue(t.Context(), requestID{}, "the same id")
		l := b.locks().Lock("k")
		_, hold := acquired(t, same, l)
		_, _, err := l.Acquire(same, core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		released(t, hold)
	})
}

func TestReenter_AnotherClientIsAStranger(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"))
		_, _, err := b.locks().Lock("k").Acquire(ctx, core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
		released(t, hold)
	})
}

func TestReenter_AnotherLockIsNot(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, a := acquired(t, t.Context(), locks.Lock("a"))
		ctx, other := acquired(t, ctx, locks.Lock("b"))
		_, again := acquired(t, ctx, locks.Lock("a")) // through the hold of b
		b.wantCount(a, "2")
		b.wantCount(other, "1")
		for _, h := range []*core.Hold{again, other, a} {
			released(t, h)
		}
		b.wantGone("a", "b")
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
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, hold := acquired(t, t.Context(), l)
		framework := ginContext{Context: t.Context(), keys: map[string]any{core.ContextKey: ctx.Value(core.ContextKey)}}
		_, inner := acquired(t, framework, l, core.WaitTime(0))
		b.wantCount(hold, "2")
		if h, ok := core.Held(framework, "k"); !ok || h != hold {
			t.Errorf("Held: got %v, %v", h, ok)
		}
		released(t, inner)
		released(t, hold)
	})
}

func TestReenter_RaisesTheLeaseWhenItNeedsMore(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l, core.LeaseTime(time.Minute))
		_, inner := acquired(t, ctx, l, core.LeaseTime(time.Hour))
		b.wantTTL("k", 59*time.Minute, time.Hour)
		released(t, inner)
		released(t, outer)
	})
}

// A watchdog inside a fixed lease keeps the lock for as long as it is there.
func TestReenter_WatchdogInsideAFixedLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l, core.LeaseTime(5*time.Second))
		innerCtx, inner := acquired(t, ctx, l)
		pass(10 * time.Minute)
		wantAlive(t, innerCtx)
		b.wantCount(outer, "2")
		released(t, inner)
		wantAlive(t, ctx)
		pass(31 * time.Second) // nobody renews for the outer one
		wantEnded(t, ctx, core.ErrLost)
		b.wantGone("k")
	})
}

func TestReenter_FixedLeaseInsideAWatchdog(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l)
		_, inner := acquired(t, ctx, l, core.LeaseTime(time.Second))
		pass(10 * time.Minute)
		released(t, inner)
		pass(10 * time.Minute)
		wantAlive(t, ctx)
		released(t, outer)
		b.wantGone("k")
	})
}

func TestReenter_LostLockIsLost(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, hold := acquired(t, t.Context(), l)
		b.Del(t.Context(), "k")
		_, _, err := l.Acquire(ctx)
		wantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.wantGone("k")
	})
}

func TestReenter_BypassesTheQueue(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, outer := acquired(t, t.Context(), locks.Lock("k"))
		waiting, cancel := context.WithCancel(t.Context())
		done := busyCallers(waiting, locks, "k", 3)
		waiters(t, locks, 3)
		_, inner := acquired(t, ctx, locks.Lock("k"), core.WaitTime(time.Minute))
		released(t, inner)
		cancel()
		<-done
		released(t, outer)
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(100*time.Millisecond))
			late := proxy.DelayReply(faultproxy.Containing("3600000"), 200*time.Millisecond)
			if err := raise(locks.Lock("k"), ctx, hold); err != nil { // a refresh has set the lease, late as it was
				wantErr(t, err, core.ErrLost)
			}
			late.Remove()
			wantEnded(t, ctx, core.ErrLost)
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
			pass(time.Second)
			b.wantGone("k")
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
			o := <-acquiring(ctx, lock, core.LeaseTime(time.Hour), core.WaitTime(time.Second))
			wantErr(t, o.err, core.ErrUnavailable)
		}},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), tt.lease)
			lost := proxy.DropReply(scriptOn(t, tt.script, "k"))
			tt.raise(ctx, locks.Lock("k"))
			<-ctx.Done()
			b.wantTTL("k", 10*time.Second, time.Hour)
			lost.Remove()
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
			pass(time.Second)
			b.wantGone("k")
		})
	}
}
