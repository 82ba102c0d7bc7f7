package history

import (
	"cmp"
	"slices"
	"time"
)

// certainty is the time in which a hold was certain to be the only one. A force
// release ends the certainty: the holder may not know before its next renewal.
type certainty struct {
	span
	event *Event
}

func (j *judge) certain(e *Event) (c certainty, ok bool) {
	if e.Hold == nil || e.Hold.Alive <= e.End {
		return certainty{}, false
	}
	c = certainty{span{e.End, e.Hold.Alive}, e}
	if forced, found := j.forcedBetween(e, j.firstOf(e).Begin, c.to); found { // even before the grant was known, or from an earlier holder of the run
		c.to = forced.from
	}
	return c, c.to > c.from
}

// exclusion finds owners of one key at one time that exclude each other.
func (j *judge) exclusion() {
	for key, events := range j.byKey {
		var all []certainty
		for _, e := range events {
			if c, ok := j.certain(e); ok {
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b certainty) int { return cmp.Compare(a.from, b.from) })
		j.overlaps(key, all)
	}
}

func (j *judge) overlaps(key string, all []certainty) {
	var open []certainty
	for _, next := range all {
		open = slices.DeleteFunc(open, func(c certainty) bool { return c.to <= next.from })
		for _, c := range open {
			if exclude(c.event, next.event) {
				run := ""
				if j.firstOf(c.event) == j.firstOf(next.event) {
					run = ", both in the run of " + c.event.Hold.Field
				}
				j.reportf(TwoHolders, []*Event{c.event, next.event}, "%s was held by %s and by %s, for %s%s",
					key, c.event.Owner, next.event.Owner, min(c.to, next.to)-next.from, run)
			}
		}
		open = append(open, next)
		j.permits(key, open)
	}
}

// updates finds two updates that have read the same value: one of them is lost. It
// needs no clock.
func (j *judge) updates() {
	type place struct {
		key  string
		read uint64
	}
	seen := make(map[place]*Event)
	for _, e := range j.acquires {
		if e.Hold == nil {
			continue
		}
		for _, u := range e.Hold.Updates {
			if _, forced := j.forcedBetween(e, j.firstOf(e).Begin, u.At); forced || !u.Certain {
				continue
			}
			at := place{u.Key, u.Read}
			if other := seen[at]; other != nil {
				j.reportf(LostUpdate, []*Event{other, e}, "two updates of %s, by %s and %s, have read the same value %d",
					u.Key, other.Owner, e.Owner, u.Read)
			}
			seen[at] = e
		}
	}
}

// holders finds holds that Redis did not know of, or with another count, when their
// holder asked.
func (j *judge) holders() {
	for _, look := range j.looks {
		e := j.asked(look)
		if look.Outcome != OK || e == nil {
			continue
		}
		switch count, there := look.Fields[e.Hold.Field]; {
		case !there || j.stranger(e, look):
			j.reportf(NotInRedis, []*Event{e, look}, "%s holds %s, and redis says %v", e.Owner, e.Keys[0], look.Fields)
		case look.Count != 0 && look.Count != count && j.quiet(e.Begin, look.End): // else an older count may have come late
			j.reportf(NotInRedis, []*Event{e, look}, "%s holds %s %d times, and redis says %d", e.Owner, e.Keys[0], look.Count, count)
		}
	}
}

// asked is the hold that asked, or an outer one with its field, if one was certain meanwhile.
func (j *judge) asked(look *Event) *Event {
	for _, e := range j.byOwner[look.Owner] {
		if e.Hold == nil || e.Hold.Field != look.Field || len(e.Keys) != 1 {
			continue
		}
		if c, ok := j.certain(e); ok && c.from <= look.Begin && look.End <= c.to {
			return e
		}
	}
	return nil
}

// overruns finds fixed leases that were believed in longer than they can have lasted
// in Redis, counted from the latest moment of sending.
func (j *judge) overruns() {
	for _, e := range j.acquires {
		if e.Hold == nil || e.Ask.Renewed || e.Hold.Refreshed || e.Ask.Reentry || len(e.Keys) > 1 || j.entered(e) {
			continue
		}
		if over := e.Hold.Alive - (e.End + e.Ask.Lease); over > 0 {
			j.reportf(Overrun, []*Event{e}, "%s believed in its lease of %s on %s for %s more", e.Owner, e.Ask.Lease, e.Keys[0], over)
		}
	}
}

// entered reports whether the hold was entered again, which may have prolonged it, or
// may have been, by a process that died.
func (j *judge) entered(e *Event) bool {
	return !j.ended[e.Process] || len(j.byOwner[e.Owner]) > 1
}

// forced finds holds that were believed in long after they were forced away: longer
// than any lease can have been confirmed before.
func (j *judge) forced() {
	for key, forces := range j.forces {
		for _, f := range forces {
			if f.Outcome != OK {
				continue
			}
			for _, e := range j.byKey[key] {
				j.forcedAway(f, e)
			}
		}
	}
}

func (j *judge) forcedAway(f, e *Event) {
	if e.Hold == nil || !frees(f, e) || e.Hold.Refreshed || j.entered(e) || j.firstOf(e).End > f.Begin || e.Hold.Alive < f.End {
		return
	}
	if over := e.Hold.Alive - (f.End + e.longest()); over > 0 {
		j.reportf(Forced, []*Event{e, f}, "%s believed in %s for %s more than a lease after it was forced away", e.Owner, f.Keys[0], over)
	}
}

// safeUntil is until when the holder could rely on the lock: nothing but a force
// release can have ended it before.
func (j *judge) safeUntil(e *Event) (until time.Duration, ok bool) {
	_, forced := j.forcedBetween(e, j.firstOf(e).Begin, e.Hold.end())
	return e.Hold.Safe, !forced
}
