package acquiring_test

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

// Children of one request re-enter at the same time. The count is exact when no command is under way.
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

// A child that enters while its parent releases gets the lock or an error, never a hold on a lock that is gone.
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

// A caller re-enters only with the context of the hold, and through the same client.
func TestReenter_Strangers(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(b *locktest.Redis, l core.Lock, before, held context.Context) (context.Context, core.Lock){
		"a detached context": func(_ *locktest.Redis, l core.Lock, _, held context.Context) (context.Context, core.Lock) {
			return core.Detach(held), l
		},
		"a request of one id": func(_ *locktest.Redis, l core.Lock, before, _ context.Context) (context.Context, core.Lock) {
			return before, l
		},
		"another client": func(b *locktest.Redis, _ core.Lock, _, held context.Context) (context.Context, core.Lock) {
			return held, b.Locks().Lock("k")
		},
	} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			type requestID struct{}
			before := context.WithValue(t.Context(), requestID{}, "the same id")
			l := b.Locks().Lock("k")
			held, hold := locktest.MustAcquire(t, before, l)
			ctx, stranger := other(b, l, before, held)
			_, _, err := stranger.Acquire(ctx, core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrNotAcquired)
			locktest.MustRelease(t, hold)
		})
	}
}

// A detached context has the values of the hold's context, but neither its lock nor its end.
func TestDetach_HidesTheLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		type key struct{}
		ctx, hold := locktest.MustAcquire(t, context.WithValue(t.Context(), key{}, "v"), l)
		apart := core.Detach(ctx)
		if _, held := core.Held(apart, "k"); held {
			t.Error("Held: a detached context holds the lock")
		}
		if apart.Value(key{}) != "v" {
			t.Error("the detached context has lost the values")
		}
		locktest.MustRelease(t, hold)
		locktest.WantAlive(t, apart)
	})
}

func TestReenter_ReleasedContext(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		locktest.MustRelease(t, hold)
		_, _, err := l.Acquire(ctx)
		locktest.WantErr(t, err, core.ErrNotAcquired, context.Canceled, core.ErrReleased)
		_, second := locktest.MustAcquire(t, context.WithoutCancel(ctx), l) // alive, but not an owner
		if second.Field() == hold.Field() {
			t.Error("a re-entry has entered the released hold")
		}
		b.WantCount(second, "1")
		locktest.MustRelease(t, second)
	})
}

func TestReenter_AnotherLockIsAnotherHold(t *testing.T) {
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

func TestReenter_LongerLease(t *testing.T) {
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

// If a hold with a fixed lease is re-entered without a lease time, the watchdog keeps the lock until the inner release.
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
		locktest.Pass(31 * time.Second) // no watchdog renews the outer hold
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

// stuckEntry starts a re-entry whose command does not reach Redis. Other operations on the hold wait for the re-entry
// until the backend timeout.
func stuckEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) *faultproxy.Rule {
	t.Helper()
	stuck := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
	go func() { _, _, _ = lock.Acquire(ctx) }()
	<-stuck.Hit()
	return stuck
}

// While Redis is silent, concurrent re-entries end with their wait times.
func TestReenter_SilentRedis_WaitTimeIsKept(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const wait = 100 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		proxy.BlackHole(true)
		var all []<-chan locktest.Outcome
		for range 5 {
			all = append(all, locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(wait)))
		}
		for _, got := range all {
			o := <-got
			locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.Took > wait {
				t.Errorf("took %s, want %s at most", o.Took, wait)
			}
		}
	})
}

// While Redis is silent, a re-entry takes the backend timeout, even if re-entries with shorter wait times have failed
// before. Later re-entries fail at once. When Redis answers again, re-entries succeed.
func TestReenter_SilentRedis_LaterCallersFailAtOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const long = 3 * time.Second
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		proxy.BlackHole(true)
		for range 5 {
			o := <-locktest.GoAcquire(ctx, l, core.WaitTime(20*time.Millisecond))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}
		start := time.Now()
		first, second := locktest.GoAcquire(ctx, l, core.WaitTime(long)), locktest.GoAcquire(ctx, l)
		for _, got := range []<-chan locktest.Outcome{first, second} {
			locktest.WantOnly(t, (<-got).Err, core.ErrUnavailable, core.ErrNotAcquired)
			locktest.WantSoon(t, "the call took %s", start, core.DefaultBackendTimeout)
		}
		for _, parent := range []context.Context{ctx, t.Context()} {
			o := <-locktest.GoAcquire(parent, l, core.WaitTime(long))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			if o.Took != 0 {
				t.Errorf("the next re-entry took %s, want an error at once", o.Took)
			}
		}
		proxy.BlackHole(false)
		locktest.Pass(time.Second)
		_, inner := locktest.MustAcquire(t, ctx, l, core.WaitTime(long))
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}

// If the replies of a re-entry are lost, the client takes the re-entry out of the count again.
func TestReenter_UnansweredIsUndone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		lost := proxy.DropReply(locktest.ScriptOn(t, "sethold", "k"))
		o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(100*time.Millisecond))
		locktest.WantErr(t, o.Err, core.ErrUnavailable)
		locktest.Pass(time.Second)
		lost.Remove()
		b.HSet(t.Context(), "k", hold.Field(), "2") // as if the re-entry was executed last
		locktest.Pass(time.Second)
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
	})
}

// A re-entry that waits for an earlier command without an answer fails at the end of its wait time. The error contains
// the time spent.
func TestReenter_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	const wait = 100 * time.Millisecond
	for name, cancelled := range map[string]bool{"wait time": false, "context": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			l := locks.Lock("k")
			ctx, _ := locktest.MustAcquire(t, t.Context(), l)
			stuckEntry(t, ctx, proxy, l)
			opts := []core.AcquireOption{core.WaitTime(wait)}
			if cancelled {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
				opts = nil
			}
			o := <-locktest.GoAcquire(ctx, l, opts...)
			if o.Took != wait {
				t.Errorf("took %s, want %s", o.Took, wait)
			}
			if !cancelled {
				locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
				return
			}
			locktest.WantErr(t, o.Err, core.ErrNotAcquired, context.DeadlineExceeded)
			if e := locktest.NotAcquired(t, o.Err); e.Waited != wait {
				t.Errorf("Waited: got %s, want %s", e.Waited, wait)
			}
		})
	}
}

func TestReenter_WaitedOfALostLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const slow = 30 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		b.Del(t.Context(), "k")
		proxy.DelayReply(locktest.ScriptOn(t, "sethold", "k"), slow)
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(ctx)
		locktest.WantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		locktest.WantSame(t, "waited", time.Since(start), slow)
	})
}

// A malformed answer does not count as an outage. No other caller fails because of it.
func TestReenter_RefusalIsNotSilence(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "-hexists").Err())
	_, _, err := locks.Lock("k").Acquire(ctx)
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "+hexists").Err())
	_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"), core.WaitTime(0))
	locktest.MustRelease(t, inner)
}

// A Refresh that waits for an earlier command without an answer takes at most the backend timeout in all.
func TestRefresh_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		stuckEntry(t, ctx, proxy, locks.Lock("k"))
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		locktest.WantErr(t, hold.Refresh(short, time.Hour), core.ErrUnavailable, context.DeadlineExceeded)
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrUnavailable)
		locktest.WantSoon(t, "the call took %s", start, core.DefaultBackendTimeout)
		locktest.WantAlive(t, ctx)
	})
}

// However many re-entries have failed, one goroutine corrects the count. A release does not wait for it.
func TestReenter_FailuresDelayNoRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		stuck := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
		for range 20 {
			o := <-locktest.GoAcquire(ctx, l, core.WaitTime(10*time.Millisecond))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}
		sent := stuck.Hits()
		locktest.Pass(500 * time.Millisecond)
		if n := stuck.Hits() - sent; n > 10 {
			t.Errorf("%d writes in half a second, want at most 10", n)
		}
		start := time.Now()
		locktest.MustRelease(t, hold)
		locktest.WantSoon(t, "the release took %s", start, 50*time.Millisecond)
		b.WantGone("k")
		stuck.Release()
		locktest.Pass(2 * time.Second)
		b.WantGone("k")
	})
}
