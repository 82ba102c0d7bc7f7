package queue

import (
	"hash/fnv"
	"time"
)

// A waiter without messages polls. Its process may lack the ACL permission for the channel, or its
// subscription may be dead. Other processes do not know of such a waiter, because PUBLISH counts only
// subscribers. If a process takes a lock again immediately after each release, only one poll in a thousand
// finds the lock free. So a process that keeps a lock busy leaves the lock free now and then, for one whole
// polling interval. This is called giving way.
//
// All processes give way at the same time. Otherwise one process would take the lock that another process
// leaves free. Each process computes the same windows of the wall clock from the key. When a window
// begins, waiters without messages poll more often for a moment. So a process can leave the lock free for
// a shorter time. It does so if other processes listen, because all of them have to wait.
//
// If the clocks of two machines differ by more than silentLooks, waiters without messages wait longer for
// a lock that several processes keep busy. Nothing else depends on the clocks.
const (
	// SilentPoll is the longest sleep of a waiter without messages.
	SilentPoll = 50 * time.Millisecond

	// silentLook is the interval at which a waiter without messages polls after a window begins.
	// silentLooks is the time for which it polls at that interval.
	silentLook  = SilentPoll / 5
	silentLooks = 4 * silentLook

	// lookTrip is the round trip of a silent poll on a busy machine.
	lookTrip = 10 * time.Millisecond

	// giveWay is the time for which a busy lock is left free: a silent poll and its round trip.
	giveWay = SilentPoll + lookTrip

	// giveWayShort is the time for which a busy lock is left free if other processes listen and the waiters
	// without messages poll more often: one interval and half a lookTrip. That is enough for a quick poll.
	giveWayShort = silentLook + lookTrip/2

	// giveWayEvery is the time from one window to the next: giveWay is 4 % of it.
	giveWayEvery = 25 * giveWay

	// giveWayAfter is the time for which a process keeps a lock busy before it gives way.
	giveWayAfter = 5 * SilentPoll

	// freeEnough is a total time. If the lock was free for that long between two windows, silent polls have
	// found it free, and no process has to give way.
	freeEnough = giveWayEvery / 5
)

// possession records how long this process has kept a lock busy and when it has to leave the lock free.
//
//	idle ── recordAcquire ──▶ busy ── due, and freed ──▶ gives way ── until has passed ──▶ busy
//	  ▲                         │
//	  └───── free for long ─────┘
type possession struct {
	busy       bool
	again      bool          // this process got the lock again after its release, before any other process
	turns      int           // how often this process got the lock from Redis since it became busy
	since      time.Time     // when the lock became busy
	free       time.Duration // how long the lock was seen free since the last window
	ownFreedAt time.Time     // when a holder of this process freed the lock; zero: never, or another process may have had the lock since
	freedAt    time.Time     // when any process freed the lock; zero: unknown, or the lock was taken since
	due        time.Time     // when the lock has to be left free; zero: not decided yet
	until      time.Time     // the lock is left free until then
}

// recordAcquire records that this process got the lock from Redis.
func (p *possession) recordAcquire(now time.Time) {
	gap := now.Sub(p.ownFreedAt)
	switch {
	case !p.busy, !p.ownFreedAt.IsZero() && gap >= giveWay:
		*p = possession{busy: true, since: now}
	case !p.ownFreedAt.IsZero():
		p.free += gap
		p.again = true
	}
	p.ownFreedAt, p.freedAt = time.Time{}, time.Time{}
	p.turns++
}

// recordFree records that a holder of this process freed the lock.
func (p *possession) recordFree(now time.Time) { p.ownFreedAt, p.freedAt = now, now }

// recordFreeElsewhere records that a holder of another process freed the lock.
func (p *possession) recordFreeElsewhere(now time.Time) {
	p.contest()
	p.freedAt = now
}

// recordRefusal records that a holder of another process has the lock.
func (p *possession) recordRefusal() {
	p.contest()
	p.freedAt = time.Time{}
}

// contest records that another process may have the lock or may have had it.
func (p *possession) contest() { p.ownFreedAt, p.again = time.Time{}, false }

// mustGiveWay reports whether this process has to leave the lock free. If the lock was free for freeEnough
// since the last window, mustGiveWay calls postpone and returns false.
func (p *possession) mustGiveWay(key string, now time.Time) bool {
	after := p.since.Add(giveWayAfter)
	switch {
	case p.turns < 2 || now.Before(after):
		return false // after one long turn, polls find the lock free anyway
	case p.due.IsZero():
		p.due = after.Add(untilWindow(key, after))
	}
	if now.Before(p.due) {
		return false
	}
	if p.free >= freeEnough {
		p.postpone(key, now)
		return false
	}
	return true
}

// mayGiveWay reports whether the lock was freed at or after the time at which it has to be left free. If
// not, another process may hold the lock. That process gives way when it releases the lock.
func (p *possession) mayGiveWay() bool { return !p.freedAt.Before(p.due) }

// startGivingWay leaves the lock free for giveWay or giveWayShort, counted from the time at which the lock
// became free. listeners means that other processes receive the messages.
func (p *possession) startGivingWay(key string, now time.Time, listeners bool) {
	lasts := giveWay
	if listeners && p.freedAt.Add(giveWayShort).Before(p.due.Add(silentLooks)) {
		lasts = giveWayShort
	}
	p.until = p.freedAt.Add(lasts)
	p.postpone(key, now)
}

// postpone moves the time at which this process gives way to the next window.
func (p *possession) postpone(key string, now time.Time) {
	p.free, p.due = 0, now.Add(untilWindow(key, now))
}

// untilWindow returns the time until the next window of key.
func untilWindow(key string, now time.Time) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	offset := giveWayEvery * time.Duration(hash.Sum32()>>16) >> 16
	return giveWayEvery - (time.Duration(now.UnixNano())+offset)%giveWayEvery
}

// untilLook returns the time until the next poll of a waiter without messages. In the first silentLooks of
// a window that is one silentLook at most. Otherwise it is the time until the next window.
func untilLook(key string, now time.Time) time.Duration {
	left := untilWindow(key, now)
	if since := giveWayEvery - left; since < silentLooks {
		return silentLook - since%silentLook
	}
	return left
}
