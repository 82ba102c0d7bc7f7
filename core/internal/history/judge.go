package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits are the bounds to judge by.
type Limits struct {
	// Backend is how long an operation has with a Redis that does not answer it: two
	// backend timeouts, because its connection may break at the end of the first one. The
	// time in which a fault makes answers late, none of them by as much as a backend timeout,
	// does not count: a Redis that is slow is waited for.
	Backend time.Duration
	// Slow is how long an operation has at most, however much of its time does not count.
	Slow time.Duration
	// Poll is how long a lock may stay free beside a waiter.
	Poll time.Duration
	// Slack is what the machine and the network may add to any bound.
	Slack time.Duration
	// Turn is how long the line of its process may keep a waiter from asking for a lock that
	// nobody has. A shorter wait may end there, as busy.
	Turn time.Duration
	// Recovery is how long after a fault it may still be felt.
	Recovery time.Duration
	// Landing is how long a command without an answer may be on its way.
	Landing time.Duration
	// Residue is how long a failed acquisition may leave something in Redis.
	Residue time.Duration
	// Empty is when Redis must be empty; 0: never.
	Empty time.Duration
	// Permits is how many permits each semaphore has.
	Permits map[string]int
}

// Violation is a promise that was not kept.
type Violation struct {
	Rule   string
	Text   string
	Events []*Event // those that show it
}

// Rule names, in [Violation].
const (
	TwoHolders     = "two holders"
	LostUpdate     = "lost update"
	TooManyHolders = "more holders than permits"
	DirtyRead      = "written beside a reader"
	TokenOrder     = "token did not rise"
	LostPermit     = "permits not back to their number"
	NotInRedis     = "held, but not in redis"
	Overrun        = "believed in beyond the lease"
	RunOverrun     = "run beyond its lease"
	TwoProcesses   = "one field, two processes"
	Forced         = "forced away, but believed in"
	EarlyLoss      = "lost without cause"
	ReleaseLost    = "release of a live hold said lost"
	SlowWait       = "wait too long"
	LateGrant      = "granted after the cancel"
	SlowRelease    = "release too slow"
	NotEntered     = "own lock not re-entered"
	BusyButFree    = "free lock said busy"
	NotReachable   = "answering redis said unavailable"
	LostWakeup     = "free beside a waiter"
	Leftover       = "left in redis"
	NoTTL          = "key without TTL"
	Undocumented   = "undocumented error"
	UncleanEnd     = "unclean end of a process"
)

// judge is the events of one run, by what the rules ask for.
type judge struct {
	Limits

	acquires []*Event
	byKey    map[string][]*Event // acquires, by begin
	owners   map[string]*Event   // the outermost acquisition of each owner
	byOwner  map[string][]*Event // it and the re-entries
	forces   map[string][]*Event
	looks    []*Event
	runs     [][]*Event
	firsts   map[holder]*Event // of the runs
	samples  []*Event
	faults   spans
	slow     map[int]spans // the faults that make answers late, by the process that they hit
	stalls   map[int]spans
	finishes []*Event
	ended    map[int]bool // the processes that did not die

	violations []Violation
}

// Judge says what contradicts the promises, in the order of the events.
func Judge(limits Limits, events []Event) []Violation {
	j := newJudge(limits, events)
	for _, rule := range []func(){
		j.exclusion, j.updates, j.reads, j.tokens, j.holders, j.overruns, j.judgeRuns, j.forced, j.losses, j.releases,
		j.waits, j.reentries, j.refusals, j.wakeups, j.leftovers, j.ends,
	} {
		rule()
	}
	slices.SortStableFunc(j.violations, func(a, b Violation) int {
		return cmp.Compare(a.Events[0].Begin, b.Events[0].Begin)
	})
	return j.violations
}

func newJudge(limits Limits, events []Event) *judge {
	j := &judge{
		Limits: limits, byKey: make(map[string][]*Event),
		owners: make(map[string]*Event), byOwner: make(map[string][]*Event),
		forces: make(map[string][]*Event), firsts: make(map[holder]*Event), slow: make(map[int]spans), stalls: make(map[int]spans), ended: make(map[int]bool),
	}
	sorted := make([]*Event, len(events))
	for i := range events {
		sorted[i] = &events[i]
	}
	slices.SortStableFunc(sorted, func(a, b *Event) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, e := range sorted {
		j.file(e)
	}
	j.runs = Runs(events)
	for _, run := range j.runs {
		at, _ := fieldOf(run[0])
		j.firsts[at] = run[0]
	}
	return j
}

// file puts an event where the rules look for it.
func (j *judge) file(e *Event) {
	switch e.Kind {
	case Acquire:
		j.acquires = append(j.acquires, e)
		for _, key := range e.Keys {
			j.byKey[key] = append(j.byKey[key], e)
		}
		j.byOwner[e.Owner] = append(j.byOwner[e.Owner], e)
		if !e.Ask.Reentry {
			j.owners[e.Owner] = e
		}
	case Force:
		j.forces[e.Keys[0]] = append(j.forces[e.Keys[0]], e)
	case Look:
		j.looks = append(j.looks, e)
	case Sample:
		j.samples = append(j.samples, e)
	case Fault:
		j.faults = append(j.faults, span{e.Begin, e.End})
		if e.Slow {
			j.slow[e.Process] = append(j.slow[e.Process], span{e.Begin, e.End})
		}
	case Stall:
		j.stalls[e.Process] = append(j.stalls[e.Process], span{e.Begin, e.End})
	case Finish:
		j.finishes = append(j.finishes, e)
		j.ended[e.Process] = true
	}
}

func (j *judge) reportf(rule string, events []*Event, format string, args ...any) {
	j.violations = append(j.violations, Violation{Rule: rule, Text: fmt.Sprintf(format, args...), Events: events})
}

// quiet reports whether no fault was felt between two moments.
func (j *judge) quiet(from, to time.Duration) bool {
	return j.faults.overlap(from-j.Recovery, to) == 0
}

// slack is what the machine may have added to what a process did between two moments.
// One late goroutine delays the others that wait for it, so that a stall counts more
// than once.
func (j *judge) slack(process int, from, to time.Duration) time.Duration {
	stood := j.stalls[process].overlap(from, to)
	if process != 0 {
		stood += j.stalls[0].overlap(from, to)
	}
	return j.Slack + 3*stood
}

// answered is when an operation without a wait time must have ended, that has ended at end:
// see [Limits].
func (j *judge) answered(process int, begin, end time.Duration) time.Duration {
	late := j.slow[process].overlap(begin, end)
	return begin + max(j.Backend, min(j.Backend+late, j.Slow))
}

// span is a time from, to.
type span struct{ from, to time.Duration }

// spans are in order of their beginning.
type spans []span

// overlap is how much of the time between two moments the spans cover, those counted
// twice that overlap each other. A span without length counts for a nanosecond.
func (s spans) overlap(from, to time.Duration) (sum time.Duration) {
	for _, one := range s {
		if one.from > to {
			break
		}
		if one.to >= from {
			sum += max(min(one.to, to)-max(one.from, from), 1)
		}
	}
	return sum
}

// forcedBetween is the first force release of any of the keys of an acquisition that may
// have been executed between two moments.
func (j *judge) forcedBetween(e *Event, from, to time.Duration) (first span, found bool) {
	for _, key := range e.Keys {
		for _, f := range j.forces[key] {
			if !frees(f, e) {
				continue
			}
			landing := span{f.Begin, f.End}
			if f.Outcome != OK && f.Outcome != Free {
				landing.to += j.Landing
			}
			if landing.from <= to && landing.to >= from && (!found || landing.from < first.from) {
				first, found = landing, true
			}
		}
	}
	return first, found
}
