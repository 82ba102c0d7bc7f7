package queue

import "time"

// passed is how a waiter for several keys has let others go first.
type passed struct {
	moved bool // when one key was free another one was in the way
	times int  // how often somebody else came first since then
}

// Move takes a waiter for several keys to the queue of the one that is in the way, to the
// place that its age gives it. The queue that it leaves is not held up by it. It fails with
// a [KindError] when that key is in use as another kind of lock: then the waiter has to
// leave.
func (q *Queues) Move(w *Waiter, key string, now time.Time) error {
	from := q.lock(w.queue.key)
	in := w.queue
	in.evidence.answered()
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

// Busiest is the index of the first of several keys that somebody of this process holds
// or waits for, else 0.
func (q *Queues) Busiest(keys []string) int {
	for i, key := range keys {
		if q.Wanted(key) {
			return i
		}
	}
	return 0
}

// lateAnswer is how long an attempt is under way at most until a lock of its own process does not wait
// for it any more.
const lateAnswer = 10 * time.Millisecond

// nextHolder is the first waiter to whom the lock can be handed over, nil if it has to be
// freed: nobody waits, or the first one wants several keys, or to share this one, and
// should try. One that wants several lets others go first while another of its keys is
// known to be in the way. One that waits for another kind of lock is about to leave. The lock is freed
// for a waiter whose own attempt is under way, and if the answer is late others go first.
func (in *queue) nextHolder(now time.Time) *Waiter {
	w := in.order.first
	for w != nil && (w.Kind != in.kind || w.Several && w.passed.moved || w.asking && now.Sub(w.asked) >= lateAnswer) {
		w = w.next
	}
	if w == nil || w.Several || w.Shared || w.asking {
		return nil
	}
	for before := in.order.first; before != w; before = before.next {
		before.passed.times++
	}
	return w
}
