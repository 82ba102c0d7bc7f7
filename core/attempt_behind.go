package core

import "time"

// behind is what one who does not wait knows of the ghosts of other calls of its client: fields that
// were left to the reaper, and are in its way.
type behind struct {
	until time.Time // up to then it asks again; zero: none was in its way
	now   bool      // one was when it asked last
}

// behindGhost reports whether what is in the way of one who does not wait is nobody, but what
// another call of this client has left to the reaper: that is gone in a moment, and the lock was
// free. After as long as a waiter may need to find a free lock, it is taken like any other. A Redlock
// that may wait asks again by itself.
func (s *sends) behindGhost(holder string) bool {
	a, b, reaper := s.of, &s.behind, s.of.client.reaper
	if a.req.mayWait() || a.req.asksAgain || !reaper.Orphaned(holder) && !reaper.WasOrphaned(holder) {
		return false
	}
	if b.until.IsZero() {
		b.until = a.now.Add(pollInterval)
	}
	b.now = a.now.Add(firstPause).Before(b.until)
	s.resend.atLeast = b.until.Add(pollInterval) // that ends it
	return b.now
}

// pause is how long one pauses that would pause so long: its last attempt is in time.
func (b *behind) pause(pause time.Duration, now time.Time) time.Duration {
	if b.now {
		return min(pause, b.until.Sub(now))
	}
	return pause
}
