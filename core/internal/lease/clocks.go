package lease

import "time"

// The rest of this file is for tests: it does to the clocks what a machine does that is
// suspended, or a process that is stopped. Nobody is notified.

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
