package core_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
)

// TestFault_LeakedHold_DoneIsClosed has work that waits for nothing but the Done
// channel of a hold that nobody refers to any more: it ends with the lease.
func TestFault_LeakedHold_DoneIsClosed(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		locks := b.locks(core.WithWatchdog(3*time.Second), patient)
		for name, opt := range map[string]core.AcquireOption{"watchdog": {}, "fixed": core.LeaseTime(200 * time.Millisecond)} {
			done := func() <-chan struct{} {
				ctx, _ := acquired(t, t.Context(), locks.Lock(name), opt)
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
			collected(t, "the context of a leaked hold to end", ended)
		}
		ctx, outer := acquired(t, context.Background(), locks.Lock("nested"))
		func() { acquired(t, ctx, locks.Lock("nested")) }()
		for range 5 {
			runtime.GC()
		}
		collected(t, "the inner hold to be forgotten", func() bool { return len(locks.Holds()) == 1 })
		released(t, outer)
		b.wantGone("nested")
	})
}

// TestFault_LostHold_NeverReleased_IsReported has a hold lost that nobody refers to any more: by
// the end of a fixed lease, before it was ever renewed, and before it is moved. For observers, who
// count holds, it has to end too.
func TestFault_LostHold_NeverReleased_IsReported(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		told := make(leaks, 3)
		locks := b.locks(core.WithWatchdog(time.Minute), core.WithObserver(told.observer()), patient)
		fixed := core.LeaseTime(200 * time.Millisecond)
		func() {
			acquired(t, t.Context(), locks.Lock("fixed"), fixed)
			acquired(t, t.Context(), locks.Lock("forced"))
			ctx, hold := acquired(t, t.Context(), locks.Lock("moved"), fixed)
			<-ctx.Done()
			hold.Handover()
		}()
		if _, err := locks.Lock("forced").ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		collected(t, "the three holds to be told", func() bool { return len(told) == 3 })
	})
}
