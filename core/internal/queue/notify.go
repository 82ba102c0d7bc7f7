package queue

import "time"

// NeedsSubscription reports whether the queue of w has no subscription that works. The caller of w then
// subscribes and passes the subscription to [Queues.Subscribe]. NeedsSubscription releases a dead
// subscription.
func (q *Queues) NeedsSubscription(w *Waiter) bool {
	s := q.lock(w.queue.key)
	kq := w.queue
	var old Subscription
	if kq.subscription != nil && kq.subscription.Dead() {
		old = kq.unsubscribe()
	}
	needs := kq.subscription == nil
	s.mu.Unlock()
	releaseSubscription(old)
	return needs
}

// Subscribe passes sub to the queue of w, which releases sub when no waiter is left. If w has left or the
// queue already has a subscription, Subscribe releases sub at once.
func (q *Queues) Subscribe(w *Waiter, sub Subscription) {
	s := q.lock(w.queue.key)
	kept := w.inQueue() && w.queue.subscribe(sub)
	s.mu.Unlock()
	if !kept {
		releaseSubscription(sub)
	}
}

// Unsubscribe releases the subscription of the queue of w, if any, so that the caller can subscribe to
// another channel.
func (q *Queues) Unsubscribe(w *Waiter) {
	s := q.lock(w.queue.key)
	sub := w.queue.unsubscribe()
	s.mu.Unlock()
	releaseSubscription(sub)
}

// Listens reports whether this process receives the messages of key. It may return true for some seconds
// after the queue has released the subscription, because package wakeup keeps subscriptions that long.
func (q *Queues) Listens(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.past.listens()
	}
	return s.recent.keys[key].listens()
}

// RecordMessage records a message from Redis about key, which means that a holder released the lock or
// shortened its lease. The messages of Redisson do not distinguish the two, so both count as a release.
// Unless messages come too fast, RecordMessage makes the head attempt. It returns the holders of this
// process. The caller has to ask Redis whether they still have the lock.
//
// If the message is the echo of a command of this process, RecordMessage returns nil and wakes no waiter.
func (q *Queues) RecordMessage(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if p := s.past(key); p == nil || !p.recordMessage(now) {
		return nil
	}
	return s.contest(key, now)
}

// RecordConfirmation records that the messages of key arrive from now on. Because an earlier message may
// have been missed, RecordConfirmation makes the head attempt and returns the holders of this process, like
// [Queues.RecordMessage].
func (q *Queues) RecordConfirmation(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	return s.contest(key, now)
}

// contest calls contest of the queue of key. It returns nil if key has no queue. The shard is locked.
func (s *shard) contest(key string, now time.Time) []Holder {
	if kq := s.queues[key]; kq != nil {
		return kq.contest(now)
	}
	return nil
}

// Wake makes the waiter of a lane of key attempt, or the head of the queue of key if lane is "". It does
// nothing if no such waiter exists.
func (q *Queues) Wake(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.find(key, lane); kq != nil {
		kq.wakeHead()
	}
}

// WakeLanes makes the waiters of all lanes of key attempt.
func (q *Queues) WakeLanes(key string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		for _, l := range kq.lanes {
			l.wakeHead()
		}
	}
}

// WakeToCheck wakes the waiter of a lane of key, or the head of the queue of key if lane is "". That waiter
// does not have to attempt. It only calls [Queues.Next], which reports whether it still receives messages.
func (q *Queues) WakeToCheck(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.find(key, lane); kq != nil && kq.order.first != nil {
		kq.order.first.wake()
	}
}

// ExpectEcho records that a command of this process is about to be sent, and that the command will publish
// a message about key. That message need not wake a waiter, because it brings this process no news.
func (q *Queues) ExpectEcho(key string, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		kq.expectEcho(now)
	}
}

// ResolveEcho records the answer to the command of an earlier [Queues.ExpectEcho]. sent means that the
// command published a message.
func (q *Queues) ResolveEcho(key string, sent bool, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	switch kq := s.queues[key]; {
	case kq == nil || kq.past == nil: // no echo is expected
	case sent:
		kq.past.echo.recordAnswer(now)
	default:
		kq.past.echo.clear()
	}
}
