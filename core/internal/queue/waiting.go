package queue

import "time"

// Step is what a waiter has to do next.
type Step struct {
	Grant   Holder        // it was given the lock: Accept it, or Leave
	Err     error         // a KindError, because the key is now in use as another kind of lock: Leave
	Attempt bool          // attempt now
	Head    bool          // it is the first, and sleeps
	Sleep   time.Duration // sleep so long at most, then Poll; 0: as long as the caller likes
	Silent  bool          // it is the first and gets no messages
	Deaf    bool          // it leaves the lock to others, and has no subscription to hear their release
	Behind  string        // field of the holder of this process that it waits for, or got the lock from
}

// Join queues a caller. It fails with [ErrFull] when a limit is reached, and with a [KindError] when
// the key is in use as another kind of lock.
func (q *Queues) Join(key string, w *Waiter, now time.Time) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.get(key, w.Kind)
	if err := q.admit(in, w); err != nil {
		s.settle(in, now) // it has no subscription if it is new
		return err
	}
	if w.Lane != "" {
		in = in.inLane(w.Lane)
	}
	in.enter(w)
	return nil
}

// Next returns what a waiter has to do.
func (q *Queues) Next(w *Waiter, now time.Time) Step {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	in := w.queue
	head := in.order.first == w
	switch {
	case w.state == granted:
		return Step{Grant: w.grant, Behind: w.behind}
	case in.kind != w.Kind:
		return Step{Err: in.check(w.Kind)}
	case w.state != due || !head && !w.Together && !w.Many:
		w.listen()
		if in.holders.any() {
			w.behind = in.holders.field()
		}
		step := Step{Head: head, Behind: w.behind, Silent: head && in.silent()}
		if step.Silent {
			step.Sleep = untilLook(in.key, now)
		}
		return step
	}
	if left := w.standsBack(in.standsBack(now), now); left > 0 {
		in.evidence.settle()
		w.listen()
		return Step{Head: head, Sleep: left, Behind: w.behind, Deaf: in.deaf(now)}
	}
	w.become(queued)
	w.asking, w.asked, w.wakes = true, now, in.wakes
	in.evidence.ask(now)
	return Step{Attempt: true}
}

// Poll makes the next step an attempt, if the waiter is the head.
func (q *Queues) Poll(w *Waiter) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	if w.state == queued && w.queue.order.first == w {
		w.become(due)
	}
}

// Refused notes that Redis has refused the attempt of w because of a rival. It returns how often a
// waiter for several keys was passed over.
func (q *Queues) Refused(w *Waiter, r Refusal, by Rival, now time.Time) (passed int) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	in := w.queue
	in.evidence.refuse(&r, now)
	w.asking = false
	if in.lane == nil && in.order.first == w { // the waiters that attempt beside it report the same
		w.waits = true
		in.remember().refuse(now, by)
	}
	if w.passed.moved {
		w.passed.times++
	}
	return w.passed.times
}

// Served takes out a waiter whose attempt has brought something without a holder. The next waiter
// attempts.
func (q *Queues) Served(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	in := w.queue
	in.pace = nil
	in.evidence.settle()
	t := s.serve(w, now)
	if in.lane == nil {
		in.wakeNext(false)
		s.settle(in, now) // its subscription is t
	}
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
}

// serve takes out a waiter whose attempt has succeeded, and returns the subscription for [release].
// The shard is locked.
func (s *shard) serve(w *Waiter, now time.Time) Subscription {
	if !w.inQueue() {
		w.referred = true // a hand-off to it is under way, and will find that it is not needed
		w.become(outside)
		return nil
	}
	in := w.queue
	in.order.remove(w)
	w.become(outside)
	if in.lane != nil {
		return s.settle(in, now)
	}
	return in.unneeded()
}

// Move takes a waiter for several keys to the queue of the key that is taken, to the place that its
// age gives it. It does not block the queue that it leaves. Move fails with a [KindError] when that key
// is in use as another kind of lock; the waiter then has to leave.
func (q *Queues) Move(w *Waiter, key string, now time.Time) error {
	from := q.lock(w.queue.key)
	in := w.queue
	in.evidence.settle()
	in.quit(w)
	w.become(outside)
	t := from.settle(in, now)
	from.mu.Unlock()
	release(t)

	to := q.lock(key)
	defer to.mu.Unlock()
	next := to.get(key, w.Kind)
	if err := next.check(w.Kind); err != nil {
		return err
	}
	next.enter(w)
	w.passed.moved = true
	return nil
}

// Granted returns the holder that a hand-off or a pass has brought to a waiter, nil if there is none,
// and the field of the holder that gave it. It changes nothing.
func (q *Queues) Granted(w *Waiter) (grant Holder, behind string) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.grant, w.behind
}

// Accept completes a grant on the side of the waiter, which then has the lock.
func (q *Queues) Accept(w *Waiter) {
	s := q.lock(w.queue.key)
	w.become(outside)
	t := w.queue.unneeded()
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
}

// Leave takes a waiter out of the queue, however far it got. It returns a grant that has arrived
// already, which the caller then owns, and nil otherwise.
func (q *Queues) Leave(w *Waiter, now time.Time) Holder {
	s := q.lock(w.queue.key)
	in, grant := w.queue, w.grant
	if w.inQueue() {
		in.quit(w)
	}
	w.become(outside)
	t := s.settle(in, now)
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
	return grant
}

// TakenSince reports whether the lock is known to have been taken while w waited. Either a waiter of
// its queue was refused; then r and at are the refusal and its time. Or a holder of this process had
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

// Unanswered reports whether the attempts of other waiters have had no answer since w came, and no
// holder of this process explains that. The caller then does not know whether the lock is taken.
func (q *Queues) Unanswered(w *Waiter) bool {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.queue.holders.admits(w.Shared) && w.queue.evidence.silentSince(w.Since)
}
