package history

import (
	"cmp"
	"slices"
	"time"
)

// wakeups finds times in which a lock was free, somebody waited for it, and Redis
// answered, that are longer than the poll interval.
func (j *judge) wakeups() {
	for key, events := range j.byKey {
		for _, gap := range j.gaps(events) {
			for _, w := range events {
				if w.Begin > gap.to {
					break
				}
				j.waitedThrough(key, w, gap)
			}
		}
	}
}

// gaps are the times in which nobody can have had a key.
func (j *judge) gaps(events []*Event) (free spans) {
	taken := make(spans, 0, len(events))
	for _, e := range events {
		if t, ok := j.taken(e); ok {
			taken = append(taken, t)
		}
	}
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var end time.Duration
	for _, t := range taken {
		if t.from-end > j.Poll {
			free = append(free, span{end, t.from})
		}
		end = max(end, t.to)
	}
	return append(free, span{end, 1<<63 - 1})
}

// taken is the time in which an acquisition can have had a key while Redis answered: not
// while it waited for a single one.
func (j *judge) taken(e *Event) (t span, ok bool) {
	t = span{e.Begin, j.goneBy(e)}
	if len(e.Keys) == 1 {
		if e.Hold == nil && e.Outcome == Busy {
			return t, false
		}
		t.from = max(e.Begin, e.End-j.slack(e.Process, e.Begin, e.End))
	}
	return t, true
}

func (j *judge) waitedThrough(key string, w *Event, gap span) {
	if len(w.Keys) > 1 || w.Ask.Reentry {
		return
	}
	from, to := max(gap.from, w.Begin), min(gap.to, w.End)
	if over := to - from - j.Poll - j.slack(w.Process, from, to); over > 0 && j.quiet(from, to) {
		j.reportf(LostWakeup, []*Event{w}, "%s waited for %s, which was free for %s", w.Owner, key, to-from)
	}
}
