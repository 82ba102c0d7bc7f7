package history

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Lock is the kind of the lock of an [Acquire] or a [Force].
type Lock string

// The kinds of locks. All but readers and permits are exclusive.
const (
	Reentrant Lock = ""
	Fair      Lock = "fair"
	Fenced    Lock = "fenced"
	Spin      Lock = "spin"
	ReadLock  Lock = "read" // and WriteLock have one key
	WriteLock Lock = "write"
	Permit    Lock = "permit" // of a semaphore; Limits.Permits has how many there are
)

// writerField ends the field of a writer.
const writerField = ":write"

// writerMark is how long readers are kept out at most after a writer that waited for them
// has given up.
const writerMark = 900 * time.Millisecond

// exclude reports whether two owners of two acquisitions of one key cannot hold it
// together, whoever else does.
func exclude(a, b *Event) bool {
	return a.Owner != b.Owner && a.Lock != Permit && (a.Lock != ReadLock || b.Lock != ReadLock)
}

// room is how many of those that are in the way of an acquisition can have the key beside
// it, but one.
func (j *judge) room(key string, e *Event) int {
	if e.Lock == Permit {
		return j.Permits[key]
	}
	return 1
}

// inTheWay reports whether other can keep e out, by what it holds or by waiting.
func inTheWay(other, e *Event) bool {
	return other != e && (e.Lock != ReadLock || other.Lock != ReadLock)
}

// frees reports whether a force release takes a hold away. That of readers leaves a writer,
// and that of a writer leaves readers, but for those inside of it.
func frees(f, e *Event) bool {
	return f.Lock == e.Lock || f.Lock == WriteLock && e.Ask.Reentry
}

// permits finds more holders of a semaphore at a time than it has permits.
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

// reads finds readers who saw what they read change while nobody may write. As with updates
// those do not count that were written by a writer that had ended.
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

// writers are those of the values that were certainly written under the lock.
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

// tokens finds fencing tokens that do not rise from grant to grant. Those of two holds that
// are certain were granted in the order in which they were known, because the first one was
// still alive then.
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

// stranger reports whether Redis names a holder that cannot be there beside a hold.
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
		return false // a reader inside of a writer
	}
	for field := range look.Fields {
		if field != e.Hold.Field && (writes || strings.HasSuffix(field, writerField)) {
			return true
		}
	}
	return false
}
