package lease_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// After the machine was suspended, the scheduler finds expired leases within a second, whenever it planned
// its next run.
func TestWatchdog_WallClockJumps(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		short, long, renewed := b.held("short", time.Minute), b.held("long", time.Hour), b.renewed("renewed")
		pass(time.Second)
		b.AdvanceWallClock(2 * time.Minute)
		pass(1100 * time.Millisecond)
		wantLost(t, short, errOver)
		wantLost(t, renewed, errOver)
		wantHeld(t, long)
		if b.Count() != 1 {
			t.Errorf("%d under watch", b.Count())
		}
	})
}

// If the machine is suspended during a lease, that time is subtracted from the lease, and the holder is
// notified in time.
func TestWatchdog_WallClockJumpsWithinTheLease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h, other := b.held("k", 30*time.Second), b.held("other", 25*time.Second)
		pass(time.Second)
		b.AdvanceWallClock(10 * time.Second)
		end := after(h.Left(time.Now()))
		pass(time.Until(end) - time.Millisecond)
		wantHeld(t, h)
		wantLost(t, other, errOver)
		pass(3 * time.Millisecond)
		wantLost(t, h, errOver)
	})
}

// Setting the wall clock back only causes an extra run of the scheduler.
func TestWatchdog_WallClockIsSetBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		h := b.held("k", 30*time.Second)
		b.AdvanceWallClock(20 * time.Second)
		pass(5 * time.Second)
		b.AdvanceWallClock(-20 * time.Second)
		pass(20 * time.Second)
		wantHeld(t, h)
		pass(5 * time.Second)
		wantLost(t, h, errOver)
	})
}

func TestWatchdog_Drained(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		<-b.Drained() // nothing is held
		released, lost, over := b.held("released", time.Minute), b.held("lost", time.Minute), b.held("over", time.Second)
		drained, also := b.Drained(), b.Drained()
		if got := b.Leases(); len(got) != 3 || b.Count() != 3 || !slices.Contains(got, &lost.Lease) || lost.Holder() != lost {
			t.Errorf("%d leases, %d counted", len(got), b.Count())
		}
		for _, end := range []func(){released.End, func() { lost.Lose(errGone) }, func() { <-drained }} {
			select {
			case <-drained:
				t.Error("drained too early")
			default:
			}
			end()
		}
		<-also
		wantLost(t, over, errOver)
		b.held("another", time.Minute)
		again := b.Drained()
		b.Leases()[0].End()
		<-again
	})
}

// Many leases need only a few calls per interval. No lease needs a goroutine.
func TestWatchdog_ManyLeases(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const leases, nodes = 10_000, 3
		holders := make([]*holding, leases)
		for i := range holders {
			holders[i] = b.renewed(fmt.Sprint("node", i%nodes, "/", i))
		}
		before := b.spawned()
		const rounds = 6
		pass(rounds * third)
		calls := b.redis.calls()
		renewals := 0
		for _, c := range calls {
			renewals += len(c.keys)
		}
		if renewals < leases*(rounds-1) {
			t.Errorf("%d renewals of %d leases in %d rounds", renewals, leases, rounds)
		}
		if len(calls) > 4*nodes*rounds {
			t.Errorf("%d calls", len(calls))
		}
		if n := b.spawned() - before; n > 2*len(calls) {
			t.Errorf("%d goroutines for %d calls", n, len(calls))
		}
		for _, h := range holders {
			if !h.Alive(time.Now()) {
				t.Fatalf("%s was lost: %v", h.Key, h.Loss())
			}
			h.End()
		}
	})
}

// A new lease with an early deadline wakes a watchdog that sleeps for long.
func TestWatchdog_WakesForAnEarlierDeadline(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		pass(time.Minute) // it sleeps
		late, early := b.held("late", time.Hour), b.held("early", 100*time.Millisecond)
		pass(100 * time.Millisecond)
		wantLost(t, early, errOver)
		wantHeld(t, late)
	})
}
