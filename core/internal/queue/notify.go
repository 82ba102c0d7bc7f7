package queue

import "time"

// NeedsSubscription reports whether a waiter that was refused has to subscribe for its queue, and to
// pass the subscription to [Queues.Subscribe].
func (q *Queues) NeedsSubscription(w *Waiter) bool {
	s := q.lock(w.queue.key)
	in := w.queue
	var old Subscription
	if in.subscription != nil && in.subscription.Dead() {
		old = in.unsubscribe()
	}
	needs := in.subscription == nil
	s.mu.Unlock()
	release(old)
	return needs
}

// Subscribe gives the queue of w a subscription, which the queue gives back when it does not need it
// any more, or does not need it at all.
func (q *Queues) Subscribe(w *Waiter, t Subscription) {
	s := q.lock(w.queue.key)
	kept := w.inQueue() && w.queue.subscribe(t)
	s.mu.Unlock()
	if !kept {
		release(t)
	}
}

// Unsubscribe makes the queue of w give its subscription back, so that the caller can make another.
func (q *Queues) Unsubscribe(w *Waiter) {
	s := q.lock(w.queue.key)
	t := w.queue.unsubscribe()
	s.mu.Unlock()
	release(t)
}

// Listens reports whether this process gets the messages of key. It may do so for a while after the
// subscription was given back.
func (q *Queues) Listens(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.past.listens()
	}
	return s.recent.keys[key].listens()
}

// Message notes a message from Redis about key: a holder has released the lock, or has shortened its
// lease. On Redisson's wire both look the same, and both count as a release. Message returns the
// holders of this process, which have to be verified; none if the message was the echo of a command of
// this process.
func (q *Queues) Message(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if p := s.past(key); p == nil || !p.message(now) {
		return nil
	}
	return s.doubt(key, now)
}

// Confirmed notes that the messages of key arrive from now on, so that one may have been missed. It
// returns the holders of this process, which have to be verified.
func (q *Queues) Confirmed(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	return s.doubt(key, now)
}

// doubt makes the head of the queue of key attempt, unless messages come too fast, and returns the
// holders. The shard is locked.
func (s *shard) doubt(key string, now time.Time) []Holder {
	if in := s.queues[key]; in != nil {
		return in.doubt(now)
	}
	return nil
}

// Wake makes the head of the queue of key attempt, or the waiter of one of its lanes, if there is one.
func (q *Queues) Wake(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.find(key, lane); in != nil {
		in.wakeHead()
	}
}

// WakeLanes makes the waiters of all lanes of key attempt, if there are any.
func (q *Queues) WakeLanes(key string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		for _, l := range in.lanes {
			l.wakeHead()
		}
	}
}

// Look makes the head of the queue of key, or the waiter of one of its lanes, check whether it still
// gets messages.
func (q *Queues) Look(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.find(key, lane); in != nil && in.order.first != nil {
		in.order.first.wake()
	}
}

// ExpectEcho prepares for the message of a command that is about to be sent. The waiters of this
// process wait for the holder, and need not be woken.
func (q *Queues) ExpectEcho(key string, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		in.expectEcho(now)
	}
}

// EchoSent ends what ExpectEcho has begun. sent says whether there is a message.
func (q *Queues) EchoSent(key string, sent bool, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	switch in := s.queues[key]; {
	case in == nil || in.past == nil: // no echo is expected
	case sent:
		in.past.echo.sent(now)
	default:
		in.past.echo.none()
	}
}
