package reaper

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// orphan is a field that nobody holds a lock with, but that may be in Redis.
type orphan struct {
	kind    *redisstore.Kind
	field   string
	call    LateAnswer // without an answer so far; nil when none is awaited
	state   state
	until   time.Time // after that nothing can land any more
	keys    int       // in how many it may still be
	unasked int       // keys for which Drain still waits
}

// state is what is known about the command that may have brought an orphan to Redis.
//
//	expected ─ found, or the call was granted ─▶ seen
//	either   ─ the call has changed nothing   ─▶ void
//
// Once it is seen, "not there" says that it has gone. What is void is in no key, and cannot
// be. Only become changes the state.
type state uint8

const (
	expected state = iota
	seen
	void
)

// learn takes in what became of the call. Only consider, which asks for it, calls this.
func (o *orphan) learn(outcome Outcome) {
	switch outcome {
	case Granted:
		o.become(seen)
	case Unchanged:
		o.become(void)
	case Pending, Unknown:
	}
	if outcome != Pending {
		o.call = nil
	}
}

func (o *orphan) become(s state) { o.state = s }

// settled reports whether nothing is left to ask: the call has changed nothing, or no answer
// will come, and no key is left.
func (o *orphan) settled(now time.Time) bool {
	return o.state == void || now.After(o.until.Add(SettleTime))
}

// place is where an orphan may be: a key, as the kind of lock has it.
type place struct {
	kind *redisstore.Kind
	key  string
}

// doubt is a place with the orphans that may be in it, oldest first.
//
//	queued ─ it is time, and its node answers ─▶ asked about ─ answered, or not ───▶ queued
//	       ─ it is time, and its node is silent ─▶ parked ─ a node answers again ──▶ queued
//
// It is forgotten when its last orphan is settled.
type doubt struct {
	dueheap.Slot
	place

	orphans []suspicion
	next    time.Time // when it is asked about
	pause   time.Duration

	// alone says that a question which named this key was rejected as a whole, as by an ACL
	// that forbids one of its keys: it does not travel with others until it is answered.
	alone bool
}

// DueBefore is the order in which keys are asked about.
func (d *doubt) DueBefore(other *doubt) bool { return d.next.Before(other.next) }

// name has the next question, at once, name an orphan that is there.
func (d *doubt) name(o *orphan, now time.Time) {
	at := slices.IndexFunc(d.orphans, func(s suspicion) bool { return s.orphan == o })
	last := len(d.orphans) - 1
	d.orphans[at], d.orphans[last] = d.orphans[last], d.orphans[at]
	d.next = now
}

// suspicion is one orphan in one key.
type suspicion struct {
	orphan *orphan
	asked  bool // Drain does not wait for it any more

	// As it was when the last question was sent.
	seen, answered bool
}

// unasked counts the orphans that Redis was not asked about yet.
//
//	open ── close ──▶ closed: who comes is not counted; none is closed with the last one
type unasked struct {
	count  int
	closed bool
	none   chan struct{}
}

func newUnasked() unasked { return unasked{none: make(chan struct{})} }

// enter reports whether an orphan is counted.
func (u *unasked) enter() bool {
	if !u.closed {
		u.count++
	}
	return !u.closed
}

func (u *unasked) exit() {
	if u.count--; u.closed && u.count == 0 {
		close(u.none)
	}
}

// close gives a channel that is closed when nobody is counted any more.
func (u *unasked) close() <-chan struct{} {
	if !u.closed && u.count == 0 {
		close(u.none)
	}
	u.closed = true
	return u.none
}
