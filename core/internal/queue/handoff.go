package queue

import "time"

// Choose takes the next holder out of the queue for a hand-off or a pass from h, which ends with
// [Queues.Handed], [Queues.Passed] or [Queues.NotHanded]. It gives nil when the lock must be freed:
// no waiter can take it, or it is the turn of other processes, or the lock is shared.
func (q *Queues) Choose(key string, h Holder, now time.Time) *Waiter {
	s := q.lock(key)
	defer s.mu.Unlock()
	in := s.queues[key]
	if in == nil || in.holders.index(h) < 0 {
		return nil
	}
	w := in.choose(q.cfg.Run, now)
	if w == nil {
		in.expectEcho(now)
		return nil
	}
	in.order.remove(w)
	w.become(chosen)
	w.behind = in.holders.field()
	in.handing++
	return w
}

func (in *queue) choose(limits RunLimits, now time.Time) *Waiter {
	if in.order.first == nil || !in.holders.alone() || !in.mayHandOff(limits, now) {
		return nil
	}
	return in.nextHolder(now)
}

// mayHandOff reports whether the lock may go on within this process.
func (in *queue) mayHandOff(limits RunLimits, now time.Time) bool {
	past := in.past()
	return past.turns.mayHandOff(now, limits) && !past.possession.owes(in.key, now)
}

// Handed completes a hand-off: to is the new holder. It reports whether the chosen waiter
// was still there to take it.
func (q *Queues) Handed(w *Waiter, from, to Holder, now time.Time) bool {
	next := tenure{to, to.Field(), w.Shared, now}
	s := q.lock(w.queue.key)
	defer s.mu.Unlock()
	in := w.queue
	in.handing--
	in.past().turns.handed()
	if in.holders.follow(from, next) {
		in.takesAs(w.Kind)
	}
	return w.given(to)
}

// Passed completes a pass: h goes on, as the holder of the chosen waiter. It reports whether h was
// still there to give the lock, and the waiter to take it.
func (q *Queues) Passed(w *Waiter, h Holder, now time.Time) bool {
	s := q.lock(w.queue.key)
	in := w.queue
	if in.holders.index(h) < 0 {
		s.mu.Unlock()
		q.NotHanded(w, now)
		return false
	}
	defer s.mu.Unlock()
	in.handing--
	in.past().turns.handed()
	in.takesAs(w.Kind)
	return w.given(h)
}

// given gives a chosen waiter the lock, if it is still there. The shard is locked.
func (w *Waiter) given(h Holder) bool {
	if w.state != chosen {
		return false
	}
	w.grant = h
	w.become(granted)
	w.wake()
	return true
}

// NotHanded puts the chosen waiter back to the head of the queue: the hand-off has failed,
// and it has to try by itself.
func (q *Queues) NotHanded(w *Waiter, now time.Time) {
	s := q.lock(w.queue.key)
	in := w.queue
	in.handing--
	if w.state == chosen {
		in.order.insert(w, nil)
		w.become(queued)
	}
	in.wakeHead()
	t := s.settle(in, now)
	s.mu.Unlock()
	release(t)
}
