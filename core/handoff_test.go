package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A waiter whose hand-off comes too late goes on waiting, although the queue has filled up in between: it was
// admitted before.
func TestHandoff_LateIsNotARefusal(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithMaxWaitersPerKey(1), locktest.Patient)
		core.LetRunsLast(locks)
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		first := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(50*time.Millisecond))
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Pass(time.Millisecond)
		answer := proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "handoff", "k")))
		done := locktest.GoRelease(hold)
		<-answer.Hit()
		second := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		locktest.Pass(100 * time.Millisecond)
		answer.Release()
		locktest.Must(t, <-done)
		for name, got := range map[string]<-chan locktest.Outcome{"first": first, "second": second} {
			go func() {
				o := <-got
				if o.Err != nil {
					t.Errorf("%s: %v", name, o.Err)
					return
				}
				locktest.MustRelease(t, o.Hold)
			}()
		}
		locktest.Pass(time.Minute)
	})
}
