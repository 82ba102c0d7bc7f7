package queue

import "time"

// Step is the next step of a waiter. The first of Grant, Err and Attempt that is set decides. If none is
// set, the waiter sleeps.
type Step struct {
	Grant      Holder        // the waiter got the lock by a hand-off or a pass: call Accept, or Leave
	Err        error         // a KindError, because the key is now in use as another kind of lock: call Leave
	Attempt    bool          // send the command that acquires the lock
	Head       bool          // the waiter is the head; set only for a waiter that sleeps
	Sleep      time.Duration // sleep at most this long, then call Poll; 0: the caller chooses the time
	NoMessages bool          // the waiter is the head, and its subscription receives no messages
	Subscribe  bool          // other processes have the next turn: subscribe to get the message of their release
	BlockedBy  string        // field of the holder of this process that blocks the waiter or gave it the lock; "": unknown
}

// Join adds w to the queue of key, or to its lane. It returns [ErrFull] if a limit is reached, and a
// [KindError] if another kind of lock uses the key. On an error w is not in the queue.
func (q *Queues) Join(key string, w *Waiter, now time.Time) error {
	s := q.lock(key)
	defer s.mu.Unlock()
	kq := s.get(key, w.Kind)
	if err := q.admit(kq, w); err != nil {
		s.removeUnused(kq, now) // returns nil: a new queue has no subscription
		return err
	}
	if w.Lane != "" {
		kq = kq.ensureLane(w.Lane)
	}
	kq.enter(w)
	return nil
}

// Next returns the next step of w. If that is an attempt, the caller reports its outcome with
// [Queues.RecordGrant], [Queues.RecordSuccess] or [Queues.RecordRefusal].
func (q *Queues) Next(w *Waiter, now time.Time) Step {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	head := kq.order.first == w
	switch {
	case w.state == granted:
		return Step{Grant: w.grant, BlockedBy: w.blockedBy}
	case kq.kind != w.Kind:
		return Step{Err: kq.checkKind(w.Kind)}
	case w.state != due || !head && !w.Together && !w.Many:
		w.ensureSignal()
		if kq.holders.any() {
			w.blockedBy = kq.holders.field()
		}
		step := Step{Head: head, BlockedBy: w.blockedBy, NoMessages: head && kq.lacksMessages()}
		if step.NoMessages {
			step.Sleep = untilLook(kq.key, now)
		}
		return step
	}
	if left := w.limitStandBack(kq.standBackTime(now), now); left > 0 {
		kq.evidence.clearAttempt()
		w.ensureSignal()
		return Step{Head: head, Sleep: left, BlockedBy: w.blockedBy, Subscribe: kq.needsSubscription(now)}
	}
	w.become(queued)
	w.asking, w.asked, w.wakesSeen = true, now, kq.wakes
	kq.evidence.recordAttempt(now)
	return Step{Attempt: true}
}

// Poll makes the next step of w an attempt if w is the head and has nothing else to do. Otherwise it does
// nothing.
func (q *Queues) Poll(w *Waiter) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	if w.state == queued && w.queue.order.first == w {
		w.become(due)
	}
}

// RecordRefusal records that Redis refused the attempt of w because a client of the class by holds the
// lock. For a waiter for several keys it returns how often other waiters got the lock first.
func (q *Queues) RecordRefusal(w *Waiter, r Refusal, by Rival, now time.Time) (passed int) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	kq := w.queue
	kq.evidence.recordRefusal(&r, now)
	w.asking = false
	if kq.lane == nil && kq.order.first == w { // waiters that attempt together with the head get the same answer
		w.refusedAsHead = true
		kq.ensurePast().recordRefusal(now, by)
	}
	if w.skips.moved {
		w.skips.count++
	}
	return w.skips.count
}

// RecordSuccess records that the attempt of w succeeded, for a kind of lock without holders, such as a
// latch. It removes w and wakes the next waiter.
func (q *Queues) RecordSuccess(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	kq := w.queue
	kq.pace = nil
	kq.evidence.clearAttempt()
	sub := s.finish(w, now)
	if kq.lane == nil {
		kq.wakeNext(false)
		s.removeUnused(kq, now) // its subscription is sub
	}
	s.mu.Unlock()
	q.waiting.Add(-1)
	releaseSubscription(sub)
}

// finish removes w after a successful attempt. If the subscription is not needed any more, finish returns
// it for [releaseSubscription]. The shard is locked.
func (s *shard) finish(w *Waiter, now time.Time) Subscription {
	if !w.inQueue() {
		w.referred = true // a hand-off to w is under way and will find that w has left
		w.become(outside)
		return nil
	}
	kq := w.queue
	kq.order.remove(w)
	w.become(outside)
	if kq.lane != nil {
		return s.removeUnused(kq, now)
	}
	return kq.unsubscribeIfEmpty()
}

// Move moves w, a waiter for several keys, to the queue of another of its keys, which is taken. The arrival
// time of w decides its place there. If another kind of lock uses key, Move returns a [KindError]. Then w is
// in no queue, and the caller still has to call [Queues.Leave].
func (q *Queues) Move(w *Waiter, key string, now time.Time) error {
	from := q.lock(w.queue.key)
	kq := w.queue
	kq.evidence.clearAttempt()
	kq.leave(w)
	w.become(outside)
	sub := from.removeUnused(kq, now)
	from.mu.Unlock()
	releaseSubscription(sub)

	to := q.lock(key)
	defer to.mu.Unlock()
	next := to.get(key, w.Kind)
	if err := next.checkKind(w.Kind); err != nil {
		return err
	}
	next.enter(w)
	w.skips.moved = true
	return nil
}

// GrantOf returns the holder that w got by a hand-off or a pass, or nil. from is the field of the holder
// that gave w the lock or blocked w. GrantOf changes nothing.
func (q *Queues) GrantOf(w *Waiter) (grant Holder, from string) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.grant, w.blockedBy
}

// Accept completes the grant of w. The caller of w now owns the holder, and w is outside.
func (q *Queues) Accept(w *Waiter) {
	s := q.lock(w.queue.key)
	w.become(outside)
	sub := w.queue.unsubscribeIfEmpty()
	s.mu.Unlock()
	q.waiting.Add(-1)
	releaseSubscription(sub)
}

// Leave takes w out of its queue in any state. If w has already got the lock by a hand-off or a pass, Leave
// returns the holder, and the caller has to release it. Otherwise Leave returns nil.
func (q *Queues) Leave(w *Waiter, now time.Time) Holder {
	s := q.lock(w.queue.key)
	kq, grant := w.queue, w.grant
	if w.inQueue() {
		kq.leave(w)
	}
	w.become(outside)
	sub := s.removeUnused(kq, now)
	s.mu.Unlock()
	q.waiting.Add(-1)
	releaseSubscription(sub)
	return grant
}

// TakenSince reports whether this process knows that another holder had the lock at some time since w
// arrived. If Redis refused a waiter of the queue since then, r and at are the last refusal and its time.
// Otherwise r is nil, and TakenSince reports whether a holder of this process kept a waiter out, or keeps w
// out now.
func (q *Queues) TakenSince(w *Waiter) (r *Refusal, at time.Time, taken bool) {
	if w.queue == nil {
		return nil, at, false
	}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	r, at, taken = w.queue.evidence.takenSince(w.Since)
	return r, at, taken || !w.queue.holders.admits(w.Shared)
}

// NoAnswerSince reports whether the caller of w cannot know if the lock is taken. It returns true if an
// attempt was under way when w arrived, Redis has answered no attempt since, and no holder of this process
// keeps w out.
func (q *Queues) NoAnswerSince(w *Waiter) bool {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.queue.holders.admits(w.Shared) && w.queue.evidence.silentSince(w.Since)
}
