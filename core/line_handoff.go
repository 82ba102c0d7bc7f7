package core

import "time"

// Bounds of a run of hand-offs: after so many, or so long, the lock is freed with
// a message, so that waiters of other processes get their turn.
const (
	runLength   = 16
	runDuration = 50 * time.Millisecond
)

// choose takes the next holder out of the queue for a hand-off from o. It gives nil
// when there is none, or when the run is over, and the lock must be freed.
func (l *lines) choose(o *owner, now time.Time) *waiter {
	s := l.shard(o.lease.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[o.lease.Key]
	if ln == nil || ln.owner != o {
		return nil
	}
	var w *waiter
	if ln.first != nil && ln.run < runLength && now.Sub(ln.runStart) < l.run && !ln.possession.owes(ln.key, l.client.start, now) {
		w = ln.nextHolder()
	}
	if w == nil {
		ln.expectEcho(now)
		return nil
	}
	ln.remove(w)
	w.chosen, w.behind = true, o.lease.Field
	ln.handing = true
	return w
}

// echoWindow is how long after a release its own message may still be on the way.
const echoWindow = 50 * time.Millisecond

// expectEcho prepares for the message of a command that is about to be sent: it
// comes back on our own subscription, and means nothing to us. If it never comes,
// another one that is taken for it costs the head one poll interval.
func (ln *line) expectEcho(now time.Time) {
	if ln.topic != nil && ln.topic.confirmed.Load() {
		ln.echoTo = now.Add(time.Second)
	}
}

// expectFall prepares for the message of a command that lowers the TTL of key, which
// is had for as long as left, to lease. The waiters of this client wait for the holder,
// and need not be told. It says whether the TTL falls, as far as is known; then fell
// follows.
func (l *lines) expectFall(key string, left, lease time.Duration) (falls bool) {
	if left <= lease {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil {
		ln.expectEcho(time.Now())
	}
	return true
}

// fell ends what expectFall has begun: published says whether there is a message.
func (l *lines) fell(key string, published bool) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	switch {
	case ln == nil || ln.echoTo.IsZero():
	case published:
		ln.echoTo = time.Now().Add(echoWindow)
	default:
		ln.echoTo = time.Time{}
	}
}

// handed completes a hand-off: to is the new holder. It says whether the chosen
// waiter was still there to take it.
func (l *lines) handed(w *waiter, from, to *owner) bool {
	s := l.shard(to.lease.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := w.line
	ln.handing = false
	if ln.owner == from || ln.owner == nil {
		ln.owner = to
	}
	to.known = time.Since(l.client.start)
	ln.run++
	if w.left {
		return false
	}
	w.grant = to
	w.wake()
	return true
}

// notHanded puts the chosen waiter back to the head of the queue: the hand-off has
// failed, and it has to try by itself.
func (l *lines) notHanded(w *waiter) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	ln := w.line
	ln.handing = false
	w.chosen = false
	if !w.left {
		ln.insert(w, nil)
	}
	ln.wakeHead()
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.hub.release(t)
}
