package queue

import "time"

// Refusal is the answer of Redis that the lock is taken.
type Refusal struct {
	TTL    time.Duration // how long the lease lasts; negative: without end
	Holder string        // field of the holder
	Index  int           // of several keys that of the one that is taken
}

// evidence is what is known about whether the lock is taken.
type evidence struct {
	asked time.Time // the first attempt since the last answer; zero: it was answered, or no attempt is under way
	seen  *seen     // by waiters; nil: nothing
}

// seen is what waiters have seen of a lock that was taken.
type seen struct {
	refusal *Refusal  // the last one that a waiter got, nil if none did
	refused time.Time // when that was
	ended   time.Time // when a holder of this process has last left waiters behind; zero: none has
}

// asks notes that an attempt is about to be sent.
func (e *evidence) asks(now time.Time) {
	if e.asked.IsZero() {
		e.asked = now
	}
}

func (e *evidence) answered() { e.asked = time.Time{} }

// nobodyAsks notes that the waiters leave the lock to others. An attempt without an answer was given up by
// its caller, which says nothing about Redis.
func (e *evidence) nobodyAsks() { e.asked = time.Time{} }

func (e *evidence) isRefused(r *Refusal, now time.Time) {
	e.answered()
	s := e.sight()
	s.refusal, s.refused = r, now
}

// ends notes that a holder of this process has left waiters behind.
func (e *evidence) ends(now time.Time) { e.sight().ended = now }

// sight is where to note what was seen.
func (e *evidence) sight() *seen {
	if e.seen == nil {
		e.seen = &seen{}
	}
	return e.seen
}

// silentSince reports whether nobody has had an answer since then.
func (e *evidence) silentSince(since time.Time) bool {
	return !e.asked.IsZero() && !e.asked.After(since)
}

// TakenSince reports whether the lock is known to have been taken while w waited: a waiter
// of its queue was refused, then with the refusal, or a holder of this process had it with whom
// it does not share it.
func (q *Queues) TakenSince(w *Waiter) (r *Refusal, at time.Time, taken bool) {
	if w.queue == nil {
		return nil, at, false
	}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	in := w.queue
	switch seen := in.evidence.seen; {
	case seen == nil:
		return nil, at, !in.holders.admits(w.Shared)
	case seen.refusal != nil && !seen.refused.Before(w.Since):
		return seen.refusal, seen.refused, true
	default:
		return nil, at, !in.holders.admits(w.Shared) || !seen.ended.IsZero() && !seen.ended.Before(w.Since)
	}
}

// Unanswered reports whether the attempts of other waiters have had no answer for as long
// as w has waited, and no holder of this process explains that: then nobody knows whether
// the lock is taken.
func (q *Queues) Unanswered(w *Waiter) bool {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.queue.holders.admits(w.Shared) && w.queue.evidence.silentSince(w.Since)
}
