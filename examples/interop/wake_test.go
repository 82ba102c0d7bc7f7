package interop_test

import (
	"slices"
	"testing"
	"time"
)

// The bounds show that a message woke the waiter: without a message, a waiter of Java sleeps until the end of
// a lease of 30 s, and a waiter of Go looks again after half a second to a second. The bounds leave room for
// a busy machine. The tests print the times.
const (
	wokenWithin    = 2 * time.Second        // the limit for a single wait
	maxLate        = 2                      // the allowed number of waiters that were not woken: Redisson sometimes misses a message, mostly before 3.28
	usuallyWithin  = 250 * time.Millisecond // the limit for the median
	handOverRounds = 20                     // the number of measured rounds
	warmUpRounds   = 15                     // rounds before that, in which Java loads its classes
)

// wokenByMessage makes one side release a lock for which the other side waits. Two clients of Redisson and two clients of
// package core are measured for comparison only.
func wokenByMessage(t *testing.T, s *site, k kind) {
	locks, others := s.locks(t), s.locks(t)
	for _, d := range bothWays(s.java, locks) {
		p50, late := wakeUps(t, s, k, d)
		if p50 > usuallyWithin {
			t.Errorf("%s: half of the waiters waited %s or longer after the release, want %s: no message woke them", d, p50, usuallyWithin)
		}
		if late > maxLate {
			t.Errorf("%s: %d waited longer than %s after the release, want at most %d", d, late, wokenWithin, maxLate)
		}
	}
	wakeUps(t, s, k, direction{javaParty{s.java}, javaParty{s.java}})
	wakeUps(t, s, k, direction{goParty{locks}, goParty{others}})
}

// wakeUps measures hand-overs of a kind in a direction.
func wakeUps(t *testing.T, s *site, k kind, d direction) (p50 time.Duration, late int) {
	t.Helper()
	return measureRounds(t, s, d.String(), k.name, func() time.Duration { return handOver(t, s, k, d, unique("wake")) })
}

// measureRounds prints how long rounds take. It returns the median and the number of late rounds, and ends early if too many are
// late.
func measureRounds(t *testing.T, s *site, what, kind string, round func() time.Duration) (p50 time.Duration, late int) {
	t.Helper()
	var times []time.Duration
	for i := 0; i < warmUpRounds+handOverRounds && late <= maxLate; i++ {
		took := round()
		if took > wokenWithin {
			late++
		}
		if i >= warmUpRounds || took > wokenWithin {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	p50 = times[len(times)/2]
	t.Logf("%-16s %-10s %-10s p50 %-8s longest %s", what, s.topology, kind,
		p50.Round(10*time.Microsecond), times[len(times)-1].Round(10*time.Microsecond))
	return p50, late
}

// handOver returns the time from the call of unlock to the return of lock on the other side.
func handOver(t *testing.T, s *site, k kind, d direction, name string) time.Duration {
	t.Helper()
	holder := take(t, d.holder, k, name)
	grants := d.waiter.ask(t, k.rivalKind(), name)
	d.waiter.awaitWaiter(t, s, k.rivalKind(), name)
	released := holder.release(t)
	waiter := receive(t, grants, d.String())
	if waiter.at.Before(released) {
		t.Fatalf("%s: held %s before the release", d, released.Sub(waiter.at))
	}
	waiter.release(t)
	return waiter.at.Sub(released)
}
