package history

import "time"

// waits finds acquisitions that took too long.
func (j *judge) waits() {
	for _, e := range j.acquires {
		if e.Outcome == Other {
			j.reportf(Undocumented, []*Event{e}, "the acquisition of %s by %s: %s", e.Keys[0], e.Owner, e.Note)
		}
		bound, ok := j.waitBound(e)
		switch over := e.End - bound - j.slack(e.Process, e.Begin, e.End); {
		case !ok || over <= 0:
		case e.Outcome == Acquired && bound == e.Ask.Cut:
			j.reportf(LateGrant, []*Event{e}, "%s got %s %s after its context had ended", e.Owner, e.Keys[0], e.End-bound)
		default:
			j.reportf(SlowWait, []*Event{e}, "the acquisition of %s by %s took %s, %s beyond every bound",
				e.Keys[0], e.Owner, e.End-e.Begin, over)
		}
	}
}

// waitBound returns the time by which an acquisition must have returned.
func (j *judge) waitBound(e *Event) (at time.Duration, ok bool) {
	switch wait := e.Ask.Wait; {
	case wait > 0:
		at, ok = e.Begin+wait, true
	case wait == 0, e.Ask.Reentry:
		at, ok = j.answerBound(e.Process, e.Begin, e.End), true
	}
	if cut := e.Ask.Cut; cut > 0 && (!ok || cut < at) {
		at, ok = cut, true
	}
	return at, ok
}

// refusals finds acquisitions that were refused although the lock was free, or failed although Redis
// answered.
func (j *judge) refusals() {
	for _, e := range j.acquires {
		if e.Ask.Reentry || !j.quiet(e.Begin, e.End) {
			continue
		}
		switch e.Outcome {
		case Busy:
			hasty := e.Ask.Wait > 0 && e.Ask.Wait < j.Turn
			if len(e.Keys) == 1 && !hasty && !j.takenBetween(e) {
				j.reportf(BusyButFree, []*Event{e}, "%s was refused %s, although no other can have had it", e.Owner, e.Keys[0])
			}
		case Unavailable:
			// A caller may fail at once because Redis was slow before.
			if j.patience(e) > j.slack(e.Process, e.Begin-j.Recovery, e.End) {
				j.reportf(NotReachable, []*Event{e}, "%s failed because redis did not answer, after %s: %s", e.Owner, e.End-e.Begin, e.Note)
			}
		default:
		}
	}
}

// patience returns how long an acquisition gave Redis for an answer. An answer after the end of the lease grants nothing.
func (j *judge) patience(e *Event) time.Duration {
	limit := min(j.Backend, e.Ask.Lease)
	if e.Ask.Wait > 0 {
		return min(e.Ask.Wait, limit)
	}
	return limit
}

// takenBetween reports whether others can have kept e out of its key while it waited, or just before.
func (j *judge) takenBetween(e *Event) bool {
	from, others := e.Begin-j.slack(e.Process, e.Begin, e.End), 0
	for _, other := range j.byKey[e.Keys[0]] {
		if other.Begin > e.End {
			break
		}
		if competes(other, e) && j.keepsOutUntil(other, e) >= from {
			others++
		}
	}
	return others >= j.room(e.Keys[0], e)
}

// keepsOutUntil returns until when other can keep e out. A waiting writer also keeps a reader out.
func (j *judge) keepsOutUntil(other, e *Event) time.Duration {
	if e.Lock == ReadLock {
		return max(j.goneBy(other), other.End+writerMark)
	}
	return j.goneBy(other)
}

// goneBy returns the time after which nothing of an acquisition can be left in Redis, if Redis answers.
func (j *judge) goneBy(e *Event) time.Duration {
	h := e.Hold
	slack := j.slack(e.Process, e.Begin, e.End)
	switch {
	case h == nil && e.Outcome == Busy:
		return e.End + slack
	case h == nil:
		return e.End + j.Residue
	case h.Release.Outcome == OK:
		return h.Release.End + h.Left
	case h.Release.Outcome == Lost && h.Ended > 0:
		return h.end() + e.longest() - e.Ask.Lease + e.Ask.Lease/50 + slack // plus the reserve, and the margin of the holder
	default:
		return h.end() + max(e.longest(), j.Residue)
	}
}

// writerMark is how long a writer that waited for readers can keep out new readers after it gave up.
const writerMark = 900 * time.Millisecond

// room returns the smallest number of rivals that keep an acquisition out of its key.
func (j *judge) room(key string, e *Event) int {
	if e.Lock == Permit {
		return j.Permits[key]
	}
	return 1
}

// competes reports whether other can keep e out, by its hold or by waiting.
func competes(other, e *Event) bool {
	return other != e && (e.Lock != ReadLock || other.Lock != ReadLock)
}
