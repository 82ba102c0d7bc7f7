package queue

import "time"

// Refusal is the answer of Redis that the lock is taken.
type Refusal struct {
	TTL    time.Duration // the rest of the lease; negative: it does not expire
	Holder string        // field of the holder
	Index  int           // index of the taken key among several keys
}

// evidence records whether the lock is known to be taken.
type evidence struct {
	asked time.Time  // the time of the first attempt since the last answer; zero: no attempt is unanswered
	seen  *sightings // nil: no waiter saw the lock taken
}

// sightings holds the last observations of a lock that was taken.
type sightings struct {
	refusal *Refusal  // the last refusal of a waiter, nil if there was none
	refused time.Time // the time of that refusal
	ended   time.Time // when a holder of this process last left waiters behind; zero: never
}

// ask records that an attempt is about to be sent.
func (e *evidence) ask(now time.Time) {
	if e.asked.IsZero() {
		e.asked = now
	}
}

// settle records that no attempt is unanswered: Redis answered, or the waiters leave the lock to
// others. In the second case the caller of an unanswered attempt gave it up, which shows nothing about
// Redis.
func (e *evidence) settle() { e.asked = time.Time{} }

// refuse records a refusal.
func (e *evidence) refuse(r *Refusal, now time.Time) {
	e.settle()
	s := e.sightings()
	s.refusal, s.refused = r, now
}

// end records that a holder of this process left waiters behind.
func (e *evidence) end(now time.Time) { e.sightings().ended = now }

// sightings returns the sightings of e. It creates them if necessary.
func (e *evidence) sightings() *sightings {
	if e.seen == nil {
		e.seen = &sightings{}
	}
	return e.seen
}

// silentSince reports whether Redis answered no attempt since then.
func (e *evidence) silentSince(since time.Time) bool {
	return !e.asked.IsZero() && !e.asked.After(since)
}

// takenSince returns the last refusal since then. Without a refusal it reports whether a holder of
// this process left waiters behind since then.
func (e *evidence) takenSince(since time.Time) (r *Refusal, at time.Time, taken bool) {
	s := e.seen
	switch {
	case s == nil:
		return nil, at, false
	case s.refusal != nil && !s.refused.Before(since):
		return s.refusal, s.refused, true
	default:
		return nil, at, !s.ended.IsZero() && !s.ended.Before(since)
	}
}
