package core

import "time"

// step is what a waiter has to do next.
type step struct {
	grant   *owner
	attempt bool
	head    bool
	sleep   time.Duration // until the head's stand-back is over; 0: as long as it likes
	silent  bool          // the head gets no messages
	behind  string        // field of the holder of this client that it waits for
}

// next looks at the state of a waiter.
func (l *lines) next(w *waiter, now time.Time) step {
	s := l.shard(w.line.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := w.line
	switch {
	case w.grant != nil:
		return step{grant: w.grant}
	case w.chosen || ln.first != w || !w.due:
		w.listen()
		if ln.owner != nil {
			w.behind = ln.owner.lease.Field
		}
		return step{head: ln.first == w, behind: w.behind, silent: ln.first == w && ln.silent()}
	}
	if left := l.standsBack(ln, w, now); left > 0 {
		w.listen()
		return step{head: true, sleep: left, behind: w.behind}
	}
	w.due = false
	if ln.asked.IsZero() {
		ln.asked = now
	}
	return step{attempt: true}
}

// silent says whether the subscription of the line is not there, while somebody
// elsewhere has the lock.
func (ln *line) silent() bool {
	return ln.owner == nil && ln.topic != nil && !ln.topic.confirmed.Load()
}

// reserve is what a caller keeps of its wait for its attempt, when it stands back.
const reserve = 20 * time.Millisecond

// standsBack is for how long the head leaves the lock to others, 0 if it does not: a
// release may have woken others, messages may come too fast, or the lock has to be left
// free. A caller whose wait ends soon keeps enough of it to find out whether the lock
// is free. The shard is locked.
func (l *lines) standsBack(ln *line, w *waiter, now time.Time) time.Duration {
	start := l.client.start
	if p := &ln.possession; ln.owner == nil && (p.again || !ln.silent()) && p.owes(ln.key, start, now) {
		p.give(ln.key, start, now)
	}
	left := max(ln.backTo.Sub(now), ln.pacedTo.Sub(now), ln.possession.until-now.Sub(start))
	if left <= 0 || w.until.IsZero() {
		return max(left, 0)
	}
	if w.latest.IsZero() {
		w.latest = w.until.Add(-min(w.until.Sub(now)/2, reserve))
	}
	return max(min(left, w.latest.Sub(now)), 0)
}
