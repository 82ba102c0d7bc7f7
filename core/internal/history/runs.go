package history

import (
	"cmp"
	"slices"
	"time"
)

// mostReserve is by how much at most a fixed lease that was handed over lasts longer in Redis.
const mostReserve = 100 * time.Millisecond

// longest is how long a lease can last in Redis that this acquisition asked for. A fixed lease that a
// process hands over may have a reserve of its own length, so that the lock can pass on from there.
func (e *Event) longest() time.Duration {
	if e.Lock != Reentrant && e.Lock != Spin {
		return e.Ask.Lease
	}
	return e.Ask.Lease + min(e.Ask.Lease, mostReserve)
}

type holder struct{ key, field string }

// fieldOf is the field of an outermost acquisition of one key.
func fieldOf(e *Event) (at holder, ok bool) {
	if e.Kind != Acquire || e.Hold == nil || e.Ask.Reentry || len(e.Keys) != 1 {
		return holder{}, false
	}
	return holder{e.Keys[0], e.Hold.Field}, true
}

// Runs returns the runs: the holds of one field by several owners, in the order of their grants.
func Runs(events []Event) [][]*Event {
	fields := make(map[holder][]*Event)
	for i := range events {
		if at, ok := fieldOf(&events[i]); ok {
			fields[at] = append(fields[at], &events[i])
		}
	}
	var runs [][]*Event
	for _, run := range fields {
		if len(run) > 1 {
			slices.SortFunc(run, func(a, b *Event) int { return cmp.Compare(a.End, b.End) })
			runs = append(runs, run)
		}
	}
	return runs
}

// firstOf is the hold that began the run of an acquisition: the acquisition itself if it began none.
func (j *judge) firstOf(e *Event) *Event {
	if at, ok := fieldOf(e); ok && j.firsts[at] != nil {
		return j.firsts[at]
	}
	return e
}

// judgeRuns finds fields that two processes had, and holds that were believed in for longer than Redis can
// have had the lease that the run began with. That two holds of a run overlap, exclusion finds.
func (j *judge) judgeRuns() {
	for _, run := range j.runs {
		first := run[0]
		for _, e := range run[1:] {
			if e.Process != first.Process {
				j.reportf(TwoProcesses, []*Event{first, e}, "%s and %s had %s as %s, in two processes", first.Owner, e.Owner, e.Keys[0], e.Hold.Field)
			}
		}
		j.overrunsOf(run)
	}
}

// overrunsOf judges the holds of a run until a hold may have made the lease longer.
func (j *judge) overrunsOf(run []*Event) {
	first := run[0]
	for _, e := range run {
		if e.Ask.Renewed || e.Hold.Refreshed || j.entered(e) {
			return
		}
		if over := e.Hold.Alive - (first.End + first.longest()); over > 0 {
			j.reportf(RunOverrun, []*Event{first, e}, "%s believed in %s for %s more than the lease of %s lasts, with which %s began the run of %s",
				e.Owner, e.Keys[0], over, first.Ask.Lease, first.Owner, e.Hold.Field)
		}
	}
}
