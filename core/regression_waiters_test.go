package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Redis answers every question within 5 ms, and somebody else holds the lock. The
// second waiter becomes the head when the wait of the first is over, with less time
// left than an answer takes: the lock is taken, and Redis is not unavailable.
func TestAcquire_SecondWaiterWithTheSameWaitIsToldThatTheLockIsTaken(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
		defer locktest.MustRelease(t, hold)
		proxy.DelayReply(locktest.Scripts, 5*time.Millisecond)
		first := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		locktest.AwaitWaiters(t, locks, 1)
		locktest.Pass(time.Millisecond) // the second comes after the first
		second := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		for name, got := range map[string]<-chan locktest.Outcome{"first": first, "second": second} {
			if o := <-got; !errors.Is(o.Err, core.ErrNotAcquired) || errors.Is(o.Err, core.ErrUnavailable) {
				t.Errorf("%s: got %v after %s, want ErrNotAcquired", name, o.Err, o.Took)
			}
		}
	})
}

// So it is when a holder of their own client has just left the lock.
func TestAcquire_WaitEndsAsTheHolderOfThisClientLeaves(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		got := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		locktest.AwaitWaiters(t, locks, 1)
		proxy.DelayReply(locktest.Scripts, 50*time.Millisecond)
		b.Take("k", locktest.Stranger, time.Hour) // in the place of the hold: its release finds nothing
		locktest.Pass(945 * time.Millisecond)
		go func() { _ = hold.Release(t.Context()) }()
		if o := <-got; !errors.Is(o.Err, core.ErrNotAcquired) || errors.Is(o.Err, core.ErrUnavailable) {
			t.Errorf("got %v after %s, want ErrNotAcquired", o.Err, o.Took)
		}
		locktest.Pass(time.Second)
	})
}

// One whose hand-off has come too late waits on, as it was let in before: others may have
// come meanwhile, as many as may wait.
func TestAcquire_LateHandOffIsNoReasonToBeTurnedAway(t *testing.T) {
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
