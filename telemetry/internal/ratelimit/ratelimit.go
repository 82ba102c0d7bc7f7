// Package ratelimit limits the number of log records when the same thing happens again and again. It depends on
// neither the logger nor the records: packages telemetry and lockz ask it before they write a record.
package ratelimit

import (
	"sync"
	"time"
)

// A Limiter allows burst records per window.
const (
	burst  = 10
	window = 10 * time.Second
)

// Limiter limits the records of one message and counts those that are not written. The zero value is ready. It is
// safe for concurrent use.
type Limiter struct {
	mu         sync.Mutex
	opened     time.Time
	passed     int
	suppressed int
}

// Allow reports whether a record may be written now. If so, it also returns the number of records suppressed since
// the last one.
func (l *Limiter) Allow(now time.Time) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.opened) >= window {
		l.opened, l.passed = now, 0
	}
	if l.passed == burst {
		l.suppressed++
		return false, 0
	}
	l.passed++
	suppressed, l.suppressed = l.suppressed, 0
	return true, suppressed
}
