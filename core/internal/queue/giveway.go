package queue

import (
	"hash/fnv"
	"time"
)

// A waiter that gets no messages polls, and other processes cannot see it: PUBLISH counts
// subscribers only. The ACL of such a process may lack the channel, or its subscription may be dead.
// Beside a process that takes a lock again as soon as it freed the lock, such a poll would find the
// lock free once in a thousand times. So a process that keeps a lock busy leaves it free now and
// then, for one whole interval of such a poll.
//
// All processes do so at the same time; otherwise one process would take the lock that another one
// leaves free. They do it in windows of the wall clock that are computed from the key. When a window
// begins, waiters without messages poll more often for a moment. So where other processes listen and
// would all have to wait, the lock is left free for a shorter time.
//
// If the clocks of two machines differ by more than silentLooks, silent waiters beside several busy
// processes wait longer. Nothing else depends on it.
const (
	// SilentPoll is the longest sleep of a waiter without messages.
	SilentPoll = 50 * time.Millisecond

	// silentLook is the interval at which such a waiter polls after a window begins. silentLooks is
	// for how long it does so.
	silentLook  = SilentPoll / 5
	silentLooks = 4 * silentLook

	// lookTrip is the round trip of a silent poll on a busy machine.
	lookTrip = 10 * time.Millisecond

	// giveWay is for how long a busy lock is left free: a silent poll and its round trip.
	giveWay = SilentPoll + lookTrip

	// giveWayShort is for how long it is left free where others listen and silent waiters poll more
	// often: one interval and half of such a round trip, which is enough when both are quick.
	giveWayShort = silentLook + lookTrip/2

	// giveWayEvery is the time from one window to the next: giveWay is 4 % of it.
	giveWayEvery = 25 * giveWay

	// giveWayAfter is how long a process must have kept a lock busy before it gives way.
	giveWayAfter = 5 * SilentPoll

	// freeEnough is the total time for which a lock must have been free between two windows, so that
	// silent polls found it and no process has to give way.
	freeEnough = giveWayEvery / 5
)

// possession records how long this process has kept a lock busy and when it has to leave the lock free.
//
//	idle ── taken ──▶ busy ── due, and freed ──▶ gives way ── until has passed ──▶ busy
//	  ▲                 │
//	  └─ free for long ─┘
type possession struct {
	busy  bool
	again bool          // this process took the lock again after its release, before any other process
	turns int           // how often this process took the lock from Redis since
	since time.Time     // when the lock became busy
	free  time.Duration // how long the lock was seen free since the last window
	ended time.Time     // when a holder of this process freed the lock; zero: none did, or another process may have had it since
	open  time.Time     // when any process freed the lock; zero: it was seen taken since
	due   time.Time     // when the lock has to be left free; zero: not decided yet
	until time.Time     // the lock is left free until then
}

// taken records that this process has the lock.
func (p *possession) taken(now time.Time) {
	gap := now.Sub(p.ended)
	switch {
	case !p.busy, !p.ended.IsZero() && gap >= giveWay:
		*p = possession{busy: true, since: now}
	case !p.ended.IsZero():
		p.free += gap
		p.again = true
	}
	p.ended, p.open = time.Time{}, time.Time{}
	p.turns++
}

// freed records that a holder of this process freed the lock.
func (p *possession) freed(now time.Time) { p.ended, p.open = now, now }

// freedElsewhere records that a holder of another process freed the lock.
func (p *possession) freedElsewhere(now time.Time) {
	p.contest()
	p.open = now
}

// refuse records that a holder of another process has the lock.
func (p *possession) refuse() {
	p.contest()
	p.open = time.Time{}
}

// contest records that another process may have the lock or may have had it.
func (p *possession) contest() { p.ended, p.again = time.Time{}, false }

// owes reports whether the lock has to be left free.
func (p *possession) owes(key string, now time.Time) bool {
	after := p.since.Add(giveWayAfter)
	switch {
	case p.turns < 2 || now.Before(after):
		return false // one long turn keeps no poll from finding the lock free afterwards
	case p.due.IsZero():
		p.due = after.Add(untilWindow(key, after))
	}
	if now.Before(p.due) {
		return false
	}
	if p.free >= freeEnough {
		p.pay(key, now)
		return false
	}
	return true
}

// mayGive reports whether the lock was freed after the time at which it had to be left free. If it was
// not, another process may hold it. That process gives way when it releases the lock.
func (p *possession) mayGive() bool { return !p.open.Before(p.due) }

// give leaves the lock free for a while, counted from the time at which it became free.
func (p *possession) give(key string, now time.Time, listeners bool) {
	lasts := giveWay
	if listeners && p.open.Add(giveWayShort).Before(p.due.Add(silentLooks)) {
		lasts = giveWayShort
	}
	p.until = p.open.Add(lasts)
	p.pay(key, now)
}

// pay moves the due time to the next window.
func (p *possession) pay(key string, now time.Time) {
	p.free, p.due = 0, now.Add(untilWindow(key, now))
}

// untilWindow returns the time until all processes give way on key.
func untilWindow(key string, now time.Time) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	offset := giveWayEvery * time.Duration(hash.Sum32()>>16) >> 16
	return giveWayEvery - (time.Duration(now.UnixNano())+offset)%giveWayEvery
}

// untilLook returns the time until a waiter without messages has to check whether others give way.
func untilLook(key string, now time.Time) time.Duration {
	left := untilWindow(key, now)
	if since := giveWayEvery - left; since < silentLooks {
		return silentLook - since%silentLook
	}
	return left
}
