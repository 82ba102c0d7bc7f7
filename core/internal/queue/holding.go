package queue

import "time"

// Acquired registers the holder that the attempt of w has brought. For a caller that does not wait, w
// is nil. It returns the holders of this process that do not have the lock any more.
func (q *Queues) Acquired(key string, w *Waiter, g Grant, now time.Time) []Replaced {
	s := q.lock(key)
	in := s.get(key, g.Kind)
	in.take(g, now)
	replaced := in.add(g, now)
	var t Subscription
	if w != nil {
		t = s.serve(w, now)
	}
	in.wakeNext(len(in.holders.list) == 1)
	s.mu.Unlock()
	if w != nil {
		q.waiting.Add(-1)
	}
	release(t)
	return replaced
}

// Ended forgets a holder. notified is how many others heard the message of its end, or one of
// [Uncounted], [Unanswered], [NoMessage] and [Unpublished].
func (q *Queues) Ended(key string, h Holder, notified int, now time.Time) {
	s := q.lock(key)
	in := s.queues[key]
	if in == nil || in.holders.index(h) < 0 {
		s.mu.Unlock()
		return
	}
	if in.past != nil || in.order.first != nil || s.recent.room(now) { // otherwise the past is forgotten at once
		in.remember().echo.ended(notified, now)
	}
	head := in.order.first
	if head != nil && !in.holders.admits(head.Shared) {
		in.evidence.end(now)
	}
	in.holders.remove(h)
	switch {
	case !in.holders.any():
		in.free(notified, now)
	case head != nil && in.open(head):
		in.wakeHead() // there may be room beside the others
	}
	t := s.settle(in, now)
	s.mu.Unlock()
	release(t)
}

// Choose takes the next holder out of the queue for a hand-off or a pass from h. The caller ends it
// with [Queues.Handed], [Queues.Passed] or [Queues.NotHanded]. Choose returns nil when the lock has to
// be freed: no waiter can take it, or it is the turn of other processes, or the lock is shared.
func (q *Queues) Choose(key string, h Holder, now time.Time) *Waiter {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	if in == nil || in.holders.index(h) < 0 {
		return nil
	}
	w := in.choose(q.cfg.Run, now)
	if w == nil {
		in.expectEcho(now)
	}
	return w
}

// Handed completes a hand-off: to is the new holder. It reports whether the chosen waiter was still
// there to take it.
func (q *Queues) Handed(w *Waiter, from, to Holder, now time.Time) bool {
	next := tenure{to, to.Field(), w.Shared, now}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	in := w.queue
	in.handedOn()
	if in.holders.follow(from, next) {
		in.takeAs(w.Kind)
	}
	return w.give(to)
}

// Passed completes a pass: h stays the holder, now of the chosen waiter. It reports whether h was still
// there to give the lock, and the waiter to take it.
func (q *Queues) Passed(w *Waiter, h Holder, now time.Time) bool {
	s := q.lock(w.queue.key)
	in := w.queue
	if in.holders.index(h) < 0 {
		s.mu.Unlock()
		q.NotHanded(w, now)
		return false
	}
	defer s.mu.Unlock()
	in.handedOn()
	in.takeAs(w.Kind)
	return w.give(h)
}

// NotHanded puts the chosen waiter back to the head of the queue. The hand-off has failed, and the
// waiter has to attempt.
func (q *Queues) NotHanded(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	in := w.queue
	in.handing--
	if w.state == chosen {
		in.order.insert(w, nil)
		w.become(queued)
	}
	in.wakeHead()
	t := s.settle(in, now)
	s.mu.Unlock()
	release(t)
}
