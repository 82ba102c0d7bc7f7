package lease

import "time"

// This file is for tests only. Its methods simulate the clocks after a machine was suspended or a process was stopped,
// and notify no holder. It is not a test file because the tests of core use these methods, too.

// AdvanceClocks brings one lease closer to its deadline on both clocks.
func (l *Lease) AdvanceClocks(mono, wall time.Duration) {
	l.deadline.mono.Add(-int64(mono))
	l.deadline.wall.Add(-int64(wall))
}

// AdvanceWallClock advances the wall clock of all leases under watch.
func (w *Watchdog) AdvanceWallClock(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead -= d
	for _, s := range w.heap.All() {
		s.lease.AdvanceClocks(0, d)
	}
}
