package queue

import (
	"hash/fnv"
	"time"
)

// A waiter that gets no messages polls, and nobody can see it: PUBLISH counts only
// those who listen. It may be a process whose ACL lacks the channel, or whose
// subscription is dead. Beside a process that takes a lock again as soon as it has
// freed it, such a poll would find it free once in a thousand times. So whoever keeps
// a lock busy leaves it free now and then for one whole interval of such a poll.
//
// All processes do so at the same time, for else one of them would take what another
// leaves: in windows of the wall clock that follow from the key. When a window begins,
// waiters without messages look more often for a moment. So where others listen, who all
// would have to wait, the lock is left free for a shorter time then.
//
// Clocks that differ by more than the moment cost silent waiters beside several busy
// processes that turn, and nothing else.
const (
	// SilentPoll is how long a waiter without messages sleeps at most.
	SilentPoll = 50 * time.Millisecond

	// silentLook is how often it looks when a window has begun, and silentLooks for how long.
	silentLook  = 10 * time.Millisecond
	silentLooks = 40 * time.Millisecond

	// giveWay is for how long a busy lock is left free: a silent poll and its round trip.
	giveWay = SilentPoll + 10*time.Millisecond

	// giveWayShort is for how long it is where others listen, if silent waiters look
	// meanwhile.
	giveWayShort = silentLook + 5*time.Millisecond

	// giveWayEvery is how often: 4 % of the time.
	giveWayEvery = 1500 * time.Millisecond

	// giveWayAfter is how long a lock must have been kept busy before.
	giveWayAfter = 250 * time.Millisecond

	// freeEnough is how long a lock must have been free in the meantime, in all, so
	// that silent polls have found it and nobody needs to stand back.
	freeEnough = giveWayEvery / 5
)

// possession is how long this process has kept a lock busy, and when it has to leave
// it free.
//
//	idle ── taken ──▶ busy ── due, and freed ──▶ gives way ── until is over ──▶ busy
//	  ▲                 │
//	  └─ free for long ─┘
type possession struct {
	busy  bool
	again bool          // this process has taken it again after its own release, before anybody else
	turns int           // how often this process has taken it from Redis since
	since time.Time     // from when on it is busy
	free  time.Duration // how long it was seen free since it gave way
	ended time.Time     // when a holder of this process has freed it and nobody is known to have had it since; zero: else
	open  time.Time     // when somebody, of whatever process, has freed it; zero: it was seen taken since
	due   time.Time     // when it has to give way; zero: not decided yet
	until time.Time     // it gives way until then
}

// taken notes that this process has the lock.
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

// freed notes that a holder of this process has ended.
func (p *possession) freed(now time.Time) { p.ended, p.open = now, now }

// freedElsewhere notes that a holder of another process has.
func (p *possession) freedElsewhere(now time.Time) {
	p.contested()
	p.open = now
}

// refused notes that a holder of another process has the lock.
func (p *possession) refused() {
	p.contested()
	p.open = time.Time{}
}

// contested notes that somebody else may have, or have had, the lock.
func (p *possession) contested() { p.ended, p.again = time.Time{}, false }

// owes reports whether the lock has to be left free.
func (p *possession) owes(key string, now time.Time) bool {
	after := p.since.Add(giveWayAfter)
	switch {
	case p.turns < 2 || now.Before(after):
		return false // one long turn keeps nobody out
	case p.due.IsZero():
		p.due = after.Add(untilWindow(key, after))
	}
	if now.Before(p.due) {
		return false
	}
	if p.free >= freeEnough {
		p.paid(key, now)
		return false
	}
	return true
}

// mayGive reports whether the lock was freed since it has to be left free. Before that others
// may have it, who will give way when they have freed it.
func (p *possession) mayGive() bool { return !p.open.Before(p.due) }

// give begins to give way, from when the lock became free.
func (p *possession) give(key string, now time.Time, listeners bool) {
	lasts := giveWay
	if listeners && p.open.Add(giveWayShort).Before(p.due.Add(silentLooks)) {
		lasts = giveWayShort
	}
	p.until = p.open.Add(lasts)
	p.paid(key, now)
}

// paid puts the next time off to the next window.
func (p *possession) paid(key string, now time.Time) {
	p.free, p.due = 0, now.Add(untilWindow(key, now))
}

// untilWindow is how long it is until all processes give way on key.
func untilWindow(key string, now time.Time) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key))
	offset := giveWayEvery * time.Duration(hash.Sum32()>>16) >> 16
	return giveWayEvery - (time.Duration(now.UnixNano())+offset)%giveWayEvery
}

// untilLook is how long it is until a waiter without messages has to look whether others
// give way.
func untilLook(key string, now time.Time) time.Duration {
	left := untilWindow(key, now)
	if since := giveWayEvery - left; since < silentLooks {
		return silentLook - since%silentLook
	}
	return left
}
