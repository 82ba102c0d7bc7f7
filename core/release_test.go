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
)

var errHandler = errors.New("the handler's error")

func TestDo_RunsUnderTheLockAndReturnsTheError(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			b.wantCount(core.MustHold(ctx, "k"), "1")
			return errHandler
		})
		if err != errHandler { //nolint:errorlint // untouched is what is promised
			t.Errorf("got %v, want the handler's error as it is", err)
		}
		b.wantGone("k")
	})
}

func TestDo_NotAcquiredDoesNotRun(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		b.take("k", stranger, time.Minute)
		err := b.locks().Lock("k").Do(t.Context(), func(context.Context) error {
			t.Error("it ran")
			return nil
		}, core.WaitTime(0))
		wantErr(t, err, core.ErrNotAcquired)
	})
}

func TestDo_PanicReleasesAndGoesOn(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		defer func() {
			wantSame(t, "recovered", recover(), "boom")
			b.wantGone("k")
		}()
		_ = b.locks().Lock("k").Do(t.Context(), func(context.Context) error { panic("boom") })
		t.Error("Do returned")
	})
}

func TestDo_GoexitReleases(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = l.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
			t.Error("Do returned")
		}()
		<-ended
		b.wantGone("k")
	})
}

func TestDo_LossIsJoinedWithTheHandlersError(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		lose := func(err error) error {
			return l.Do(t.Context(), func(context.Context) error {
				b.take("k", stranger, time.Minute)
				return err
			})
		}
		wantErr(t, lose(errHandler), errHandler, core.ErrLost)
		b.Del(t.Context(), "k")
		wantErr(t, lose(nil), core.ErrLost)
		b.Del(t.Context(), "k")
		if err := lose(core.ErrLost); err != core.ErrLost { //nolint:errorlint // the error itself, said once
			t.Errorf("got %v", err)
		}
		b.wantHolders("k", map[string]string{stranger: "1"})
	})
}

func TestDo_EarlyReleaseAndHandoverAreNoError(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			released(t, core.MustHold(ctx, "k"))
			b.wantGone("k")
			return nil
		})
		wantOK(t, err)
		var moved *core.Hold
		err = l.Do(t.Context(), func(ctx context.Context) error {
			_, moved = core.MustHold(ctx, "k").Handover()
			return nil
		})
		wantOK(t, err)
		b.wantCount(moved, "1")
		released(t, moved)
		b.wantGone("k")
	})
}

func TestRelease_EndsTheContextWithErrReleased(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"))
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		wantAlive(t, child)
		released(t, hold)
		wantEnded(t, ctx, core.ErrReleased)
		wantEnded(t, child, core.ErrReleased)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s", hold.Remaining())
		}
	})
}

func TestRelease_ConcurrentlyIsDoneOnce(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"))
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
				wantErr(t, err, core.ErrNotHeld)
			}
		}
		if fine != 1 {
			t.Errorf("%d of 10 releases succeeded", fine)
		}
	})
}

func TestRelease_OfALostInnerHold(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l)
		_, inner := acquired(t, ctx, l)
		b.take("k", stranger, time.Minute)
		wantErr(t, inner.Release(t.Context()), core.ErrLost)
		wantErr(t, outer.Release(t.Context()), core.ErrLost)
		b.wantHolders("k", map[string]string{stranger: "1"})
	})
}

func TestRefresh_UpAndDown(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Minute))
		for _, lease := range []time.Duration{time.Hour, 30 * time.Second, 2 * time.Hour} {
			if err := hold.Refresh(t.Context(), lease); err != nil {
				t.Fatalf("refresh to %s: %v", lease, err)
			}
			b.wantTTL("k", lease-10*time.Second, lease)
			if left := hold.Remaining(); left > lease || left < lease-lease/100-10*time.Second {
				t.Errorf("remaining after a refresh to %s: got %s", lease, left)
			}
		}
		released(t, hold)
	})
}

func TestRefresh_MakesAWatchdogAFixedLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"))
		pass(time.Minute)
		must(t, hold.Refresh(t.Context(), 5*time.Second))
		pass(4 * time.Second)
		wantAlive(t, ctx)
		pass(time.Second)
		wantEnded(t, ctx, core.ErrLost)
		b.wantGone("k")
	})
}

// Every key of a MultiLock stops being renewed, not only the first.
func TestRefresh_OfAMultiLockStopsEveryRenewal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().MultiLock("a", "b", "c"))
		must(t, hold.Refresh(t.Context(), 15*time.Second))
		pass(15 * time.Second) // beyond the next renewal
		wantEnded(t, ctx, core.ErrLost)
		b.wantGone("a", "b", "c")
	})
}

func TestRefresh_OfAnInnerHoldNeverLowersTheOuters(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := acquired(t, ctx, l, core.LeaseTime(time.Hour))
		wantOK(t, inner.Refresh(t.Context(), time.Second))
		b.wantTTL("k", 59*time.Minute, time.Hour)
		if outer.Remaining() < 58*time.Minute {
			t.Errorf("outer: %s left", outer.Remaining())
		}
		wantOK(t, inner.Refresh(t.Context(), 2*time.Hour))
		b.wantTTL("k", 119*time.Minute, 2*time.Hour)
		b.wantCount(outer, "2")
		released(t, inner)
		released(t, outer)
	})
}

func TestRefresh_BadLeaseSendsNothing(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		before := sent.Hits()
		for _, lease := range []time.Duration{0, -1, time.Microsecond, core.MaxDuration + 1} {
			wantErr(t, hold.Refresh(t.Context(), lease), core.ErrInvalid)
			wantErr(t, hold.Leave(t.Context(), lease), core.ErrInvalid)
		}
		wantSame(t, "commands", sent.Hits()-before, 0)
		released(t, hold)
	})
}

func TestRefresh_OfALostLock(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks().Lock("k"))
		b.take("k", stranger, time.Minute)
		wantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrLost)
		wantEnded(t, ctx, core.ErrLost)
		b.wantTTL("k", 50*time.Second, time.Minute)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

func TestLeave_KeepsTheKeyForAWhile(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks := b.locks()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		must(t, hold.Leave(t.Context(), 5*time.Second))
		wantEnded(t, ctx, core.ErrReleased)
		b.wantTTL("k", 4*time.Second, 5*time.Second)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		if e := notAcquired(t, err); e.RetryAfter <= 4*time.Second {
			t.Errorf("got %+v", e)
		}
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		start := time.Now()
		_, next := acquired(t, t.Context(), locks.Lock("k"))
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the next one got it after %s", took)
		}
		released(t, next)
	})
}

func TestLeave_OfAnInnerHoldIsInvalid(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		ctx, outer := acquired(t, t.Context(), l)
		innerCtx, inner := acquired(t, ctx, l)
		wantErr(t, inner.Leave(t.Context(), time.Second), core.ErrInvalid)
		wantAlive(t, innerCtx)
		released(t, inner)
		released(t, outer)
		b.wantGone("k")
	})
}

func TestLeave_OfALostLock(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"))
		b.take("k", stranger, time.Minute)
		wantErr(t, hold.Leave(t.Context(), time.Hour), core.ErrLost)
		b.wantHolders("k", map[string]string{stranger: "1"})
		b.wantTTL("k", 50*time.Second, time.Minute)
	})
}

func TestHandover_MovesTheHold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		l := b.locks().Lock("k")
		type key struct{}
		request, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		oldCtx, old := acquired(t, request, l)
		ctx, hold := old.Handover()
		cancel()
		wantErr(t, oldCtx.Err(), context.Canceled)
		wantErr(t, old.Release(t.Context()), core.ErrNotHeld)
		pass(5 * time.Minute)
		wantAlive(t, ctx)
		if ctx.Value(key{}) != "v" {
			t.Error("values are lost")
		}
		b.wantCount(hold, "1")
		if _, ok := core.Held(oldCtx, "k"); ok {
			t.Error("the old context still holds the lock")
		}
		if h, ok := core.Held(ctx, "k"); !ok || h != hold {
			t.Error("the new context does not hold the lock")
		}
		_, inner := acquired(t, ctx, l)
		b.wantCount(hold, "2")
		released(t, inner)
		released(t, hold)
		wantEnded(t, ctx, core.ErrReleased)
		b.wantGone("k")
	})
}

func TestHandover_LossEndsTheNewContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		_, old := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Second))
		ctx, hold := old.Handover()
		pass(time.Second)
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
	})
}

// A hold that was lost before the handover has said so.
func TestHandover_OfALostHoldTellsTheLossOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		_, old := acquired(t, t.Context(), b.locks(core.WithObserver(obs.observer())).Lock("k"), core.LeaseTime(time.Second))
		pass(time.Second)
		ctx, hold := old.Handover()
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		wantSame(t, "losses were told", obs.count("loss"), 1)
	})
}

func TestHandover_OfAnEndedHoldIsInert(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		_, old := acquired(t, t.Context(), b.locks(core.WithObserver(obs.observer())).Lock("k"))
		released(t, old)
		ctx, hold := old.Handover()
		if ctx.Err() == nil {
			t.Error("the context is alive")
		}
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		if starts, ends := obs.count("hold start"), obs.count("hold end"); starts != ends {
			t.Errorf("observed %d starts and %d ends of holds", starts, ends)
		}
	})
}

func TestHandover_IsObservedAsOneHoldAfterTheOther(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		_, old := acquired(t, t.Context(), b.locks(core.WithObserver(obs.observer())).Lock("k"))
		_, hold := old.Handover()
		released(t, hold)
		if starts, ends := obs.count("hold start"), obs.count("hold end"); starts != 2 || ends != 2 {
			t.Errorf("observed %d starts and %d ends of holds, want 2 and 2", starts, ends)
		}
	})
}

func TestHeld_NamesAndPrefix(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		ctx, hold := acquired(t, t.Context(), b.locks(core.WithPrefix("shop:")).Lock("k"))
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
		released(t, hold)
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
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks(core.WithPrefix("p:")).Lock("k")
		state, err := l.State(t.Context())
		if err != nil || state.Key != "p:k" || len(state.Holders) != 0 || state.TTL != 0 {
			t.Errorf("free: got %+v, %v", state, err)
		}
		ctx, hold := acquired(t, t.Context(), l)
		_, inner := acquired(t, ctx, l)
		state, err = l.State(t.Context())
		if err != nil || state.Holders[hold.Field()] != 2 || len(state.Holders) != 1 || state.TTL <= 20*time.Second || state.TTL > 30*time.Second {
			t.Errorf("held: got %+v, %v", state, err)
		}
		released(t, inner)
		released(t, hold)

		b.HSet(t.Context(), "p:k", stranger, 3) // no TTL
		state, err = l.State(t.Context())
		if err != nil || state.Holders[stranger] != 3 || state.TTL >= 0 {
			t.Errorf("without TTL: got %+v, %v", state, err)
		}
		b.HSet(t.Context(), "p:k", "mode", "read")
		_, err = l.State(t.Context())
		wantErr(t, err, core.ErrUnavailable)
		b.Del(t.Context(), "p:k")
		b.Set(t.Context(), "p:k", "text", 0)
		_, err = l.State(t.Context())
		wantErr(t, err, core.ErrUnavailable)
	})
}

func TestForceRelease_FreesAndWakes(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		one, two := b.locks(), b.locks()
		wantGot(t, "free", false)(two.Lock("k").ForceRelease(t.Context()))
		ctx, hold := acquired(t, t.Context(), one.Lock("k"))
		next := make(chan *core.Hold, 1)
		go func() {
			_, h, _ := one.Lock("k").Acquire(t.Context())
			next <- h
		}()
		waiters(t, one, 1)
		b.listeners("k", 1)
		wantGot(t, "held", true)(two.Lock("k").ForceRelease(t.Context()))
		got := <-next
		<-ctx.Done()
		wantEnded(t, ctx, core.ErrLost)
		wantErr(t, hold.Release(t.Context()), core.ErrLost)
		b.wantCount(got, "1")
		released(t, got)
	})
}

func TestMultiLock_HasNoStateOrForceRelease(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks().MultiLock("a", "b")
		_, err := l.State(t.Context())
		wantErr(t, err, core.ErrInvalid)
		_, err = l.ForceRelease(t.Context())
		wantErr(t, err, core.ErrInvalid)
	})
}

func TestLeak_StopsRenewingAndIsReported(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()), core.WithWatchdog(3*time.Second))
		forget := func() string {
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.Label("leaky"))
			return hold.Field()
		}
		field := forget()
		collected(t, "the leak to be reported", func() bool { return obs.count("leak") == 1 })
		l := obs.first(t, "leak").data.(core.HoldInfo)
		if l.Field != field || l.Label != "leaky" || l.Key != "k" {
			t.Errorf("leak: got %+v", l)
		}
		if obs.count("loss") != 0 || obs.count("hold end") != 0 {
			t.Errorf("events: got %q", obs.names())
		}
		eventually(t, "the lease to end", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
		eventually(t, "the end to be noticed", func() bool { return locks.Stats().Holds == 0 })
		_, next := acquired(t, t.Context(), locks.Lock("k"))
		released(t, next)
	})
}

// A hold that somebody can still release is no leak, whoever refers to it.
func TestLeak_NotWhileAContextIsAlive(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		obs := newRecorder()
		locks := b.locks(core.WithObserver(obs.observer()), core.WithWatchdog(unhurried(3*time.Second)))
		ctx := func() context.Context {
			ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
			return context.WithValue(ctx, nesting("x"), 1)
		}()
		eventually(t, "a renewal, from which on leaks are looked for", func() bool { return obs.count("renewal") > 0 })
		for range 5 {
			runtime.GC()
		}
		hold, ok := core.Held(ctx, "k")
		if !ok || obs.count("leak") != 0 {
			t.Fatalf("held: %v, events: %q", ok, obs.names())
		}
		released(t, hold)
	})
}
