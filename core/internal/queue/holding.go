package queue

import "time"

// RecordGrant records that the caller of w got the lock. w is nil for a caller that does not wait.
// RecordGrant takes w out of the queue and wakes the next waiter if that waiter may share the lock with
// the new holder. It returns the holders of this process that the grant replaced; see [Replaced].
func (q *Queues) RecordGrant(key string, w *Waiter, g Grant, now time.Time) []Replaced {
	s := q.lock(key)
	kq := s.get(key, g.Kind)
	kq.recordGrant(g, now)
	replaced := kq.addHolder(g, now)
	var sub Subscription
	if w != nil {
		sub = s.finish(w, now)
	}
	kq.wakeNext(len(kq.holders.list) == 1)
	s.mu.Unlock()
	if w != nil {
		q.waiting.Add(-1)
	}
	releaseSubscription(sub)
	return replaced
}

// RemoveHolder removes h and wakes the head of the queue if the lock may be free for it. If h is not a
// holder of key, RemoveHolder does nothing. notified is the number of other processes that received the
// message of the release, or one of [Uncounted], [Unanswered], [NoMessage] and [Unpublished].
func (q *Queues) RemoveHolder(key string, h Holder, notified int, now time.Time) {
	s := q.lock(key)
	kq := s.queues[key]
	if kq == nil || kq.holders.index(h) < 0 {
		s.mu.Unlock()
		return
	}
	if kq.past != nil || kq.order.first != nil || s.recent.makeRoom(now) { // otherwise a new past would be dropped at once
		kq.ensurePast().echo.recordRelease(notified, now)
	}
	head := kq.order.first
	if head != nil && !kq.holders.admits(head.Shared) {
		kq.evidence.recordHeld(now)
	}
	kq.holders.remove(h)
	switch {
	case !kq.holders.any():
		kq.recordFree(notified, now)
	case head != nil && kq.mayEnter(head):
		kq.wakeHead() // it may share the lock with the remaining holders
	}
	sub := s.removeUnused(kq, now)
	s.mu.Unlock()
	releaseSubscription(sub)
}

// TakeNext takes the waiter that gets the lock next out of the queue and returns it. h then either hands
// the lock off, so that Redis gets a new holder, or passes the lock on in memory. The caller reports the
// outcome to [Queues.CompleteHandOff], [Queues.CompletePass] or [Queues.CancelHandOff].
//
// TakeNext returns nil if h is not a holder of key, if the lock is shared, if no waiter can take the lock,
// or if other processes have the next turn. The caller then frees the lock.
func (q *Queues) TakeNext(key string, h Holder, now time.Time) *Waiter {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.queues[key]
	if kq == nil || kq.holders.index(h) < 0 {
		return nil
	}
	w := kq.takeNext(q.cfg.Run, now)
	if w == nil {
		kq.expectEcho(now)
	}
	return w
}

// CompleteHandOff records that from handed the lock off to the new holder to, and makes to the grant of w.
// If another holder of this process got the lock in between, that holder stays and to does not become a
// holder of the key.
//
// CompleteHandOff reports whether w still waits. If not, the caller has to release to.
func (q *Queues) CompleteHandOff(w *Waiter, from, to Holder, now time.Time) bool {
	next := tenure{to, to.Field(), w.Shared, now}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	kq.recordHandOff()
	if kq.holders.replace(from, next) {
		kq.setKind(w.Kind)
	}
	return w.setGrant(to)
}

// CompletePass records that h passed the lock on in memory, and makes h the grant of w. In Redis the holder
// stays the same.
//
// CompletePass returns false if w has left or if h is no longer a holder of the key. In the second case w
// is back at the head of the queue. The caller then calls [Queues.TakeNext] again, and frees the lock if
// TakeNext returns nil.
func (q *Queues) CompletePass(w *Waiter, h Holder, now time.Time) bool {
	s := q.lock(w.queue.key)
	kq := w.queue
	if kq.holders.index(h) < 0 {
		s.mu.Unlock()
		q.CancelHandOff(w, now)
		return false
	}
	defer s.mu.Unlock()
	kq.recordHandOff()
	kq.setKind(w.Kind)
	return w.setGrant(h)
}

// CancelHandOff puts w back at the head of the queue after a failed hand-off, unless w has left. In both
// cases it wakes the head of the queue, which then tries to get the lock.
func (q *Queues) CancelHandOff(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	kq := w.queue
	kq.handOffs--
	if w.state == chosen {
		kq.order.insert(w, nil)
		w.become(queued)
	}
	kq.wakeHead()
	sub := s.removeUnused(kq, now)
	s.mu.Unlock()
	releaseSubscription(sub)
}
