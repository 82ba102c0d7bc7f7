package history

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// leftovers finds remains in Redis.
func (j *judge) leftovers() {
	released := j.finalReleases()
	for _, s := range j.samples {
		if s.TTL < 0 && !s.Stays {
			j.reportf(NoTTL, []*Event{s}, "%s has no TTL", s.Keys[0])
		}
		if n, isSemaphore := j.Permits[s.Keys[0]]; isSemaphore && s.Stays && j.atTheEnd(s) && len(s.Fields) == 0 && s.Count != n {
			j.reportf(LostPermit, []*Event{s}, "%s has %d free permits, and %d in all", s.Keys[0], s.Count, n)
		}
		if j.atTheEnd(s) && (!s.Stays || len(s.Fields) > 0) {
			j.reportf(Leftover, []*Event{s}, "%s is still there, with %v", cmp.Or(s.Note, s.Keys[0]), slices.Collect(maps.Keys(s.Fields)))
		}
		for field := range s.Fields {
			if last, ok := released[holder{s.Keys[0], field}]; ok && last.at < s.Begin && !j.mayHavePassed(s, last) {
				j.reportf(Leftover, []*Event{last.event, s}, "%s has the field %s, which was released %s before",
					s.Keys[0], field, s.Begin-last.at)
			}
		}
	}
}

func (j *judge) atTheEnd(s *Event) bool { return j.Empty > 0 && s.Begin > j.Empty }

type lastRelease struct {
	at    time.Duration
	event *Event
}

// finalReleases returns the last release of each field that is known to be gone. Redis confirmed the
// release of every hold of every owner that had the field. A process that died may have had holds
// without an event, so its fields are not included.
func (j *judge) finalReleases() map[holder]lastRelease {
	released, held := make(map[holder]lastRelease), make(map[holder]bool)
	for _, events := range j.byOwner {
		last, ok := j.lastRelease(events)
		for _, e := range events {
			if e.Hold == nil {
				continue
			}
			for _, key := range e.Keys {
				at := holder{key, e.Hold.Field}
				held[at] = held[at] || !ok
				if ok && last.at > released[at].at {
					released[at] = last
				}
			}
		}
	}
	maps.DeleteFunc(released, func(at holder, _ lastRelease) bool { return held[at] })
	return released
}

// mayHavePassed reports whether a field that was there after its last release may have been passed to
// an acquisition of the same process that has no event with this field. A failed acquisition leaves
// the field for a moment. An acquisition of several keys keeps the field in the key until it releases
// its keys.
func (j *judge) mayHavePassed(s *Event, last lastRelease) bool {
	return slices.ContainsFunc(j.byKey[s.Keys[0]], func(e *Event) bool {
		waited := e.Process == last.event.Process && e.Begin < last.at && e.End >= last.event.Hold.Release.Begin
		switch several := len(e.Keys) > 1; {
		case e.Hold == nil && several:
			return waited && s.Begin-e.End < j.Residue
		case e.Hold == nil:
			return waited && s.Begin-last.at < j.Residue
		default:
			return waited && several && s.Begin <= e.Hold.Release.End
		}
	})
}

// lastRelease returns the last release of an owner, if it is known.
func (j *judge) lastRelease(events []*Event) (last lastRelease, ok bool) {
	for _, e := range events {
		h := e.Hold
		switch {
		case h == nil:
			continue
		case h.Release.Outcome != OK || h.Left > 0 || !j.ended[e.Process]:
			return last, false
		case h.Release.End > last.at:
			last = lastRelease{h.Release.End, e}
		}
	}
	return last, last.event != nil
}
