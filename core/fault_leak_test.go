package core_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// TestFault_LeakedHold_DoneIsClosed has work that waits for nothing but the Done
// channel of a hold that nobody refers to any more: it ends with the lease.
func TestFault_LeakedHold_DoneIsClosed(t *testing.T) {
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

// TestFault_LostHold_NeverReleased_IsReported has a hold lost that nobody refers to any more: by
// the end of a fixed lease, before it was ever renewed, and before it is moved. For observers, who
// count holds, it has to end too.
func TestFault_LostHold_NeverReleased_IsReported(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		told := make(leaks, 3)
		locks := b.Locks(core.WithWatchdog(time.Minute), core.WithObserver(told.observer()), locktest.Patient)
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
		locktest.EventuallyCollected(t, "the three holds to be told", func() bool { return len(told) == 3 })
	})
}
