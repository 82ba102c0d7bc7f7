package lease

import "time"

// This file is for tests only: it does to the clocks what a machine does that is suspended,
// or a process that is stopped. Nobody is notified. The tests of core need it, too, and so it
// is no test file of this package.

// AdvanceClocks brings one lease nearer to its deadline on either clock.
func (l *Lease) AdvanceClocks(mono, wall time.Duration) {
	l.deadline.mono.Add(-int64(mono))
	l.deadline.wall.Add(-int64(wall))
}

// AdvanceWallClock does so to the wall clock of everything under watch.
func (w *Watchdog) AdvanceWallClock(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead -= d
	for _, s := range w.heap.All() {
		s.lease.AdvanceClocks(0, d)
	}
}
