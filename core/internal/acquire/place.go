package acquire

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/jitter"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// place is the place of an attempt in the queue that a fair lock keeps in Redis. A field names the place. The attempt
// sends the same field again and again while Redis answers:
//
//	none ── sends ──▶ taken ─ has the lock ─▶ none
//	                  │ ▲ └── leaves ───────▶ none: the reaper clears it up
//	        no answer ▼ │ sends, with a new field
//	                 ghost
//
// Each send also names the ghosts. If a ghost has a place or gets one later, Redis gives that place to the field of the
// next send. So the attempt leaves the ghosts to the reaper only when it ends.
type place struct {
	lane   string                               // lane of the waiter in this process: the first field
	taken  string                               // the field that has or may have a place; "": none
	ghosts []*redisstore.Call[redisstore.Grant] // the calls without an answer, in the order of attempt.ghosts
}

const (
	// placePoll is the interval at which a waiter with a place shows that it is alive. patience, absent and later in
	// fair_acquire.lua depend on it: they are the times after which other waiters pass the waiter over.
	placePoll = redisstore.FairLook
	// farPoll is the interval of a waiter with at least manyOthers before it (far in fair_acquire.lua). It is longer
	// than placePoll, because there may be thousands of such waiters.
	farPoll    = redisstore.FairFarLook
	manyOthers = redisstore.FairManyWait
	// sureAfter is how long a waiter with at least fewOthers before it sleeps after its messages begin to arrive.
	sureAfter = 100 * time.Millisecond
	fewOthers = 8
)

// placeLane returns a lane for this waiter alone, so that it does not queue behind other waiters of
// this process.
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
	p, kind := &a.place, a.wish.Kind
	if p.taken != "" {
		a.in.Reaper.Relinquish(kind, a.wantedKeys(), p.taken, a.wish.Lease)
	}
	for i, call := range p.ghosts {
		a.in.Reaper.Abandon(kind, a.wantedKeys(), a.ghosts[i], lateAnswer{call: call, leavesField: true}, a.wish.Lease)
	}
	*p = place{}
}

// sleepInPlace returns the sleep of a waiter with a place.
func (a *attempt) sleepInPlace(todo queue.Step) time.Duration {
	hears, before := !todo.NoMessages, a.waitersBefore()
	if before > 0 {
		todo.NoMessages, todo.Sleep = false, 0 // its turn does not come soon
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

// waitersBefore returns how many waiters were before the attempt in Redis at its last refusal. It returns 0 if the
// attempt was not refused.
func (a *attempt) waitersBefore() int {
	if a.refusal.Refusal == nil {
		return 0
	}
	return a.refusal.Index
}

// untilConfirmed limits the sleep of a waiter when its messages begin to arrive, because it may have missed the message
// about its turn. With fewOthers or more before the waiter, that message has most likely not been sent yet. At other
// times untilConfirmed returns farPoll.
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
