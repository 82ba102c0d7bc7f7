package reaper

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// orphan is a field that may be in Redis and has no holder in this client.
type orphan struct {
	kind    *redisstore.Kind
	field   string
	call    LateAnswer // the call without an answer; nil if none is awaited
	state   state
	until   time.Time // the command that writes the field is not executed after that
	keys    int       // number of keys that may still contain the field
	unasked int       // the number of keys for which Drain waits
}

// state is the state of the command that may have written an orphan to Redis.
//
//	expected ─ found, or the call was granted ─▶ seen
//	either   ─ the call changed nothing       ─▶ void
//
// An orphan that was seen, and that Redis does not find any more, cannot come back. A void orphan is in no key and
// cannot appear in one. Only become changes the state.
type state uint8

const (
	expected state = iota
	seen
	void
)

// recordOutcome records the outcome of the call, and drops a call that is not pending.
func (o *orphan) recordOutcome(outcome Outcome) {
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

// settled reports whether the reaper need not ask about the orphan any more, because the call changed nothing or because
// SettleTime has passed since until.
func (o *orphan) settled(now time.Time) bool {
	return o.state == void || now.After(o.until.Add(SettleTime))
}

// place is a key, with its kind of lock, that may contain an orphan.
type place struct {
	kind *redisstore.Kind
	key  string
}

// doubt is a place with the orphans that may be in it, oldest first.
//
//	queued ─ it is due, and its node answers ─▶ asked about ─ answered, or not ───▶ queued
//	       ─ it is due, and its node is silent ─▶ parked ─ a node answers again ──▶ queued
//
// The reaper removes a doubt when its last orphan is settled.
type doubt struct {
	dueheap.Slot
	place

	orphans []suspicion
	next    time.Time // when to ask about it next
	pause   time.Duration

	// alone means that a question that named this key was rejected as a whole, for example because an
	// ACL forbids one of its keys. Until a question about this key is answered, it names no other key.
	alone bool
}

// DueBefore orders keys by the time of the next question.
func (d *doubt) DueBefore(other *doubt) bool { return d.next.Before(other.next) }

// nameFirst moves an orphan that is in Redis to the end of the list, so that the next question names it. That question
// is due at once.
func (d *doubt) nameFirst(o *orphan, now time.Time) {
	at := slices.IndexFunc(d.orphans, func(s suspicion) bool { return s.orphan == o })
	last := len(d.orphans) - 1
	d.orphans[at], d.orphans[last] = d.orphans[last], d.orphans[at]
	d.next = now
}

// suspicion is one orphan in one key.
type suspicion struct {
	orphan *orphan
	asked  bool // Drain does not wait for this suspicion

	// seen and answered are the state of the orphan when the last question was sent.
	seen, answered bool
}

// unasked counts the orphans about which Redis was not asked yet.
//
//	open ── close ──▶ closed: later orphans are not counted, and none is closed when count reaches 0
type unasked struct {
	count  int
	closed bool
	none   chan struct{}
}

func newUnasked() unasked { return unasked{none: make(chan struct{})} }

// add counts an orphan, unless it comes after close, and reports whether it did.
func (u *unasked) add() bool {
	if !u.closed {
		u.count++
	}
	return !u.closed
}

func (u *unasked) remove() {
	if u.count--; u.closed && u.count == 0 {
		close(u.none)
	}
}

// close stops the count of new orphans. It returns a channel that is closed when no orphan is counted any more.
func (u *unasked) close() <-chan struct{} {
	if !u.closed && u.count == 0 {
		close(u.none)
	}
	u.closed = true
	return u.none
}

// LateAnswer is an acquire that was given up before it was answered. The reaper calls Late from one goroutine at a time.
type LateAnswer interface {
	// Late returns the outcome of the acquire. It does not block.
	Late() Outcome
}

// Outcome is the outcome of an acquire, as far as it is known. The reaper does not rely on it, because on a
// hanging connection the answer may never come.
type Outcome uint8

const (
	// Pending means that no answer has come so far.
	Pending Outcome = iota
	// Granted means that Redis executed the acquire and the field was there. A field that is gone cannot come back.
	Granted
	// Unchanged means that the acquire changed nothing and never will: the lock was taken, Redis
	// answered with an error, or the command was never sent.
	Unchanged
	// Unknown means that no answer will come.
	Unknown
)

// SettleTime is how long a command may still be executed after the lease that it requested would have ended. Until
// then it may be in a proxy, in a kernel buffer, or in a server that was stopped.
const SettleTime = 2 * time.Minute
