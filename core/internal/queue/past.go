package queue

import (
	"maps"
	"time"
)

// past holds the observations of a key by this process. It outlives the queue of the key for a while,
// because the next caller may come at once.
type past struct {
	turns      turns
	echo       echo
	possession possession
	heard      Subscription // the last subscription, which may be released already; nil: there was none
}

// begin records that this process took the lock from Redis, and the number of callers that want a turn.
func (p *past) begin(now time.Time, callers int) {
	p.turns.begin(now, p.listens())
	p.turns.serve(callers)
	p.possession.taken(now)
}

// join records that this process took the lock beside holders that share it.
func (p *past) join(now time.Time) { p.possession.taken(now) }

// refuse records the rival that holds the lock.
func (p *past) refuse(now time.Time, by Rival) {
	p.turns.refuse(now, by)
	p.possession.refuse()
}

// release records that the last holder of this process is gone, and the number of other processes that were notified.
func (p *past) release(now time.Time, notified int) {
	p.possession.freed(now)
	if notified >= Uncounted || notified == Unanswered {
		p.turns.release(now, notified)
	}
}

// listens reports whether this process receives the messages, so that PUBLISH counts it. It does so for a
// while after a subscription was released. A nil past does not listen.
func (p *past) listens() bool { return p != nil && p.heard != nil && p.heard.Confirmed() }

// message records that a holder freed the lock and reports whether the holder belongs to another process.
func (p *past) message(now time.Time) (others bool) {
	if p.echo.match(now) {
		return false
	}
	p.turns.message(now)
	p.possession.freedElsewhere(now)
	return true
}

// wait returns for how long the next attempt leaves the lock to others: it is their turn, or this
// process has kept the lock busy and gives way. heard reports whether a waiter of this process may
// listen; free reports whether no holder of this process has the lock.
func (p *past) wait(key string, now time.Time, free, heard bool) time.Duration {
	if s := &p.possession; free && (s.again || heard) && s.owes(key, now) && s.mayGive() {
		s.give(key, now, p.turns.othersListen())
		p.turns.giveAway()
	}
	return max(p.turns.wait(now), p.possession.until.Sub(now))
}

// mayHandOff reports whether this process may hand the lock on to another of its waiters.
func (p *past) mayHandOff(key string, now time.Time, limits RunLimits) bool {
	return p.turns.mayHandOff(now, limits) && !p.possession.owes(key, now)
}

// stale reports whether the past no longer has an effect.
func (p *past) stale(now time.Time) bool {
	return now.Sub(p.possession.ended) >= giveWay && now.Sub(p.turns.account.freed) >= giveWay
}

// maxRecent is the number of keys without a queue that a shard remembers.
const maxRecent = 64

// pastCache holds the pasts of keys whose queues were removed.
type pastCache struct {
	keys  map[string]*past
	swept time.Time // when stale pasts were last removed
}

// room reports whether another key can be remembered. Where many keys are taken in turn it mostly
// cannot, so a full map is swept once in giveWay at most.
func (r *pastCache) room(now time.Time) bool {
	if len(r.keys) >= maxRecent && now.Sub(r.swept) >= giveWay {
		r.swept = now
		maps.DeleteFunc(r.keys, func(_ string, p *past) bool { return p.stale(now) })
	}
	return len(r.keys) < maxRecent
}

// keep stores the past of a key whose queue was removed.
func (r *pastCache) keep(key string, p *past, now time.Time) {
	if p == nil || !p.possession.busy || !r.room(now) {
		return
	}
	if r.keys == nil {
		r.keys = make(map[string]*past)
	}
	r.keys[key] = p
}

// take removes and returns the past of a key, nil if there is none.
func (r *pastCache) take(key string) *past {
	p := r.keys[key]
	delete(r.keys, key)
	return p
}
