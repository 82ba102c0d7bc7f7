package core

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// lines are the local queues, one per key that is held or wanted by this client.
type lines struct {
	client *Client
	run    time.Duration // runDuration, except in tests
	seed   maphash.Seed
	shards [64]shard
}

// shard guards the lines of some keys. Nothing is done under its mutex but memory.
type shard struct {
	mu     sync.Mutex
	lines  map[string]*line
	recent map[string]possession // of keys whose line has ended
}

func newLines(c *Client) *lines {
	l := &lines{client: c, run: runDuration, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].lines = make(map[string]*line)
	}
	return l
}

// get finds or makes the line of key. The shard is locked.
func (s *shard) get(key string) *line {
	ln := s.lines[key]
	if ln == nil {
		ln = &line{key: key, possession: s.recall(key)}
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
		s.remember(ln.key, ln.possession, ln.possession.ended)
	}
	t := ln.topic
	ln.topic = nil
	return t
}

// standBack is how long the local head leaves the lock to other processes after a
// run, unless it is told earlier that somebody has released it.
const standBack = 2 * time.Millisecond

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
	pace     pace      // of the attempts that messages cause
	pacedTo  time.Time // the head waits until then because of it

	possession possession // how busy this process keeps the lock

	asked time.Time // the first attempt since the last answer; zero: it was answered

	refusal *redisstore.Refusal // the last one that a waiter got, nil if none did
	refused time.Time           // when that was
	ended   time.Time           // when a holder of this client has last left waiters behind
}

// waiter is one queued caller.
type waiter struct {
	line       *line // where it stands; only a waiter for several keys changes it
	prev, next *waiter
	req        *request
	since      time.Time
	until      time.Time     // end of the wait; zero: none
	signal     chan struct{} // look at your state; capacity 1
	many       bool          // wants several keys at once: a single one is not handed to it
	admitted   bool          // the limits of waiters have let it in before

	// Guarded by the shard.
	shared bool      // a hand-off knows it, and may look at it later
	due    bool      // an attempt is sensible now
	chosen bool      // taken out of the queue by a hand-off that is on its way
	left   bool      // gave up
	latest time.Time // it stands back no longer than until then; zero: it has not yet
	grant  *owner    // received from a hand-off
	behind string    // field of the holder of this client that it waits for, or got the lock from
	moved  bool      // of several keys: when one was free another one was in the way
	passed int       // of several keys: how often somebody else came first since then
}

func (l *lines) shard(key string) *shard {
	return &l.shards[maphash.String(l.seed, key)%uint64(len(l.shards))]
}

// join queues a caller, unless a limit is reached.
func (l *lines) join(key string, w *waiter) error {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.get(key)
	if err := l.admit(ln, w); err != nil {
		s.settle(ln)
		return err
	}
	ln.enter(w)
	return nil
}

// admit keeps the limits. The shard is locked.
func (l *lines) admit(ln *line, w *waiter) error {
	if ln.waiting >= l.limit(w.req) && !w.admitted {
		return ErrTooManyWaiters
	}
	if l.client.waiters.Add(1) > int64(l.client.cfg.maxWaiters) && !w.admitted {
		l.client.waiters.Add(-1)
		return ErrTooManyWaiters
	}
	return nil
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

// refused notes that Redis has named another holder to w, in whose line it stands, and
// says how often w was passed over.
func (l *lines) refused(w *waiter, r *redisstore.Refusal, now time.Time) (passed int) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.line.refusal, w.line.refused, w.line.asked = r, now, time.Time{}
	w.line.possession.contested()
	if w.moved {
		w.passed++
	}
	return w.passed
}

// takenSince says whether the lock is known to have been taken while w waited: a
// waiter of the line was refused, then with the refusal, or a holder of this client
// had it.
func (l *lines) takenSince(w *waiter) (r *redisstore.Refusal, at time.Time, taken bool) {
	if w.line == nil {
		return nil, at, false
	}
	s := l.shard(w.line.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := w.line
	if ln.refusal != nil && !ln.refused.Before(w.since) {
		return ln.refusal, ln.refused, true
	}
	return nil, at, ln.owner != nil || !ln.ended.IsZero() && !ln.ended.Before(w.since)
}

// silent says whether other waiters have had no answer for as long as w has waited,
// and no holder of this client explains that: then nobody knows whether the lock is
// taken.
func (l *lines) silent(w *waiter) bool {
	s := l.shard(w.line.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := w.line
	return ln.owner == nil && !ln.asked.IsZero() && !ln.asked.After(w.since)
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
		ln.quit(w)
	}
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.waiters.Add(-1)
	l.client.hub.release(t)
	return grant
}

// heldHere reports whether a holder of this client has the key.
func (l *lines) heldHere(key string, now time.Time) bool {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	return ln != nil && ln.owner != nil && !ln.owner.lease.Expired(now)
}

// took registers the owner that the head, or a caller that does not wait, has
// taken from Redis.
func (l *lines) took(key string, w *waiter, o *owner, now time.Time) {
	s := l.shard(key)
	s.mu.Lock()
	ln := s.get(key)
	before := ln.owner
	o.known = now.Sub(l.client.start)
	ln.owner, ln.run, ln.runStart, ln.backTo, ln.asked = o, 0, now, time.Time{}, time.Time{}
	ln.pace, ln.pacedTo = pace{}, time.Time{}
	ln.possession.taken(now.Sub(l.client.start))
	var t *topic
	switch {
	case w == nil:
	case w.chosen:
		w.shared = true
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
	l.replaced(before, o)
}

// replaced judges a holder of this client whose lock was taken by another one. If
// it was known before that one was asked for, its key was not there any more. Else
// the two have overtaken each other, and Redis knows.
func (l *lines) replaced(before, by *owner) {
	switch {
	case before == nil:
	case before.known < by.sent:
		before.lease.Lose(errNotMine)
	default:
		l.client.verify(before)
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
	s := l.shard(o.lease.Key)
	s.mu.Lock()
	ln := s.lines[o.lease.Key]
	if ln == nil || ln.owner != o {
		s.mu.Unlock()
		return
	}
	now := time.Now()
	ln.owner, ln.pacedTo = nil, time.Time{}
	ln.possession.freed(now.Sub(l.client.start))
	if ln.first != nil {
		ln.ended = now
	}
	if othersTold && ln.first != nil {
		ln.backTo = now.Add(standBack)
	}
	if !ln.echoTo.IsZero() {
		ln.echoTo = now.Add(echoWindow)
	}
	ln.wakeHead()
	t := s.settle(ln)
	s.mu.Unlock()
	l.client.hub.release(t)
}
