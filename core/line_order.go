package core

import "time"

// enter puts a waiter into the line, at the place that its age gives it: one that has
// stood elsewhere before has not come last. The shard is locked, as for all of these.
func (ln *line) enter(w *waiter) {
	after := ln.last
	for after != nil && after.since.After(w.since) {
		after = after.prev
	}
	ln.insert(w, after)
	w.line = ln
	w.due = after == nil && ln.owner == nil && !ln.handing
}

// insert puts a waiter behind another one, or to the front.
func (ln *line) insert(w, after *waiter) {
	w.prev, w.next = after, ln.first
	if after != nil {
		w.next = after.next
		after.next = w
	} else {
		ln.first = w
	}
	if w.next != nil {
		w.next.prev = w
	} else {
		ln.last = w
	}
	ln.waiting++
}

func (ln *line) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		ln.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		ln.last = w.prev
	}
	w.prev, w.next = nil, nil
	ln.waiting--
}

// quit takes out a waiter that goes away without the lock. What woke it is passed on.
func (ln *line) quit(w *waiter) {
	wasHead := ln.first == w
	ln.remove(w)
	if wasHead && ln.owner == nil && !ln.handing {
		ln.wakeHead()
	}
}

// nextHolder is the first waiter to whom the lock can be handed over, nil if it has to
// be freed: nobody waits, or somebody who wants several keys is first and should try.
// It lets others go first while another of its keys is known to be in the way.
func (ln *line) nextHolder() *waiter {
	w := ln.first
	for w != nil && w.many && w.moved {
		w = w.next
	}
	if w == nil || w.many {
		return nil
	}
	for passed := ln.first; passed != w; passed = passed.next {
		passed.passed++
	}
	return w
}

// move takes a waiter for several keys to the line of the one that is in the way. The
// line that it leaves is not held up by it.
func (l *lines) move(w *waiter, key string) {
	from := l.shard(w.line.key)
	from.mu.Lock()
	ln := w.line
	ln.asked = time.Time{} // Redis has answered
	ln.quit(w)
	t := from.settle(ln)
	from.mu.Unlock()
	t.Unsubscribe()

	to := l.shard(key)
	to.mu.Lock()
	defer to.mu.Unlock()
	to.get(key).enter(w)
	w.moved = true
}

// busiest is the index of the first of several keys that somebody of this client holds
// or waits for, else 0.
func (l *lines) busiest(keys []string) int {
	for i, key := range keys {
		if l.others(key) {
			return i
		}
	}
	return 0
}
