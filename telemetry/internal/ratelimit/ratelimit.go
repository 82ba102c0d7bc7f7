package telemetry

import (
	"sync"
	"time"
)

// Of one kind of record, at most logBurst are written in each logWindow.
const (
	logBurst  = 10
	logWindow = 10 * time.Second
)

// limiter lets through a few records per window and counts the others.
type limiter struct {
	mu         sync.Mutex
	opened     time.Time
	passed     int
	suppressed int
}

// allow reports whether a record may be written, and how many were not since the last
// one.
func (l *limiter) allow(now time.Time) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.opened) >= logWindow {
		l.opened, l.passed = now, 0
	}
	if l.passed == logBurst {
		l.suppressed++
		return false, 0
	}
	l.passed++
	suppressed, l.suppressed = l.suppressed, 0
	return true, suppressed
}
