package history

import (
	"cmp"
	"slices"
	"strings"
)

// exclusion finds owners that hold one key at one time and exclude each other.
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

// updates finds two updates that read the same value, so that one of them is lost.
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

// holders finds holds that were not in Redis, or had another hold count in Redis, when their holder asked.
func (j *judge) holders() {
	for _, look := range j.looks {
		e := j.askingHold(look)
		if look.Outcome != OK || e == nil {
			continue
		}
		switch count, there := look.Fields[e.Hold.Field]; {
		case !there || j.stranger(e, look):
			j.reportf(NotInRedis, []*Event{e, look}, "%s holds %s, and redis says %v", e.Owner, e.Keys[0], look.Fields)
		case look.Count != 0 && look.Count != count && j.quiet(e.Begin, look.End): // after a fault an older count may have arrived late
			j.reportf(NotInRedis, []*Event{e, look}, "%s holds %s %d times, and redis says %d", e.Owner, e.Keys[0], look.Count, count)
		}
	}
}

// askingHold returns the hold whose holder asked, or an outer hold with the same field, if such a
// hold was certain during the question.
func (j *judge) askingHold(look *Event) *Event {
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

// writerField ends the field of a writer.
const writerField = ":write"

// exclude reports whether the owners of two acquisitions of one key cannot hold it together,
// whichever other owners hold it.
func exclude(a, b *Event) bool {
	return a.Owner != b.Owner && a.Lock != Permit && (a.Lock != ReadLock || b.Lock != ReadLock)
}

// permits finds times at which a semaphore has more holders than permits.
func (j *judge) permits(key string, open []certainty) {
	n, isSemaphore := j.Permits[key]
	if !isSemaphore || len(open) <= n {
		return
	}
	events := make([]*Event, len(open))
	for i, c := range open {
		events[i] = c.event
	}
	j.reportf(TooManyHolders, events, "%s has %d permits and %d holders", key, n, len(open))
}

// reads finds readers that saw a value change while no writer may write. As with updates, writes after
// the end of the write hold do not count.
func (j *judge) reads() {
	writers := j.writers()
	for _, e := range j.acquires {
		if e.Hold == nil {
			continue
		}
		for _, r := range e.Hold.Reads {
			if _, forced := j.forcedBetween(e, e.Begin, r.At); forced || !r.Certain || r.First == r.Last {
				continue
			}
			if w := writers[r.Last]; w != nil && w.Owner != e.Owner {
				j.reportf(DirtyRead, []*Event{e, w}, "%s read %s twice, first %d and then %d, which %s wrote",
					e.Owner, r.Key, r.First, r.Last, w.Owner)
			}
		}
	}
}

// writers returns, for each value, the writer that certainly wrote it under the lock.
func (j *judge) writers() map[uint64]*Event {
	writers := make(map[uint64]*Event)
	for _, e := range j.acquires {
		if e.Hold == nil || e.Lock != WriteLock {
			continue
		}
		for _, u := range e.Hold.Updates {
			if _, forced := j.forcedBetween(e, e.Begin, u.At); !forced && u.Certain {
				writers[u.Wrote] = e
			}
		}
	}
	return writers
}

// tokens finds fencing tokens that do not rise from grant to grant. Two certain holds were granted in
// the order in which their holders knew of them, because the first hold was still alive when the
// second was known.
func (j *judge) tokens() {
	for key, events := range j.byKey {
		var all []certainty
		for _, e := range events {
			if c, ok := j.certain(e); ok && e.Lock == Fenced && !e.Ask.Reentry {
				all = append(all, c)
			}
		}
		slices.SortFunc(all, func(a, b certainty) int { return cmp.Compare(a.from, b.from) })
		for i := 1; i < len(all); i++ {
			if a, b := all[i-1].event, all[i].event; b.Hold.Token <= a.Hold.Token {
				j.reportf(TokenOrder, []*Event{a, b}, "%s got %s with the token %d, and then %s with %d",
					a.Owner, key, a.Hold.Token, b.Owner, b.Hold.Token)
			}
		}
	}
	for _, e := range j.acquires {
		outer := j.owners[e.Owner]
		if e.Lock == Fenced && e.Hold != nil && e.Ask.Reentry && outer != nil && outer.Hold != nil && e.Hold.Token != outer.Hold.Token {
			j.reportf(TokenOrder, []*Event{outer, e}, "%s has the token %d, and entered with %d", e.Owner, outer.Hold.Token, e.Hold.Token)
		}
	}
}

// stranger reports whether Redis has a holder that cannot exist beside a hold.
func (j *judge) stranger(e, look *Event) bool {
	switch e.Lock {
	case Permit:
		return len(look.Fields) > j.Permits[e.Keys[0]]
	case ReadLock, WriteLock:
	default:
		return len(look.Fields) != 1
	}
	writes := slices.ContainsFunc(j.byOwner[e.Owner], func(own *Event) bool { return own.Lock == WriteLock })
	if writes && len(j.byOwner[e.Owner]) > 1 {
		return false // a reader inside a writer
	}
	for field := range look.Fields {
		if field != e.Hold.Field && (writes || strings.HasSuffix(field, writerField)) {
			return true
		}
	}
	return false
}
