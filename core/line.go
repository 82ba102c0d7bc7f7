package core

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Bounds of a run of hand-offs: after so many, or so long, the lock is freed with
// a message, so that waiters of other processes get their turn.
const (
	runLength   = 16
	runDuration = 50 * time.Millisecond
)

// standBack is how long the local head leaves the lock to other processes after a
// run, unless it is told earlier that somebody has released it.
const standBack = 2 * time.Millisecond

// lines are the local queues, one per key that is held or wanted by this client.
type lines struct {
	client *Client
	seed   maphash.Seed
	shards [64]shard
}

// shard guards the lines of some keys. Nothing is done under its mutex but memory.
type shard struct {
	mu    sync.Mutex
	lines map[string]*line
}

// line is the local queue of one key: the waiters of this client in the order in
// which they came, and the holder if it is one of this client. Only the head talks
// to Redis.
type line struct {
	key         string
	owner       *owner // holder of this client, nil if none
	handing     bool   // a hand-off is on its way
	first, last *waiter
	waiting     int
	topic       *topic // subscription to the wake-ups, kept while anybody waits

	run      int       // hand-offs since the lock was taken from Redis
	runStart time.Time // when that was
	backTo   time.Time // the head stands back until then
	echoTo   time.Time // until then the next message is taken for that of our own release
}

// waiter is one queued caller.
type waiter struct {
	line       *line
	prev, next *waiter
	req        *request
	since      time.Time
	signal     chan struct{} // look at your state; capacity 1

	// Guarded by the shard.
	due    bool   // an attempt is sensible now
	chosen bool   // taken out of the queue by a hand-off that is on its way
	left   bool   // gave up
	grant  *owner // received from a hand-off
}

func newLines(c *Client) *lines {
	l := &lines{client: c, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].lines = make(map[string]*line)
	}
	return l
}

func (l *lines) shard(key string) *shard {
	return &l.shards[maphash.String(l.seed, key)%uint64(len(l.shards))]
}

// get finds or makes the line of key. The shard is locked.
func (s *shard) get(key string) *line {
	ln := s.lines[key]
	if ln == nil {
		ln = &line{key: key}
		s.lines[key] = ln
	}
	return ln
}

// settle forgets a line that nobody needs, and gives the subscription to let go.
// The shard is locked.
func (s *shard) settle(ln *line) *topic {
	if ln.first != nil || ln.owner != nil || ln.handing {
		return nil
	}
	if s.lines[ln.key] == ln {
		delete(s.lines, ln.key)
	}
	t := ln.topic
	ln.topic = nil
	return t
}

// join queues a caller, unless a limit is reached.
func (l *lines) join(key string, w *waiter) error {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.get(key)
	if err := l.admit(ln, w.req); err != nil {
		s.settle(ln)
		return err
	}
	w.line = ln
	ln.push(w)
	w.due = ln.first == w && ln.owner == nil && !ln.handing
	return nil
}

// admit keeps the limits. The shard is locked.
func (l *lines) admit(ln *line, req *request) error {
	limit := l.client.cfg.maxWaitersPerKey
	if req.maxWaiters > 0 {
		limit = min(limit, req.maxWaiters)
	}
	if ln.waiting >= limit {
		return ErrTooManyWaiters
	}
	if l.client.waiters.Add(1) > int64(l.client.cfg.maxWaiters) {
		l.client.waiters.Add(-1)
		return ErrTooManyWaiters
	}
	return nil
}

func (ln *line) push(w *waiter) {
	w.prev, w.next = ln.last, nil
	if ln.last != nil {
		ln.last.next = w
	} else {
		ln.first = w
	}
	ln.last = w
	ln.waiting++
}

// pushFront puts a waiter back whose hand-off has failed.
func (ln *line) pushFront(w *waiter) {
	w.prev, w.next = nil, ln.first
	if ln.first != nil {
		ln.first.prev = w
	} else {
		ln.last = w
	}
	ln.first = w
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

// wakeHead tells the head that an attempt is sensible.
func (ln *line) wakeHead() {
	if w := ln.first; w != nil {
		w.due = true
		w.wake()
	}
}

// wake makes the waiter look at its state. The shard is locked, so that signal is
// either seen or not yet needed.
func (w *waiter) wake() {
	if w.signal == nil {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// step is what a waiter has to do next.
type step struct {
	grant   *owner
	attempt bool
	sleep   time.Duration // until the head's stand-back is over; 0: as long as it likes
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
		return step{}
	case now.Before(ln.backTo):
		w.listen()
		return step{sleep: ln.backTo.Sub(now)}
	}
	w.due = false
	return step{attempt: true}
}

func (w *waiter) listen() {
	if w.signal == nil {
		w.signal = make(chan struct{}, 1)
	}
}

// poll makes the next look an attempt, if the waiter is the head.
func (l *lines) poll(w *waiter) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.due = w.due || w.line.first == w
}

// accepted completes a grant on the side of the waiter.
func (l *lines) accepted(w *waiter) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	t := w.line.unneeded()
	s.mu.Unlock()
	l.client.waiters.Add(-1)
	l.client.hub.release(t)
}

// leave takes a waiter out of the queue, however far it got. A grant that has
// arrived already is given to the caller.
func (l *lines) leave(w *waiter) *owner {
	s := l.shard(w.line.key)
	s.mu.Lock()
	ln := w.line
	w.left = true
	grant := w.grant
	if grant == nil && !w.chosen {
		wasHead := ln.first == w
		ln.remove(w)
		if wasHead && ln.owner == nil && !ln.handing {
			ln.wakeHead() // pass on whatever woke this one
		}
	}
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.waiters.Add(-1)
	l.client.hub.release(t)
	return grant
}

// took registers the owner that the head, or a caller that does not wait, has
// taken from Redis.
func (l *lines) took(key string, w *waiter, o *owner, now time.Time) {
	s := l.shard(key)
	s.mu.Lock()
	ln := s.get(key)
	before := ln.owner
	ln.owner, ln.run, ln.runStart, ln.backTo = o, 0, now, time.Time{}
	var t *topic
	switch {
	case w == nil:
	case w.chosen:
		w.left = true // a hand-off is on its way to it, and finds that it is not needed
	default:
		ln.remove(w)
		t = ln.unneeded()
	}
	s.mu.Unlock()
	if w != nil {
		l.client.waiters.Add(-1)
		l.client.hub.release(t)
	}
	if before != nil {
		before.lose(errNotMine) // its key was not there any more
	}
}

// unneeded gives the subscription back when nobody waits. The shard is locked.
func (ln *line) unneeded() *topic {
	if ln.first != nil {
		return nil
	}
	t := ln.topic
	ln.topic = nil
	return t
}

// ownerEnded forgets a holder of this client. told says that a message went out
// which others heard.
func (l *lines) ownerEnded(o *owner, othersTold bool) {
	s := l.shard(o.key)
	s.mu.Lock()
	ln := s.lines[o.key]
	if ln == nil || ln.owner != o {
		s.mu.Unlock()
		return
	}
	ln.owner = nil
	if othersTold && ln.first != nil {
		ln.backTo = time.Now().Add(standBack)
	}
	if !ln.echoTo.IsZero() {
		ln.echoTo = time.Now().Add(echoWindow)
	}
	ln.wakeHead()
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.hub.release(t)
}

// choose takes the head out of the queue for a hand-off from o. It gives nil when
// nobody waits, or when the run is over and the lock must be freed.
func (l *lines) choose(o *owner, now time.Time) *waiter {
	s := l.shard(o.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[o.key]
	if ln == nil || ln.owner != o {
		return nil
	}
	if ln.first == nil || ln.run >= runLength || now.Sub(ln.runStart) >= runDuration {
		ln.expectEcho(now)
		return nil
	}
	w := ln.first
	ln.remove(w)
	w.chosen = true
	ln.handing = true
	return w
}

// echoWindow is how long after a release its own message may still be on the way.
const echoWindow = 50 * time.Millisecond

// expectEcho prepares for the message of a release that is about to be sent: it
// comes back on our own subscription, and means nothing to us. If it never comes,
// another one that is taken for it costs the head one poll interval.
func (ln *line) expectEcho(now time.Time) {
	if ln.topic != nil && ln.topic.confirmed.Load() {
		ln.echoTo = now.Add(time.Second)
	}
}

// handed completes a hand-off: to is the new holder. It says whether the chosen
// waiter was still there to take it.
func (l *lines) handed(w *waiter, to *owner) bool {
	s := l.shard(to.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := w.line
	ln.handing = false
	ln.owner = to
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
		ln.pushFront(w)
	}
	ln.wakeHead()
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.hub.release(t)
}

// kick wakes the head of the line of key, if there is one.
func (l *lines) kick(key string) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil {
		ln.wakeHead()
	}
}

// message is a wake-up from Redis about key. It gives the holder of this client,
// whose belief it puts in doubt.
func (l *lines) message(key string) *owner {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	if ln == nil {
		return nil
	}
	if echo := ln.echoTo; !echo.IsZero() {
		ln.echoTo = time.Time{}
		if time.Now().Before(echo) {
			return nil
		}
	}
	ln.backTo = time.Time{}
	ln.wakeHead()
	return ln.owner
}

// subscribe gives the line of a waiting head its wake-ups.
func (l *lines) subscribe(ctx context.Context, w *waiter) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	has := w.line.topic != nil
	s.mu.Unlock()
	if has {
		return
	}
	t := l.client.hub.subscribe(ctx, w.line.key)
	s.mu.Lock()
	if w.line.topic == nil && !w.left && !w.chosen && w.grant == nil {
		w.line.topic, t = t, nil
	}
	s.mu.Unlock()
	l.client.hub.release(t)
}

// subscribed says how many of the subscribers of key are this client.
func (l *lines) subscribed(key string) int {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil && ln.topic != nil && ln.topic.confirmed.Load() {
		return 1
	}
	return 0
}

// others says whether somebody of this client waits for key.
func (l *lines) others(key string) bool {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	return ln != nil && (ln.first != nil || ln.owner != nil || ln.handing)
}

// oldest is when the longest waiting caller came; zero if nobody waits.
func (l *lines) oldest() time.Time {
	var oldest time.Time
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, ln := range s.lines {
			if ln.first != nil && (oldest.IsZero() || ln.first.since.Before(oldest)) {
				oldest = ln.first.since
			}
		}
		s.mu.Unlock()
	}
	return oldest
}
