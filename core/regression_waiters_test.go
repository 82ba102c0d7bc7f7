package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// Redis answers every question within 5 ms, and somebody else holds the lock. The
// second waiter becomes the head when the wait of the first is over, with less time
// left than an answer takes: the lock is taken, and Redis is not unavailable.
func TestAcquire_SecondWaiterWithTheSameWaitIsToldThatTheLockIsTaken(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		_, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Hour))
		defer released(t, hold)
		proxy.DelayReply(scripts, 5*time.Millisecond)
		first := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		waiters(t, locks, 1)
		pass(time.Millisecond) // the second comes after the first
		second := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		for name, got := range map[string]<-chan outcome{"first": first, "second": second} {
			if o := <-got; !errors.Is(o.err, core.ErrNotAcquired) || errors.Is(o.err, core.ErrUnavailable) {
				t.Errorf("%s: got %v after %s, want ErrNotAcquired", name, o.err, o.took)
			}
		}
	})
}

// So it is when a holder of their own client has just left the lock.
func TestAcquire_WaitEndsAsTheHolderOfThisClientLeaves(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		got := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(time.Second))
		waiters(t, locks, 1)
		proxy.DelayReply(scripts, 50*time.Millisecond)
		b.take("k", stranger, time.Hour) // in the place of the hold: its release finds nothing
		pass(945 * time.Millisecond)
		go func() { _ = hold.Release(t.Context()) }()
		if o := <-got; !errors.Is(o.err, core.ErrNotAcquired) || errors.Is(o.err, core.ErrUnavailable) {
			t.Errorf("got %v after %s, want ErrNotAcquired", o.err, o.took)
		}
		pass(time.Second)
	})
}

// One whose hand-off has come too late waits on, as it was let in before: others may have
// come meanwhile, as many as may wait.
func TestAcquire_LateHandOffIsNoReasonToBeTurnedAway(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing(core.WithMaxWaitersPerKey(1), patient)
		core.LetRunsLast(locks)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		first := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(50*time.Millisecond))
		waiters(t, locks, 1)
		pass(time.Millisecond)
		answer := proxy.HoldReply(faultproxy.Once(scriptOn(t, "handoff", "k")))
		done := releasing(hold)
		<-answer.Hit()
		second := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		pass(100 * time.Millisecond)
		answer.Release()
		must(t, <-done)
		for name, got := range map[string]<-chan outcome{"first": first, "second": second} {
			go func() {
				o := <-got
				if o.err != nil {
					t.Errorf("%s: %v", name, o.err)
					return
				}
				released(t, o.hold)
			}()
		}
		pass(time.Minute)
	})
}
