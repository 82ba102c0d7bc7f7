package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits holds the bounds for the judge.
type Limits struct {
	// Backend is how long an operation may take while Redis does not answer it: two backend timeouts,
	// because its connection may break at the end of the first one. Time in which a fault makes answers
	// late, each by less than a backend timeout, does not count, because operations wait for a slow
	// Redis.
	Backend time.Duration
	// Slow is the longest time that an operation may take, including the time that does not count.
	Slow time.Duration
	// Poll is how long a lock may stay free beside a waiter.
	Poll time.Duration
	// Slack is what the machine and the network may add to any bound.
	Slack time.Duration
	// Turn is how long the queue of its process may keep a waiter from asking for a free lock. A waiter
	// with a shorter wait time may fail as busy without asking.
	Turn time.Duration
	// Recovery is how long after a fault its effects may last.
	Recovery time.Duration
	// Landing is how long a command without an answer may be under way.
	Landing time.Duration
	// Residue is how long a failed acquisition may leave something in Redis.
	Residue time.Duration
	// Empty is the time at which Redis must be empty; 0: never.
	Empty time.Duration
	// Permits is the number of permits of each semaphore.
	Permits map[string]int
}

// Violation is a promise that a run broke.
type Violation struct {
	Rule   string
	Text   string
	Events []*Event // the events that show the violation
}

// The rules, in [Violation].
const (
	TwoHolders     = "two holders"
	LostUpdate     = "lost update"
	TooManyHolders = "more holders than permits"
	DirtyRead      = "written beside a reader"
	TokenOrder     = "token did not rise"
	LostPermit     = "permits not back to their number"
	NotInRedis     = "held, but not in redis"
	Overrun        = "trusted beyond its lease"
	RunOverrun     = "run beyond its lease"
	HeldTooLong    = "trusted beyond its limit"
	TwoProcesses   = "one field, two processes"
	Forced         = "forced away, but trusted"
	EarlyLoss      = "lost without cause"
	ReleaseLost    = "release of a live hold reported as lost"
	SlowWait       = "wait too long"
	LateGrant      = "granted after the cancel"
	SlowRelease    = "release too slow"
	NotEntered     = "own lock not re-entered"
	BusyButFree    = "free lock reported as busy"
	NotReachable   = "answering redis reported as unavailable"
	LostWakeup     = "free beside a waiter"
	Leftover       = "left in redis"
	NoTTL          = "key without TTL"
	Undocumented   = "undocumented error"
	UncleanEnd     = "unclean end of a process"
)

// judge holds the events of one run, sorted for the rules.
type judge struct {
	Limits

	acquires []*Event
	byKey    map[string][]*Event // acquires, by begin
	owners   map[string]*Event   // the outermost acquisition of each owner
	byOwner  map[string][]*Event // the outermost acquisition and the re-entries
	forces   map[string][]*Event
	looks    []*Event
	runs     [][]*Event
	firsts   map[holder]*Event // the first hold of each run
	samples  []*Event
	faults   spans
	slow     map[int]spans // the faults that make answers late, by process
	stalls   map[int]spans
	finishes []*Event
	ended    map[int]bool // the processes that ended cleanly

	violations []Violation
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

// file sorts an event into the fields that the rules read.
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

// quiet reports whether no fault had an effect between two moments.
func (j *judge) quiet(from, to time.Duration) bool {
	return j.faults.overlap(from-j.Recovery, to) == 0
}

// slack returns how long the machine may have delayed a process between two moments. A late
// goroutine delays the goroutines that wait for it, so a stall counts more than once.
func (j *judge) slack(process int, from, to time.Duration) time.Duration {
	stood := j.stalls[process].overlap(from, to)
	if process != 0 {
		stood += j.stalls[0].overlap(from, to)
	}
	return j.Slack + 3*stood
}

// answerBound returns the time by which an operation without a wait time must have returned, if it
// returned at end; see [Limits].
func (j *judge) answerBound(process int, begin, end time.Duration) time.Duration {
	late := j.slow[process].overlap(begin, end)
	return begin + max(j.Backend, min(j.Backend+late, j.Slow))
}

// span is a time from one moment to another.
type span struct{ from, to time.Duration }

// spans are in order of their beginning.
type spans []span

// overlap returns how much of the time between two moments the spans cover. Overlapping spans count
// twice. A span without length counts for a nanosecond.
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

// forcedBetween returns the first force release of any of the keys of an acquisition that may have
// been executed between two moments.
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

// frees reports whether a force release ends a hold. A force release of readers leaves a writer. A
// force release of a writer leaves readers, except the readers inside it.
func frees(f, e *Event) bool {
	return f.Lock == e.Lock || f.Lock == WriteLock && e.Ask.Reentry
}

// holder is a field in a key.
type holder struct{ key, field string }

// fieldOf returns the field of an outermost acquisition of one key.
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

// firstOf returns the hold that began the run of an acquisition, or the acquisition itself if it
// belongs to no run.
func (j *judge) firstOf(e *Event) *Event {
	if at, ok := fieldOf(e); ok && j.firsts[at] != nil {
		return j.firsts[at]
	}
	return e
}

// certainty is the time in which a hold certainly existed. A force release ends this time, because
// the holder may learn of the release only at its next renewal.
type certainty struct {
	span
	event *Event
}

func (j *judge) certain(e *Event) (c certainty, ok bool) {
	if e.Hold == nil || e.Hold.Alive <= e.End {
		return certainty{}, false
	}
	c = certainty{span{e.End, e.Hold.Alive}, e}
	if forced, found := j.forcedBetween(e, j.firstOf(e).Begin, c.to); found { // a force release counts even before the grant was known, or while an earlier holder of the run had the field
		c.to = forced.from
	}
	return c, c.to > c.from
}

// safeUntil returns the time until which the holder could rely on the lock. ok is false if a force
// release may have ended the hold earlier.
func (j *judge) safeUntil(e *Event) (until time.Duration, ok bool) {
	_, forced := j.forcedBetween(e, j.firstOf(e).Begin, e.Hold.end())
	return e.Hold.Safe, !forced
}

// mayBeReentered reports whether the holder re-entered the lock or may have done so, which may have
// extended the lease. A process that died may have re-entered without an event.
func (j *judge) mayBeReentered(e *Event) bool {
	return !j.ended[e.Process] || len(j.byOwner[e.Owner]) > 1
}
