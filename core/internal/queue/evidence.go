package queue

import "time"

// Refusal is an answer of Redis that another holder has the lock.
type Refusal struct {
	TTL    time.Duration // the rest of the lease; negative: it does not expire
	Holder string        // field of the holder
	Index  int           // index of the taken key among several keys
}

// evidence contains the facts from which a waiter knows that the lock is taken.
type evidence struct {
	asked time.Time  // the time of the first attempt since the last answer; zero: no attempt is unanswered
	seen  *sightings // nil: no waiter was kept out
}

// sightings contains the last observations of a lock that was taken.
type sightings struct {
	refusal *Refusal  // the last refusal of a waiter; nil: there was none
	refused time.Time // the time of that refusal
	held    time.Time // when a holder of this process last ended while it kept a waiter out; zero: never
}

// recordAttempt records that an attempt is about to be sent.
func (e *evidence) recordAttempt(now time.Time) {
	if e.asked.IsZero() {
		e.asked = now
	}
}

// clearAttempt records that no attempt is unanswered, because Redis answered or because the waiters leave
// the lock to other processes. In the second case the caller of an unanswered attempt has given up, which
// shows nothing about Redis.
func (e *evidence) clearAttempt() { e.asked = time.Time{} }

// recordRefusal records a refusal.
func (e *evidence) recordRefusal(r *Refusal, now time.Time) {
	e.clearAttempt()
	s := e.ensureSeen()
	s.refusal, s.refused = r, now
}

// recordHeld records that a holder of this process, which kept a waiter out, has ended.
func (e *evidence) recordHeld(now time.Time) { e.ensureSeen().held = now }

// ensureSeen returns the sightings. It creates them if necessary.
func (e *evidence) ensureSeen() *sightings {
	if e.seen == nil {
		e.seen = &sightings{}
	}
	return e.seen
}

// silentSince reports whether an attempt was under way at the time since, and Redis has answered no attempt
// from then on.
func (e *evidence) silentSince(since time.Time) bool {
	return !e.asked.IsZero() && !e.asked.After(since)
}

// takenSince returns the last refusal and its time, unless it was before since. Without a refusal it
// reports whether a holder of this process that kept a waiter out has ended after since.
func (e *evidence) takenSince(since time.Time) (r *Refusal, at time.Time, taken bool) {
	s := e.seen
	switch {
	case s == nil:
		return nil, at, false
	case s.refusal != nil && !s.refused.Before(since):
		return s.refusal, s.refused, true
	default:
		return nil, at, !s.held.IsZero() && !s.held.Before(since)
	}
}
