package queue

import "time"

// Refusal is the answer of Redis that the lock is taken.
type Refusal struct {
	TTL    time.Duration // the rest of the lease; negative: it has no end
	Holder string        // field of the holder
	Index  int           // index of the taken key among several keys
}

// evidence is what this process knows about whether the lock is taken.
type evidence struct {
	asked time.Time // the first attempt since the last answer; zero: it was answered, or no attempt is under way
	seen  *seen     // nil: no waiter has seen the lock taken
}

// seen is what waiters have seen of a lock that was taken.
type seen struct {
	refusal *Refusal  // the last refusal of a waiter, nil if there was none
	refused time.Time // when that was
	ended   time.Time // when a holder of this process has last left waiters behind; zero: none has
}

// ask notes that an attempt is about to be sent.
func (e *evidence) ask(now time.Time) {
	if e.asked.IsZero() {
		e.asked = now
	}
}

// settle notes that no attempt is unanswered: Redis has answered, or the waiters leave the lock to
// others. In the second case the caller of an attempt without an answer has given it up, which says
// nothing about Redis.
func (e *evidence) settle() { e.asked = time.Time{} }

// refuse notes a refusal.
func (e *evidence) refuse(r *Refusal, now time.Time) {
	e.settle()
	s := e.sight()
	s.refusal, s.refused = r, now
}

// end notes that a holder of this process has left waiters behind.
func (e *evidence) end(now time.Time) { e.sight().ended = now }

// sight returns where to note what was seen.
func (e *evidence) sight() *seen {
	if e.seen == nil {
		e.seen = &seen{}
	}
	return e.seen
}

// silentSince reports whether Redis has answered no attempt since then.
func (e *evidence) silentSince(since time.Time) bool {
	return !e.asked.IsZero() && !e.asked.After(since)
}

// takenSince returns the last refusal since then. Without a refusal it reports whether a holder of
// this process has left waiters behind since then.
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
