package core

import (
	"maps"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// A waiter that gets no messages polls, and nobody can see it: PUBLISH counts only
// those who listen. It may be a process whose ACL lacks the channel, or whose
// subscription is dead. Beside a process that takes a lock again as soon as it has
// freed it, such a poll would find it free once in a thousand times. So whoever keeps
// a lock busy leaves it free now and then for one whole interval of such a poll.
//
// All processes do so at the same time, for else one of them would take what another
// leaves: at moments of the wall clock that follow from the key. Clocks that differ
// by more than the interval cost silent waiters beside several busy processes that
// turn, and nothing else.
const (
	// silentPoll is how long a waiter without messages sleeps at most.
	silentPoll = 50 * time.Millisecond

	// giveWay is for how long a busy lock is left free: a silent poll and its round trip.
	giveWay = 60 * time.Millisecond

	// giveWayEvery is how often: 4 % of the time.
	giveWayEvery = 1500 * time.Millisecond

	// giveWayAfter is how long a lock must have been kept busy before.
	giveWayAfter = 250 * time.Millisecond

	// freeEnough is how long a lock must have been free in the meantime, in all, so
	// that silent polls have found it and nobody needs to stand back.
	freeEnough = giveWayEvery / 5
)

// possession is how long this process has kept a lock busy, and when it has to leave
// it free. Times are since the client's start.
//
//	idle ── taken ──▶ busy ── due, and freed ──▶ gives way ── until is over ──▶ busy
//	  ▲                 │
//	  └─ free for long ─┘
type possession struct {
	busy  bool
	since time.Duration // from when on
	turns int           // how often this process has taken it from Redis since
	free  time.Duration // how long it was seen free since it gave way
	ended time.Duration // when a holder of this process has freed it and nobody is known to have had it since; 0: else
	due   time.Duration // when it has to give way; 0: not decided yet
	until time.Duration // it gives way until then
	again bool          // this process has taken it again after its own release, before anybody else
}

// taken notes that this process has the lock.
func (p *possession) taken(now time.Duration) {
	gap := now - p.ended
	switch {
	case !p.busy, p.ended > 0 && gap >= giveWay:
		*p = possession{busy: true, since: now}
	case p.ended > 0:
		p.free += gap
		p.again = true
	}
	p.ended = 0
	p.turns++
}

// freed notes that a holder of this process has ended.
func (p *possession) freed(now time.Duration) { p.ended = max(now, 1) }

// contested notes that somebody else has, or had, the lock.
func (p *possession) contested() { p.ended, p.again = 0, false }

// owes says whether the lock has to be left free.
func (p *possession) owes(key string, start, now time.Time) bool {
	at := now.Sub(start)
	switch {
	case p.turns < 2 || at < p.since+giveWayAfter:
		return false // one long turn keeps nobody out
	case p.due == 0:
		p.due = p.since + giveWayAfter + untilWindow(key, start.Add(p.since+giveWayAfter))
	}
	if at < p.due {
		return false
	}
	if p.free >= freeEnough {
		p.paid(key, now, at)
		return false
	}
	return true
}

// give begins to give way: from now on, or from when the lock became free.
func (p *possession) give(key string, start, now time.Time) {
	at := now.Sub(start)
	p.until = at + giveWay
	if p.ended > 0 {
		p.until = p.ended + giveWay
	}
	p.paid(key, now, at)
}

// paid puts the next time off to the next window.
func (p *possession) paid(key string, now time.Time, at time.Duration) {
	p.free, p.due = 0, at+untilWindow(key, now)
}

// untilWindow is how long it is until all processes give way on key.
func untilWindow(key string, now time.Time) time.Duration {
	const slots = 16384
	offset := giveWayEvery * time.Duration(redisstore.Slot(key)) / slots
	return giveWayEvery - (time.Duration(now.UnixNano())+offset)%giveWayEvery
}

// maxRemembered is for how many keys of a shard without a line a possession is kept.
const maxRemembered = 64

// remember keeps the possession of a line that ends: its next caller may come at once.
// The shard is locked.
func (s *shard) remember(key string, p possession, now time.Duration) {
	if !p.busy {
		return
	}
	if s.recent == nil {
		s.recent = make(map[string]possession)
	}
	if len(s.recent) >= maxRemembered {
		maps.DeleteFunc(s.recent, func(_ string, p possession) bool { return now-p.ended >= giveWay })
	}
	if len(s.recent) < maxRemembered {
		s.recent[key] = p
	}
}

// recall takes the possession of a key back into a new line. The shard is locked.
func (s *shard) recall(key string) possession {
	p, ok := s.recent[key]
	if ok {
		delete(s.recent, key)
	}
	return p
}
