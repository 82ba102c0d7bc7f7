package queue

import "time"

// NeedsSubscription reports whether a waiter that was refused has to subscribe for its queue and pass
// the subscription to [Queues.Subscribe].
func (q *Queues) NeedsSubscription(w *Waiter) bool {
	s := q.lock(w.queue.key)
	kq := w.queue
	var old Subscription
	if kq.subscription != nil && kq.subscription.Dead() {
		old = kq.unsubscribe()
	}
	needs := kq.subscription == nil
	s.mu.Unlock()
	release(old)
	return needs
}

// Subscribe passes a subscription to the queue of w. The queue releases it when it no longer needs it, or
// at once if it does not need it at all.
func (q *Queues) Subscribe(w *Waiter, t Subscription) {
	s := q.lock(w.queue.key)
	kept := w.inQueue() && w.queue.subscribe(t)
	s.mu.Unlock()
	if !kept {
		release(t)
	}
}

// Unsubscribe makes the queue of w release its subscription, so that the caller can create another.
func (q *Queues) Unsubscribe(w *Waiter) {
	s := q.lock(w.queue.key)
	t := w.queue.unsubscribe()
	s.mu.Unlock()
	release(t)
}

// Listens reports whether this process receives the messages of key. It may do so for a while after the
// subscription was released.
func (q *Queues) Listens(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		return kq.past.listens()
	}
	return s.recent.keys[key].listens()
}

// Message records a message from Redis about key: a holder released the lock or shortened its
// lease. On Redisson's wire both look the same, and both count as a release. Message returns the
// holders of this process, which the caller has to verify. It returns none if the message was the echo
// of a command of this process.
func (q *Queues) Message(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if p := s.past(key); p == nil || !p.message(now) {
		return nil
	}
	return s.doubt(key, now)
}

// Confirmed records that the messages of key arrive from now on. An earlier one may have been missed.
// Confirmed returns the holders of this process, which the caller has to verify.
func (q *Queues) Confirmed(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	return s.doubt(key, now)
}

// doubt makes the head of the queue of key attempt, unless messages come too fast, and returns the
// holders. The shard is locked.
func (s *shard) doubt(key string, now time.Time) []Holder {
	if kq := s.queues[key]; kq != nil {
		return kq.doubt(now)
	}
	return nil
}

// Wake makes the head of the queue of key attempt, or the waiter of one of its lanes, if there is one.
func (q *Queues) Wake(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.find(key, lane); kq != nil {
		kq.wakeHead()
	}
}

// WakeLanes makes the waiters of all lanes of key attempt, if there are any.
func (q *Queues) WakeLanes(key string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		for _, l := range kq.lanes {
			l.wakeHead()
		}
	}
}

// Look makes the head of the queue of key, or the waiter of one of its lanes, check whether it still
// receives messages.
func (q *Queues) Look(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.find(key, lane); kq != nil && kq.order.first != nil {
		kq.order.first.wake()
	}
}

// ExpectEcho prepares for the message of a command that is about to be sent. The waiters of this
// process wait for the holder, and need not be woken.
func (q *Queues) ExpectEcho(key string, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if kq := s.queues[key]; kq != nil {
		kq.expectEcho(now)
	}
}

// EchoSent completes ExpectEcho. sent reports whether the command sent a message.
func (q *Queues) EchoSent(key string, sent bool, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	switch kq := s.queues[key]; {
	case kq == nil || kq.past == nil: // no echo is expected
	case sent:
		kq.past.echo.sent(now)
	default:
		kq.past.echo.none()
	}
}
