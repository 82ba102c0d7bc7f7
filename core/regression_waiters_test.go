package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
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
