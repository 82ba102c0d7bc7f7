package queue

import "time"

// Step is what a waiter has to do next.
type Step struct {
	Grant   Holder        // it was given the lock: Accept it, or Leave
	Err     error         // a KindError: the key is in use as another kind of lock by now; Leave
	Attempt bool          // attempt now
	Head    bool          // it is the first, and sleeps
	Sleep   time.Duration // at most so long, then Poll; 0: as long as it likes
	Silent  bool          // it is the first and gets no messages
	Deaf    bool          // it leaves the lock to others, and has no subscription to hear of them
	Behind  string        // field of the holder of this process that it waits for, or got the lock from
}

// Next says what a waiter has to do.
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
		in.evidence.nobodyAsks()
		w.listen()
		return Step{Head: head, Sleep: left, Behind: w.behind, Deaf: in.deaf(now)}
	}
	w.become(queued)
	w.asking, w.asked, w.wakes = true, now, in.wakes
	in.evidence.asks(now)
	return Step{Attempt: true}
}

// Granted returns what a hand-off or a pass has brought to a waiter, nil if there is none, and the field
// of the holder that gave it. It changes nothing.
func (q *Queues) Granted(w *Waiter) (grant Holder, behind string) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	return w.grant, w.behind
}

// standsBack is for how long the head leaves the lock to other processes: it is their turn,
// messages come too fast, or the lock has to be left free.
func (in *queue) standsBack(now time.Time) time.Duration {
	paced, past := in.pace.left(now), in.lasting
	if past == nil {
		return paced
	}
	free := !in.holders.any()
	if p := &past.possession; free && (p.again || !in.silent()) && p.owes(in.key, now) && p.mayGive() {
		p.give(in.key, now, past.turns.heard())
		past.turns.gives()
	}
	return max(past.turns.waits(now), paced, past.possession.until.Sub(now))
}

// deaf reports whether it is the turn of others whose release nobody here would hear of. Who
// only leaves the lock free now and then waits for nobody's message.
func (in *queue) deaf(now time.Time) bool {
	return in.subscription == nil && in.past().turns.waits(now) > 0
}

// Poll makes the next step an attempt, if the waiter is the head.
func (q *Queues) Poll(w *Waiter) {
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	if w.state == queued && w.queue.order.first == w {
		w.become(due)
	}
}

// Accept completes a grant on the side of the waiter, which has the lock then.
func (q *Queues) Accept(w *Waiter) {
	s := q.lock(w.queue.key)
	w.become(outside)
	t := w.queue.unneeded()
	s.mu.Unlock()
	q.waiting.Add(-1)
	release(t)
}
