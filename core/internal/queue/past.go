package queue

import (
	"maps"
	"time"
)

// past contains the observations of this process about one key. A past outlives the queue of its key for
// a while, because the next caller may come at once.
type past struct {
	turns        turns
	echo         echo
	possession   possession
	subscription Subscription // the last subscription, which may be released already; nil: there was none
}

// beginRun records that this process got the lock from Redis. callers is the number of its callers that
// want a turn.
func (p *past) beginRun(now time.Time, callers int) {
	p.turns.beginRun(now, p.listens())
	p.turns.setCallers(callers)
	p.possession.recordAcquire(now)
}

// recordJoin records that this process got a lock that it already shares.
func (p *past) recordJoin(now time.Time) { p.possession.recordAcquire(now) }

// recordRefusal records that a client of the class by holds the lock.
func (p *past) recordRefusal(now time.Time, by Rival) {
	p.turns.recordRefusal(now, by)
	p.possession.recordRefusal()
}

// recordRelease records that the last holder of this process is gone. notified is the number of other
// processes that received the message of the release, or one of the constants such as [Uncounted].
func (p *past) recordRelease(now time.Time, notified int) {
	p.possession.recordFree(now)
	if notified >= Uncounted || notified == Unanswered {
		p.turns.recordRelease(now, notified)
	}
}

// listens reports whether this process receives the messages, so that PUBLISH counts it. It may return true
// for a while after the subscription was released. On a nil past it returns false.
func (p *past) listens() bool { return p != nil && p.subscription != nil && p.subscription.Confirmed() }

// recordMessage records a message that a holder freed the lock. It reports whether the holder belongs to
// another process. If not, the message is the echo of this process.
func (p *past) recordMessage(now time.Time) (others bool) {
	if p.echo.match(now) {
		return false
	}
	p.turns.recordMessage(now)
	p.possession.recordFreeElsewhere(now)
	return true
}

// standBackTime returns the pause before the next attempt, which leaves the lock to other processes.
// This process pauses if other processes have the next turn, or if it has kept the lock busy and gives
// way. free means that this process has no holder. heard means that a subscription of this process may
// receive messages.
func (p *past) standBackTime(key string, now time.Time, free, heard bool) time.Duration {
	if s := &p.possession; free && (s.again || heard) && s.mustGiveWay(key, now) && s.mayGiveWay() {
		s.startGivingWay(key, now, p.turns.othersListen())
		p.turns.recordGift()
	}
	return max(p.turns.wait(now), p.possession.until.Sub(now))
}

// mayHandOff reports whether this process may pass the lock on or hand it off to another of its waiters.
func (p *past) mayHandOff(key string, now time.Time, limits RunLimits) bool {
	return p.turns.mayHandOff(now, limits) && !p.possession.mustGiveWay(key, now)
}

// stale reports whether the past no longer has an effect.
func (p *past) stale(now time.Time) bool {
	return now.Sub(p.possession.ownFreedAt) >= giveWay && now.Sub(p.turns.account.lastRelease) >= giveWay
}

// maxRecent is the number of pasts that a shard keeps for keys without a queue.
const maxRecent = 64

// pastCache holds the pasts of keys whose queues were removed.
type pastCache struct {
	keys  map[string]*past
	swept time.Time // when stale pasts were last removed
}

// makeRoom reports whether the map can take another past. If the map is full, makeRoom first removes the
// stale pasts, but at most once per giveWay, because with many keys the map is full most of the time.
func (r *pastCache) makeRoom(now time.Time) bool {
	if len(r.keys) >= maxRecent && now.Sub(r.swept) >= giveWay {
		r.swept = now
		maps.DeleteFunc(r.keys, func(_ string, p *past) bool { return p.stale(now) })
	}
	return len(r.keys) < maxRecent
}

// keep stores the past of a key whose queue was removed. It does nothing if the lock was not busy, or if
// the map is full.
func (r *pastCache) keep(key string, p *past, now time.Time) {
	if p == nil || !p.possession.busy || !r.makeRoom(now) {
		return
	}
	if r.keys == nil {
		r.keys = make(map[string]*past)
	}
	r.keys[key] = p
}

// remove removes the past of key from the map and returns it. It returns nil if the map has no past of key.
func (r *pastCache) remove(key string) *past {
	p := r.keys[key]
	delete(r.keys, key)
	return p
}
