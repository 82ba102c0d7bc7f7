package queue

import "time"

// Acquired registers the holder that the attempt of w acquired. For a caller that does not wait, w
// is nil. Acquired returns the holders of this process that no longer have the lock.
func (q *Queues) Acquired(key string, w *Waiter, g Grant, now time.Time) []Replaced {
	s := q.lock(key)
	kq := s.get(key, g.Kind)
	kq.take(g, now)
	replaced := kq.add(g, now)
	var t Subscription
	if w != nil {
		t = s.serve(w, now)
	}
	kq.wakeNext(len(kq.holders.list) == 1)
	s.mu.Unlock()
	if w != nil {
		q.waiting.Add(-1)
	}
	release(t)
	return replaced
}

// Ended removes a holder. notified is the number of other processes that received the message of its
// release, or one of [Uncounted], [Unanswered], [NoMessage] and [Unpublished].
func (q *Queues) Ended(key string, h Holder, notified int, now time.Time) {
	s := q.lock(key)
	kq := s.queues[key]
	if kq == nil || kq.holders.index(h) < 0 {
		s.mu.Unlock()
		return
	}
	if kq.past != nil || kq.order.first != nil || s.recent.room(now) { // otherwise the past would be dropped at once
		kq.remember().echo.ended(notified, now)
	}
	head := kq.order.first
	if head != nil && !kq.holders.admits(head.Shared) {
		kq.evidence.end(now)
	}
	kq.holders.remove(h)
	switch {
	case !kq.holders.any():
		kq.free(notified, now)
	case head != nil && kq.open(head):
		kq.wakeHead() // there may be room beside the other holders
	}
	t := s.settle(kq, now)
	s.mu.Unlock()
	release(t)
}

// Choose removes the next holder from the queue for a hand-off or a pass from h. The caller completes the
// hand-off with [Queues.Handed], [Queues.Passed] or [Queues.NotHanded]. Choose returns nil when the lock
// has to be freed: no waiter can take it, or it is the turn of other processes, or the lock is shared.
func (q *Queues) Choose(key string, h Holder, now time.Time) *Waiter {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	if kq == nil || kq.holders.index(h) < 0 {
		return nil
	}
	w := kq.choose(q.cfg.Run, now)
	if w == nil {
		kq.expectEcho(now)
	}
	return w
}

// Handed completes a hand-off: to is the new holder. It reports whether the chosen waiter was still
// there to take it.
func (q *Queues) Handed(w *Waiter, from, to Holder, now time.Time) bool {
	next := tenure{to, to.Field(), w.Shared, now}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	kq.handedOn()
	if kq.holders.follow(from, next) {
		kq.takeAs(w.Kind)
	}
	return w.give(to)
}

// Passed completes a pass: h stays the holder, now on behalf of the chosen waiter. It reports whether
// both h and the waiter were still there.
func (q *Queues) Passed(w *Waiter, h Holder, now time.Time) bool {
	s := q.lock(w.queue.key)
	kq := w.queue
	if kq.holders.index(h) < 0 {
		s.mu.Unlock()
		q.NotHanded(w, now)
		return false
	}
	defer s.mu.Unlock()
	kq.handedOn()
	kq.takeAs(w.Kind)
	return w.give(h)
}

// NotHanded returns the chosen waiter to the head of the queue after a failed hand-off. The waiter then
// attempts.
func (q *Queues) NotHanded(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	kq := w.queue
	kq.handing--
	if w.state == chosen {
		kq.order.insert(w, nil)
		w.become(queued)
	}
	kq.wakeHead()
	t := s.settle(kq, now)
	s.mu.Unlock()
	release(t)
}
