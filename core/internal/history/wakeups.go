package history

import (
	"cmp"
	"slices"
	"time"
)

// wakeups finds times longer than the poll interval in which a lock was free, a waiter waited for it,
// and Redis answered.
func (j *judge) wakeups() {
	for key, events := range j.byKey {
		gaps := make(map[Lock]spans)
		for _, w := range events {
			if len(w.Keys) > 1 || w.Ask.Reentry {
				continue
			}
			free, known := gaps[w.Lock]
			if !known {
				free = j.gaps(key, w.Lock, events)
				gaps[w.Lock] = free
			}
			for _, gap := range free {
				j.waitedThrough(key, w, gap)
			}
		}
	}
}

// edge is a moment at which the number of possible holders of a key changes by one.
type edge struct {
	at   time.Duration
	more int
}

// gaps returns the times in which there was room for another holder.
func (j *judge) gaps(key string, lock Lock, events []*Event) (free spans) {
	one := &Event{Lock: lock}
	edges := []edge{{0, 0}, {forever, j.room(key, one)}}
	for _, e := range events {
		if t, ok := j.takenTime(e, one); ok {
			edges = append(edges, edge{t.from, 1}, edge{t.to, -1})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	open, there := span{}, 0
	for _, e := range edges {
		before := there
		there += e.more
		switch full := j.room(key, one); {
		case before < full && there >= full && e.at-open.from > j.Poll:
			free = append(free, span{open.from, e.at})
		case before >= full && there < full:
			open.from = e.at
		}
	}
	return free
}

// forever is later than everything.
const forever = time.Duration(1<<63 - 1)

// takenTime returns the time in which the acquisition e can have kept w out of a key while Redis
// answered. While e waits for a single key, it does not keep w out, unless e is a writer and w a reader.
func (j *judge) takenTime(e, w *Event) (t span, ok bool) {
	if !competes(e, w) {
		return t, false
	}
	t = span{e.Begin, j.keepsOutUntil(e, w)}
	if len(e.Keys) == 1 && w.Lock != ReadLock {
		if e.Hold == nil && e.Outcome == Busy {
			return t, false
		}
		t.from = max(e.Begin, e.End-j.slack(e.Process, e.Begin, e.End))
	}
	return t, true
}

func (j *judge) waitedThrough(key string, w *Event, gap span) {
	from, to := max(gap.from, w.Begin), min(gap.to, w.End)
	if over := to - from - j.Poll - j.slack(w.Process, from, to); over > 0 && j.quiet(from, to) {
		j.reportf(LostWakeup, []*Event{w}, "%s waited for %s, which was free for %s", w.Owner, key, to-from)
	}
}
