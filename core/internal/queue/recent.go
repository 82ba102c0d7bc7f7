package queue

import (
	"maps"
	"time"
)

// maxRecent is how many keys of a shard without a queue are remembered.
const maxRecent = 64

// lasting is what outlives the queue of a key: the next caller may come at once.
type lasting struct {
	turns      turns
	echo       echo
	possession possession   // how busy this process keeps the lock
	heard      Subscription // the last one, perhaps given back; nil: there was none
}

// begin notes that the lock was taken from Redis, and how many callers want a turn.
func (l *lasting) begin(now time.Time, callers int) {
	l.turns.begin(now, l.listens())
	l.turns.serves(callers)
	l.possession.taken(now)
}

// join notes that the lock was taken beside holders who share it.
func (l *lasting) join(now time.Time) { l.possession.taken(now) }

// refuse notes who has the lock.
func (l *lasting) refuse(now time.Time, by Rival) {
	l.turns.refuse(now, by)
	l.possession.refused()
}

// listens reports whether this process gets the messages, and PUBLISH counts it: for a while
// that is so after a subscription was given back.
func (l *lasting) listens() bool { return l != nil && l.heard != nil && l.heard.Confirmed() }

// message notes that somebody has freed the lock, and reports whether it was not this process.
func (l *lasting) message(now time.Time) (others bool) {
	if l.echo.is(now) {
		return false
	}
	l.turns.message(now)
	l.possession.freedElsewhere(now)
	return true
}

// stale reports whether it says nothing any more.
func (l *lasting) stale(now time.Time) bool {
	return now.Sub(l.possession.ended) >= giveWay && now.Sub(l.turns.debt.freed) >= giveWay
}

// recent is what is left of queues that have ended.
type recent struct {
	keys  map[string]*lasting
	swept time.Time // when those that say nothing any more were last left out
}

// room reports whether another key can be remembered. Where many keys are taken in turn it
// mostly cannot, which has to cost nothing.
func (r *recent) room(now time.Time) bool {
	if len(r.keys) >= maxRecent && now.Sub(r.swept) >= giveWay {
		r.swept = now
		maps.DeleteFunc(r.keys, func(_ string, l *lasting) bool { return l.stale(now) })
	}
	return len(r.keys) < maxRecent
}

func (r *recent) keep(key string, l *lasting, now time.Time) {
	if l == nil || !l.possession.busy || !r.room(now) {
		return
	}
	if r.keys == nil {
		r.keys = make(map[string]*lasting)
	}
	r.keys[key] = l
}

// take gives what is left of key to a new queue; nil if that is nothing.
func (r *recent) take(key string) *lasting {
	l := r.keys[key]
	delete(r.keys, key)
	return l
}
