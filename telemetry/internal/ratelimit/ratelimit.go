// Package ratelimit keeps logs short when the same thing happens again and again. It writes
// nothing itself: who logs asks first, and tells how many records were suppressed.
package ratelimit

import (
	"sync"
	"time"
)

// Of one kind of record, at most burst are written in each window.
const (
	burst  = 10
	window = 10 * time.Second
)

// Limiter lets through a few records per window and counts the others. Its zero value is
// ready, for one kind of record. It is safe for concurrent use.
type Limiter struct {
	mu         sync.Mutex
	opened     time.Time
	passed     int
	suppressed int
}

// Allow reports whether a record may be written, and how many were not since the last
// one.
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
