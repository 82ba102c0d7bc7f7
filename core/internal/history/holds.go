package history

import (
	"slices"
	"time"
)

// losses finds holds whose context was canceled as lost before their deadline. The context of a re-entry
// is canceled with the outer one, which may also hold other keys.
func (j *judge) losses() {
	for _, e := range j.acquires {
		if e.Hold == nil || e.Hold.Cause != Lost || e.Ask.Reentry {
			continue
		}
		if safe, ok := j.safeUntil(e); ok && e.Hold.Ended < safe && !e.pastLimit(e.Hold.Ended) {
			j.reportf(EarlyLoss, []*Event{e}, "%s lost %s %s before its deadline", e.Owner, e.Keys[0], safe-e.Hold.Ended)
		}
	}
}

// pastLimit reports whether the limit of a hold may have passed at a time.
func (e *Event) pastLimit(at time.Duration) bool {
	return e.Ask.MaxHold > 0 && at >= e.Begin+e.Ask.MaxHold
}

// limits finds holds that their holders trusted for longer than their MaxHold. Refresh ends the limit.
func (j *judge) limits() {
	for _, e := range j.acquires {
		if e.Hold == nil || e.Ask.MaxHold == 0 || e.Ask.Reentry || e.Hold.Refreshed {
			continue
		}
		if over := e.Hold.Alive - (e.End + e.Ask.MaxHold) - j.slack(e.Process, e.Begin, e.Hold.Alive); over > 0 {
			j.reportf(HeldTooLong, []*Event{e}, "%s trusted its hold of %s, limited to %s, for %s more", e.Owner, e.Keys[0], e.Ask.MaxHold, over)
		}
	}
}

// releases judges the releases of holds.
func (j *judge) releases() {
	for _, e := range j.acquires {
		if e.Hold == nil {
			continue
		}
		h := e.Hold
		safe, ok := j.safeUntil(e)
		if gone := h.Release.Outcome == Lost || h.Release.Outcome == NotHeld; gone && h.Ended == 0 && ok && h.Release.End < safe && !e.pastLimit(h.Release.End) {
			j.reportf(ReleaseLost, []*Event{e}, "the release of %s by %s says %q, %s before the deadline (%s)",
				e.Keys[0], e.Owner, h.Release.Outcome, safe-h.Release.End, h.Release.Note)
		}
		if over := h.Release.End - j.answerBound(e.Process, j.turn(e), h.Release.End) - j.slack(e.Process, h.Release.Begin, h.Release.End); over > 0 {
			j.reportf(SlowRelease, []*Event{e}, "the release of %s by %s took %s, %s beyond every bound",
				e.Keys[0], e.Owner, h.Release.End-h.Release.Begin, over)
		}
		if h.Release.Outcome == Other {
			j.reportf(Undocumented, []*Event{e}, "the release of %s by %s: %s", e.Keys[0], e.Owner, h.Release.Note)
		}
		if h.Release.Twice != "" && h.Release.Twice != NotHeld {
			j.reportf(Undocumented, []*Event{e}, "the second release of %s by %s says %q", e.Keys[0], e.Owner, h.Release.Twice)
		}
	}
}

// turn returns the earliest time at which a release can have begun to run, because the operations of one owner
// run one after the other.
func (j *judge) turn(e *Event) time.Duration {
	begin := e.Hold.Release.Begin
	at := begin
	for _, other := range j.byOwner[e.Owner] {
		if other == e {
			continue
		}
		if other.Begin < begin {
			at = max(at, other.End)
		}
		if h := other.Hold; h != nil && h.Release.Begin < begin {
			at = max(at, h.Release.End)
		}
	}
	return at
}

// reentries finds holders that could not re-enter their lock.
func (j *judge) reentries() {
	for _, e := range j.acquires {
		outer := j.owners[e.Owner]
		if !e.Ask.Reentry || outer == nil || outer.Hold == nil {
			continue
		}
		c, ok := j.certain(outer)
		if !ok || c.to < e.End {
			continue
		}
		switch {
		case e.Outcome == Lost && j.innerEnded(outer, e): // the re-entry enters the inner hold
		case e.Outcome == Busy || e.Outcome == Lost:
			j.reportf(NotEntered, []*Event{outer, e}, "%s holds %s, and its re-entry says %q (%s)", e.Owner, e.Keys[0], e.Outcome, e.Note)
		case e.Outcome == Acquired && len(outer.Keys) == 1 && e.Lock == outer.Lock && e.Hold.Field != outer.Hold.Field:
			j.reportf(NotEntered, []*Event{outer, e}, "%s holds %s as %s, and entered it as %s", e.Owner, e.Keys[0], outer.Hold.Field, e.Hold.Field)
		}
	}
}

// innerEnded reports whether a hold of another kind inside outer, which a re-entry enters first,
// ended before the re-entry did.
func (j *judge) innerEnded(outer, e *Event) bool {
	return e.Lock != outer.Lock && slices.ContainsFunc(j.byOwner[e.Owner], func(inner *Event) bool {
		return inner != e && inner.Lock == e.Lock && inner.End <= e.Begin && inner.Hold != nil && inner.Hold.Cause == Lost && inner.Hold.Ended <= e.End
	})
}

// ends finds processes that did not finish cleanly.
func (j *judge) ends() {
	for _, e := range j.finishes {
		if e.Note != "" {
			j.reportf(UncleanEnd, []*Event{e}, "process %d: %s", e.Process, e.Note)
		}
	}
}
