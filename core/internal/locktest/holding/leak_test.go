package holding_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// TestLeak_DoneIsClosed leaves a goroutine that waits for the Done channel of a hold without any reference. The
// channel is closed at the end of the lease.
func TestLeak_DoneIsClosed(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks(core.WithWatchdog(3*time.Second), locktest.Patient)
		for name, opt := range map[string]core.AcquireOption{"watchdog": {}, "fixed": core.LeaseTime(200 * time.Millisecond)} {
			done := func() <-chan struct{} {
				ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock(name), opt)
				return ctx.Done()
			}()
			ended := func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			}
			locktest.EventuallyCollected(t, "the context of a leaked hold to end", ended)
		}
		ctx, outer := locktest.MustAcquire(t, context.Background(), locks.Lock("nested"))
		func() { locktest.MustAcquire(t, ctx, locks.Lock("nested")) }()
		for range 5 {
			runtime.GC()
		}
		locktest.EventuallyCollected(t, "the inner hold to be forgotten", func() bool { return len(locks.Holds()) == 1 })
		locktest.MustRelease(t, outer)
		b.WantGone("nested")
	})
}

// TestLeak_LostHoldIsReported loses holds without any reference: one at the end of its fixed lease, one by a forced
// release before its first renewal, and one before its handover. Observers are notified of the end of each.
func TestLeak_LostHoldIsReported(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		seen := make(leaks, 3)
		locks := b.Locks(core.WithWatchdog(time.Minute), core.WithObserver(seen.observer()), locktest.Patient)
		fixed := core.LeaseTime(200 * time.Millisecond)
		func() {
			locktest.MustAcquire(t, t.Context(), locks.Lock("fixed"), fixed)
			locktest.MustAcquire(t, t.Context(), locks.Lock("forced"))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("moved"), fixed)
			<-ctx.Done()
			hold.Handover()
		}()
		if _, err := locks.Lock("forced").ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		locktest.EventuallyCollected(t, "reports of the three holds", func() bool { return len(seen) == 3 })
	})
}

// leaks counts leaked holds. Unlike a Recorder it keeps no context.
type leaks chan struct{}

func (l leaks) observer() *core.Observer {
	return &core.Observer{Leak: func(context.Context, core.HoldInfo) { l <- struct{}{} }}
}

// Nested holds without any reference keep neither each other nor the lock alive.
func TestLeak_NestedHolds(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second // a slow machine does not miss it
	for name, depth := range map[string]int{"two": 2, "three": 3} {
		locktest.ParallelEachRedis(t, name, func(t *testing.T, b *locktest.Redis) {
			seen := make(leaks, depth)
			locks := b.Locks(core.WithWatchdog(lease), core.WithObserver(seen.observer()))
			func() {
				ctx := t.Context()
				for range depth {
					ctx, _ = locktest.MustAcquire(t, ctx, locks.Lock("k"))
				}
			}()
			locktest.EventuallyCollected(t, "the key of leaked holds to go", func() bool { return b.Exists(context.Background(), "k").Val() == 0 })
			locktest.EventuallyCollected(t, "reports of the leaks", func() bool { return len(seen) == depth })
			locktest.Eventually(t, "no hold to be left", func() bool { return len(locks.Holds()) == 0 })
		})
	}
}

func TestLeak_OfARenewedHold(t *testing.T) {
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

// A hold is not leaked while a caller can still release it, directly or through its context.
func TestLeak_NotWhileAContextIsAlive(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		obs := &locktest.Recorder{}
		locks := b.Locks(core.WithObserver(obs.Observer()), core.WithWatchdog(locktest.Unhurried(3*time.Second)))
		ctx := func() context.Context {
			ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			return context.WithValue(ctx, locktest.Nested("x"), 1)
		}()
		locktest.Eventually(t, "a renewal, after which the client looks for leaks", func() bool { return obs.Count("renewal") > 0 })
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
