package acquire

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// place is the place of an attempt in the queue that a fair lock keeps in Redis. Its name in Redis is a field, which
// the attempt keeps while it gets answers:
//
//	none ── sends ──▶ taken ─ has the lock ─▶ none
//	                  │ ▲ └── leaves ───────▶ none: the reaper clears it up
//	        no answer ▼ │ sends, with a new field
//	                 ghost
//
// The next send names the ghosts. Redis gives its field their places, also places that they get later. So the ghosts
// go to the reaper only when the attempt ends.
type place struct {
	lane   string                               // lane of the waiter in this process: the first field
	taken  string                               // the field that has or may have a place; "": none
	ghosts []*redisstore.Call[redisstore.Grant] // the calls without an answer, in the order of attempt.ghosts
}

const (
	// placePoll is how long a waiter with a place sleeps before it shows that it is alive. The times for which others
	// wait for it follow from that: patience, absent and later in fair_acquire.lua.
	placePoll = redisstore.FairLook
	// farPoll is how long a waiter sleeps if manyOthers are before it (far in fair_acquire.lua), because there may be
	// thousands of such waiters.
	farPoll    = redisstore.FairFarLook
	manyOthers = redisstore.FairManyWait
	// sureAfter is how long a waiter sleeps when its messages begin to arrive, if at least fewOthers are before it.
	sureAfter = 100 * time.Millisecond
	fewOthers = 8
)

// placeLane returns a lane for this waiter alone, so no waiter of this process is before it.
func (a *attempt) placeLane() string {
	if a.place.lane == "" {
		a.place.lane = newField(a)
	}
	return a.place.lane
}

// placeField returns the field that has the place, or a new field. An attempt that does not wait takes no place.
func (a *attempt) placeField() string {
	p := &a.place
	switch {
	case p.taken != "":
	case p.lane != "" && a.report.Attempts == 0:
		p.taken = p.lane
	case a.wish.MayWait():
		p.taken = newField(a)
	default:
		return newField(a)
	}
	return p.taken
}

// keepGhost keeps a field without an answer for the next send to name.
func (a *attempt) keepGhost(_ string, call *redisstore.Call[redisstore.Grant]) {
	call.Settle()
	a.place.taken, a.place.ghosts = "", append(a.place.ghosts, call)
}

// leavePlace gives up the place, if any, and leaves the ghosts to the reaper.
func (a *attempt) leavePlace() {
	p, graves, kind := &a.place, a.in.Graves, a.wish.Kind
	if p.taken != "" {
		graves.Relinquish(kind, a.wantedKeys(), p.taken, a.wish.Lease)
	}
	for i, call := range p.ghosts {
		graves.Abandon(kind, a.wantedKeys(), a.ghosts[i], lateAnswer{call: call, leavesField: true}, a.wish.Lease)
	}
	*p = place{}
}

// sleepInPlace returns the sleep of a waiter with a place.
func (a *attempt) sleepInPlace(todo queue.Step) time.Duration {
	hears, before := !todo.NoMessages, a.waitersBefore()
	if before > 0 {
		todo.NoMessages, todo.Sleep = false, 0 // it can wait
	}
	interval := placePoll
	switch {
	case todo.NoMessages:
		interval = queue.SilentPoll
	case before >= manyOthers:
		interval = farPoll
	}
	return atMost(todo.Sleep, min(jitter.Of(interval), a.untilConfirmed(hears, before)))
}

// waitersBefore returns how many waiters were waitersBefore the attempt in Redis at its last refusal; 0 if it had none.
func (a *attempt) waitersBefore() int {
	if a.refusal.Refusal == nil {
		return 0
	}
	return a.refusal.Index
}

// untilConfirmed returns the longest sleep of a waiter whose messages begin to arrive, because it may have missed the
// message about its turn. If many are before the waiter, that message has most likely not been sent yet.
func (a *attempt) untilConfirmed(hears bool, before int) time.Duration {
	first := hears && !a.confirmed
	a.confirmed = hears
	switch {
	case !first:
		return farPoll
	case before < fewOthers:
		return 0
	default:
		return sureAfter
	}
}
