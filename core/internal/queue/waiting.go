package queue

import "time"

// Step is the next step of a waiter.
type Step struct {
	Grant   Holder        // the waiter was granted the lock: Accept it or Leave
	Err     error         // a KindError, because the key is now in use as another kind of lock: Leave
	Attempt bool          // attempt now
	Head    bool          // it is the head and sleeps
	Sleep   time.Duration // sleep at most this long, then Poll; 0: as long as the caller likes
	Silent  bool          // it is the head and gets no messages
	Deaf    bool          // it leaves the lock to others and has no subscription to hear their release
	Behind  string        // field of the holder of this process that it waits for or got the lock from
}

// Join queues a caller. It returns [ErrFull] if a limit is reached and a [KindError] if
// another kind of lock uses the key.
func (q *Queues) Join(key string, w *Waiter, now time.Time) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.get(key, w.Kind)
	if err := q.admit(kq, w); err != nil {
		s.settle(kq, now) // it has no subscription if it is new
		return err
	}
	if w.Lane != "" {
		kq = kq.inLane(w.Lane)
	}
	kq.enter(w)
	return nil
}

// Next returns the next step of a waiter.
func (q *Queues) Next(w *Waiter, now time.Time) Step {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	head := kq.order.first == w
	switch {
	case w.state == granted:
		return Step{Grant: w.grant, Behind: w.behind}
	case kq.kind != w.Kind:
		return Step{Err: kq.check(w.Kind)}
	case w.state != due || !head && !w.Together && !w.Many:
		w.listen()
		if kq.holders.any() {
			w.behind = kq.holders.field()
		}
		step := Step{Head: head, Behind: w.behind, Silent: head && kq.silent()}
		if step.Silent {
			step.Sleep = untilLook(kq.key, now)
		}
		return step
	}
	if left := w.standsBack(kq.standsBack(now), now); left > 0 {
		kq.evidence.settle()
		w.listen()
		return Step{Head: head, Sleep: left, Behind: w.behind, Deaf: kq.deaf(now)}
	}
	w.become(queued)
	w.asking, w.asked, w.wakes = true, now, kq.wakes
	kq.evidence.ask(now)
	return Step{Attempt: true}
}

// Poll turns the next step of a waiter into an attempt if the waiter is the head.
func (q *Queues) Poll(w *Waiter) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	if w.state == queued && w.queue.order.first == w {
		w.become(due)
	}
}

// Refused records that Redis refused the attempt of w because of a rival. It returns how often other
// waiters went before a waiter for several keys.
func (q *Queues) Refused(w *Waiter, r Refusal, by Rival, now time.Time) (passed int) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	kq.evidence.refuse(&r, now)
	w.asking = false
	if kq.lane == nil && kq.order.first == w { // the waiters that attempt beside it report the same
		w.waits = true
		kq.remember().refuse(now, by)
	}
	if w.skips.moved {
		w.skips.count++
	}
	return w.skips.count
}

// Served removes a waiter whose attempt succeeded without yielding a holder. The next waiter attempts.
func (q *Queues) Served(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	kq := w.queue
	kq.pace = nil
	kq.evidence.settle()
	t := s.serve(w, now)
	if kq.lane == nil {
		kq.wakeNext(false)
		s.settle(kq, now) // its subscription is t
	}
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
}

// serve removes a waiter whose attempt succeeded and returns the subscription for [release].
// The shard is locked.
func (s *shard) serve(w *Waiter, now time.Time) Subscription {
	if !w.inQueue() {
		w.referred = true // a hand-off to it is under way and will find that it is not needed
		w.become(outside)
		return nil
	}
	kq := w.queue
	kq.order.remove(w)
	w.become(outside)
	if kq.lane != nil {
		return s.settle(kq, now)
	}
	return kq.unneeded()
}

// Move moves a waiter for several keys to the queue of the key that is taken. Its age decides its place
// there. In the queue that it leaves, it no longer blocks other waiters. Move returns a [KindError] if
// another kind of lock uses that key; the waiter then has to leave.
func (q *Queues) Move(w *Waiter, key string, now time.Time) error {
	from := q.lock(w.queue.key)
	kq := w.queue
	kq.evidence.settle()
	kq.quit(w)
	w.become(outside)
	t := from.settle(kq, now)
	from.mu.Unlock()
	release(t)

	to := q.lock(key)
	defer to.mu.Unlock()
	next := to.get(key, w.Kind)
	if err := next.check(w.Kind); err != nil {
		return err
	}
	next.enter(w)
	w.skips.moved = true
	return nil
}

// Granted returns the holder that a waiter got by a hand-off or a pass, nil if there is none, and the
// field of the previous holder. It changes nothing.
func (q *Queues) Granted(w *Waiter) (grant Holder, behind string) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.grant, w.behind
}

// Accept completes a grant: the waiter now has the lock.
func (q *Queues) Accept(w *Waiter) {
	s := q.lock(w.queue.key)
	w.become(outside)
	t := w.queue.unneeded()
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
}

// Leave removes a waiter from the queue, whatever its state. It returns a grant that already arrived,
// which the caller then owns, and nil otherwise.
func (q *Queues) Leave(w *Waiter, now time.Time) Holder {
	s := q.lock(w.queue.key)
	kq, grant := w.queue, w.grant
	if w.inQueue() {
		kq.quit(w)
	}
	w.become(outside)
	t := s.settle(kq, now)
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
	return grant
}

// TakenSince reports whether the lock is known to have been taken while w waited. If a waiter of
// its queue was refused, r and at are the refusal and its time. Otherwise a holder of this process had
// the lock and does not share it with w.
func (q *Queues) TakenSince(w *Waiter) (r *Refusal, at time.Time, taken bool) {
	if w.queue == nil {
		return nil, at, false
	}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	r, at, taken = w.queue.evidence.takenSince(w.Since)
	return r, at, taken || !w.queue.holders.admits(w.Shared)
}

// Unanswered reports whether Redis answered no attempt of other waiters since w arrived while no holder
// of this process kept w out. The caller then does not know whether the lock is taken.
func (q *Queues) Unanswered(w *Waiter) bool {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.queue.holders.admits(w.Shared) && w.queue.evidence.silentSince(w.Since)
}
