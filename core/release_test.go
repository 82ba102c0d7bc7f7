package core_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

var errHandler = errors.New("the handler's error")

func TestDo_RunsUnderTheLockAndReturnsTheError(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			b.WantCount(core.MustHold(ctx, "k"), "1")
			return errHandler
		})
		if err != errHandler { //nolint:errorlint // untouched is what is promised
			t.Errorf("got %v, want the handler's error as it is", err)
		}
		b.WantGone("k")
	})
}

func TestDo_NotAcquiredDoesNotRun(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		b.Take("k", locktest.Stranger, time.Minute)
		err := b.Locks().Lock("k").Do(t.Context(), func(context.Context) error {
			t.Error("it ran")
			return nil
		}, core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrNotAcquired)
	})
}

func TestDo_PanicReleasesAndGoesOn(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		defer func() {
			locktest.WantSame(t, "recovered", recover(), "boom")
			b.WantGone("k")
		}()
		_ = b.Locks().Lock("k").Do(t.Context(), func(context.Context) error { panic("boom") })
		t.Error("Do returned")
	})
}

func TestDo_GoexitReleases(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned")
		}()
		<-ended
		b.WantGone("k")
	})
}

func TestDo_LossIsJoinedWithTheHandlersError(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		lose := func(err error) error {
			return l.Do(t.Context(), func(context.Context) error {
				b.Take("k", locktest.Stranger, time.Minute)
				return err
			})
		}
		locktest.WantErr(t, lose(errHandler), errHandler, core.ErrLost)
		b.Del(t.Context(), "k")
		locktest.WantErr(t, lose(nil), core.ErrLost)
		b.Del(t.Context(), "k")
		if err := lose(core.ErrLost); err != core.ErrLost { //nolint:errorlint // the error itself, said once
			t.Errorf("got %v", err)
		}
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
	})
}

func TestDo_EarlyReleaseAndHandoverAreNoError(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			locktest.MustRelease(t, core.MustHold(ctx, "k"))
			b.WantGone("k")
			return nil
		})
		locktest.WantOK(t, err)
		var moved *core.Hold
		err = l.Do(t.Context(), func(ctx context.Context) error {
			_, moved = core.MustHold(ctx, "k").Handover()
			return nil
		})
		locktest.WantOK(t, err)
		b.WantCount(moved, "1")
		locktest.MustRelease(t, moved)
		b.WantGone("k")
	})
}

func TestRelease_EndsTheContextWithErrReleased(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		locktest.WantAlive(t, child)
		locktest.MustRelease(t, hold)
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.WantEnded(t, child, core.ErrReleased)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s", hold.Remaining())
		}
	})
}

func TestRelease_ConcurrentlyIsDoneOnce(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		var group sync.WaitGroup
		results := make(chan error, 10)
		for range 10 {
			group.Go(func() { results <- hold.Release(t.Context()) })
		}
		group.Wait()
		close(results)
		fine := 0
		for err := range results {
			if err == nil {
				fine++
			} else {
				locktest.WantErr(t, err, core.ErrNotHeld)
			}
		}
		if fine != 1 {
			t.Errorf("%d of 10 releases succeeded", fine)
		}
	})
}

func TestRelease_OfALostInnerHold(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		b.Take("k", locktest.Stranger, time.Minute)
		locktest.WantErr(t, inner.Release(t.Context()), core.ErrLost)
		locktest.WantErr(t, outer.Release(t.Context()), core.ErrLost)
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
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

// Every key of a MultiLock stops being renewed, not only the first.
func TestRefresh_OfAMultiLockStopsEveryRenewal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().MultiLock("a", "b", "c"))
		locktest.Must(t, hold.Refresh(t.Context(), 15*time.Second))
		locktest.Pass(15 * time.Second) // beyond the next renewal
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantGone("a", "b", "c")
	})
}

func TestRefresh_OfAnInnerHoldNeverLowersTheOuters(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
		locktest.WantOK(t, inner.Refresh(t.Context(), time.Second))
		b.WantTTL("k", 59*time.Minute, time.Hour)
		if outer.Remaining() < 58*time.Minute {
			t.Errorf("outer: %s left", outer.Remaining())
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

func TestRefresh_OfALostLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		b.Take("k", locktest.Stranger, time.Minute)
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrLost)
		locktest.WantEnded(t, ctx, core.ErrLost)
		b.WantTTL("k", 50*time.Second, time.Minute)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

func TestLeave_KeepsTheKeyForAWhile(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.Must(t, hold.Leave(t.Context(), 5*time.Second))
		locktest.WantEnded(t, ctx, core.ErrReleased)
		b.WantTTL("k", 4*time.Second, 5*time.Second)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		if e := locktest.NotAcquired(t, err); e.RetryAfter <= 4*time.Second {
			t.Errorf("got %+v", e)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		start := time.Now()
		_, next := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the next one got it after %s", took)
		}
		locktest.MustRelease(t, next)
	})
}

func TestLeave_OfAnInnerHoldIsInvalid(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		innerCtx, inner := locktest.MustAcquire(t, ctx, l)
		locktest.WantErr(t, inner.Leave(t.Context(), time.Second), core.ErrInvalid)
		locktest.WantAlive(t, innerCtx)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}

func TestLeave_OfALostLock(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		b.Take("k", locktest.Stranger, time.Minute)
		locktest.WantErr(t, hold.Leave(t.Context(), time.Hour), core.ErrLost)
		b.WantHolders("k", map[string]string{locktest.Stranger: "1"})
		b.WantTTL("k", 50*time.Second, time.Minute)
	})
}

func TestHandover_MovesTheHold(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		type key struct{}
		request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		oldCtx, old := locktest.MustAcquire(t, request, l)
		ctx, hold := old.Handover()
		cancel()
		locktest.WantErr(t, oldCtx.Err(), context.Canceled)
		locktest.WantErr(t, old.Release(t.Context()), core.ErrNotHeld)
		locktest.Pass(5 * time.Minute)
		locktest.WantAlive(t, ctx)
		if ctx.Value(key{}) != "v" {
			t.Error("values are lost")
		}
		b.WantCount(hold, "1")
		if _, ok := core.Held(oldCtx, "k"); ok {
			t.Error("the old context still holds the lock")
		}
		if h, ok := core.Held(ctx, "k"); !ok || h != hold {
			t.Error("the new context does not hold the lock")
		}
		_, inner := locktest.MustAcquire(t, ctx, l)
		b.WantCount(hold, "2")
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		locktest.WantEnded(t, ctx, core.ErrReleased)
		b.WantGone("k")
	})
}

func TestHandover_LossEndsTheNewContext(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Second))
		ctx, hold := old.Handover()
		locktest.Pass(time.Second)
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// A hold that was lost before the handover has said so.
func TestHandover_OfALostHoldTellsTheLossOnce(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"), core.LeaseTime(time.Second))
		locktest.Pass(time.Second)
		ctx, hold := old.Handover()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		locktest.WantSame(t, "losses were told", obs.Count("loss"), 1)
	})
}

func TestHandover_OfAnEndedHoldIsInert(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"))
		locktest.MustRelease(t, old)
		ctx, hold := old.Handover()
		if ctx.Err() == nil {
			t.Error("the context is alive")
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		if starts, ends := obs.Count("hold start"), obs.Count("hold end"); starts != ends {
			t.Errorf("observed %d starts and %d ends of holds", starts, ends)
		}
	})
}

func TestHandover_IsObservedAsOneHoldAfterTheOther(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		_, old := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithObserver(obs.Observer())).Lock("k"))
		_, hold := old.Handover()
		locktest.MustRelease(t, hold)
		if starts, ends := obs.Count("hold start"), obs.Count("hold end"); starts != 2 || ends != 2 {
			t.Errorf("observed %d starts and %d ends of holds, want 2 and 2", starts, ends)
		}
	})
}

func TestHeld_NamesAndPrefix(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks(core.WithPrefix("shop:")).Lock("k"))
		if h, ok := core.Held(ctx, "k"); !ok || h != hold {
			t.Errorf("Held: got %v, %v", h, ok)
		}
		for _, name := range []string{"shop:k", "other", ""} {
			if _, ok := core.Held(ctx, name); ok {
				t.Errorf("Held(%q) is true", name)
			}
		}
		if _, ok := core.Held(t.Context(), "k"); ok {
			t.Error("Held without a hold")
		}
		locktest.MustRelease(t, hold)
		if _, ok := core.Held(ctx, "k"); ok {
			t.Error("Held after the release")
		}
	})
}

func TestMustHold_PanicsWithTheName(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, `"order:42"`) {
			t.Errorf("panic: got %v", text)
		}
	}()
	core.MustHold(t.Context(), "order:42")
}

func TestState_ReadsHoldersAndTTL(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks(core.WithPrefix("p:")).Lock("k")
		state, err := l.State(t.Context())
		if err != nil || state.Key != "p:k" || len(state.Holders) != 0 || state.TTL != 0 {
			t.Errorf("free: got %+v, %v", state, err)
		}
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		_, inner := locktest.MustAcquire(t, ctx, l)
		state, err = l.State(t.Context())
		if err != nil || state.Holders[hold.Field()] != 2 || len(state.Holders) != 1 || state.TTL <= 20*time.Second || state.TTL > 30*time.Second {
			t.Errorf("held: got %+v, %v", state, err)
		}
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)

		b.HSet(t.Context(), "p:k", locktest.Stranger, 3) // no TTL
		state, err = l.State(t.Context())
		if err != nil || state.Holders[locktest.Stranger] != 3 || state.TTL >= 0 {
			t.Errorf("without TTL: got %+v, %v", state, err)
		}
		b.HSet(t.Context(), "p:k", "mode", "read")
		_, err = l.State(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
		b.Del(t.Context(), "p:k")
		b.Set(t.Context(), "p:k", "text", 0)
		_, err = l.State(t.Context())
		locktest.WantErr(t, err, core.ErrUnavailable)
	})
}

func TestForceRelease_FreesAndWakes(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		one, two := b.Locks(), b.Locks()
		locktest.WantGot(t, "free", false)(two.Lock("k").ForceRelease(t.Context()))
		ctx, hold := locktest.MustAcquire(t, t.Context(), one.Lock("k"))
		next := make(chan *core.Hold, 1)
		go func() {
			_, h, _ := one.Lock("k").Acquire(t.Context())
			next <- h
		}()
		locktest.AwaitWaiters(t, one, 1)
		b.AwaitListeners("k", 1)
		locktest.WantGot(t, "held", true)(two.Lock("k").ForceRelease(t.Context()))
		got := <-next
		<-ctx.Done()
		locktest.WantEnded(t, ctx, core.ErrLost)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.WantCount(got, "1")
		locktest.MustRelease(t, got)
	})
}

func TestMultiLock_HasNoStateOrForceRelease(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().MultiLock("a", "b")
		_, err := l.State(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
		_, err = l.ForceRelease(t.Context())
		locktest.WantErr(t, err, core.ErrInvalid)
	})
}

func TestLeak_StopsRenewingAndIsReported(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()), core.WithWatchdog(3*time.Second))
		forget := func() string {
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.Label("leaky"))
			return hold.Field()
		}
		field := forget()
		locktest.EventuallyCollected(t, "the leak to be reported", func() bool { return obs.Count("leak") == 1 })
		l := obs.First(t, "leak").Data.(core.HoldInfo)
		if l.Field != field || l.Label != "leaky" || l.Key != "k" {
			t.Errorf("leak: got %+v", l)
		}
		if obs.Count("loss") != 0 || obs.Count("hold end") != 0 {
			t.Errorf("events: got %q", obs.Names())
		}
		locktest.Eventually(t, "the lease to end", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
		locktest.Eventually(t, "the end to be noticed", func() bool { return locks.Stats().Holds == 0 })
		_, next := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.MustRelease(t, next)
	})
}

// A hold that somebody can still release is no leak, whoever refers to it.
func TestLeak_NotWhileAContextIsAlive(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()), core.WithWatchdog(locktest.Unhurried(3*time.Second)))
		ctx := func() context.Context {
			ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			return context.WithValue(ctx, locktest.Nested("x"), 1)
		}()
		locktest.Eventually(t, "a renewal, from which on leaks are looked for", func() bool { return obs.Count("renewal") > 0 })
		for range 5 {
			runtime.GC()
		}
		hold, ok := core.Held(ctx, "k")
		if !ok || obs.Count("leak") != 0 {
			t.Fatalf("held: %v, events: %q", ok, obs.Names())
		}
		locktest.MustRelease(t, hold)
	})
}
