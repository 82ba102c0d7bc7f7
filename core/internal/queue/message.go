package queue

import "time"

// Subscription is one to the messages of a key.
type Subscription interface {
	Confirmed() bool // messages arrive; takes no mutex
	Dead() bool      // none will arrive any more: another one is needed; takes no mutex
	Unsubscribe()    // gives it back
}

// release gives a subscription back. No mutex is held.
func release(s Subscription) {
	if s != nil {
		s.Unsubscribe()
	}
}

// NeedsSubscription reports whether a waiter that was refused has to make one for its queue,
// and to give it to [Queues.Subscribe].
func (q *Queues) NeedsSubscription(w *Waiter) bool {
	s := q.lock(w.queue.key)
	in := w.queue
	var old Subscription
	if in.subscription != nil && in.subscription.Dead() {
		old = in.dropSubscription()
	}
	needs := in.subscription == nil
	s.mu.Unlock()
	release(old)
	return needs
}

// Subscribe gives the queue of w a subscription, which is released when it is not needed
// any more.
func (q *Queues) Subscribe(w *Waiter, t Subscription) {
	s := q.lock(w.queue.key)
	if w.queue.subscription == nil && w.inQueue() {
		w.queue.subscription, w.queue.past().heard, t = t, t, nil
	}
	s.mu.Unlock()
	release(t)
}

// Unsubscribe has the queue of w give its subscription back: another one is needed, if any.
func (q *Queues) Unsubscribe(w *Waiter) {
	s := q.lock(w.queue.key)
	t := w.queue.dropSubscription()
	s.mu.Unlock()
	release(t)
}

// Listens reports whether this process gets the messages of key, which may be so after the
// subscription was given back.
func (q *Queues) Listens(key string) bool {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		return in.lasting.listens()
	}
	return s.recent.keys[key].listens()
}

// silent reports whether the subscription of the queue gets nothing, while no holder is
// of this process.
func (in *queue) silent() bool {
	return !in.holders.any() && in.subscription != nil && !in.subscription.Confirmed()
}

// unneeded gives the subscription to let go when nobody waits.
func (in *queue) unneeded() Subscription {
	if in.order.first != nil {
		return nil
	}
	return in.dropSubscription()
}

func (in *queue) dropSubscription() Subscription {
	t := in.subscription
	in.subscription = nil
	return t
}

// Message is one from Redis about key: somebody has released the lock, or has let its lease
// end earlier. Both look the same, as Redisson's wire has it, and both count as a release. It
// gives the holders of this process, which it puts in doubt; none if it was the echo of a
// command of ours.
func (q *Queues) Message(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	if l := s.lasting(key); l == nil || !l.message(now) {
		return nil
	}
	return s.doubt(key, now)
}

// Confirmed says that from now on the messages of key arrive: one may have been missed. It
// gives the holders of this process, which that puts in doubt.
func (q *Queues) Confirmed(key string, now time.Time) []Holder {
	s := q.lock(key)
	defer s.mu.Unlock()
	return s.doubt(key, now)
}

// lasting is what is known of key beside its queue, nil if nothing. The shard is locked.
func (s *shard) lasting(key string) *lasting {
	if in := s.queues[key]; in != nil {
		return in.past()
	}
	return s.recent.keys[key]
}

// doubt has the head of the queue of key attempt, unless that happens too often, and gives
// the holders. The shard is locked.
func (s *shard) doubt(key string, now time.Time) []Holder {
	in := s.queues[key]
	if in == nil {
		return nil
	}
	in.past().possession.contested()
	if in.paced(now) {
		in.wakeHead()
	}
	return in.holders.all()
}

// paced reports whether the head should be notified of a message. One that has been, and has
// not attempted since, is to attempt once, and is not put off again.
func (in *queue) paced(now time.Time) bool {
	if in.pace.left(now) > 0 {
		return false
	}
	if head := in.order.first; head == nil || head.state != due {
		if in.pace == nil {
			in.pace = &pace{}
		}
		in.pace.next(now)
	}
	return true
}

// Wake has the head of the queue of key attempt, or the waiter of one of its lanes, if there is
// one.
func (q *Queues) Wake(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.find(key, lane); in != nil {
		in.wakeHead()
	}
}

// Look has the head of the queue of key see whether it still gets messages, or the waiter of one
// of its lanes.
func (q *Queues) Look(key, lane string) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.find(key, lane); in != nil && in.order.first != nil {
		in.order.first.wake()
	}
}

// ExpectEcho prepares for the message of a command that is about to be sent. The waiters
// of this process wait for the holder, and need not be notified.
func (q *Queues) ExpectEcho(key string, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	if in := s.queues[key]; in != nil {
		in.expectEcho(now)
	}
}

func (in *queue) expectEcho(now time.Time) {
	if in.lasting.listens() {
		in.lasting.echo.expect(now)
	}
}

// EchoSent ends what ExpectEcho has begun: sent says whether there is a message.
func (q *Queues) EchoSent(key string, sent bool, now time.Time) {
	s := q.lock(key)
	defer s.mu.Unlock()
	switch in := s.queues[key]; {
	case in == nil || in.lasting == nil: // no echo is expected
	case sent:
		in.lasting.echo.sent(now)
	default:
		in.lasting.echo.none()
	}
}
