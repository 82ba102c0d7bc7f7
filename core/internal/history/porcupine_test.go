package history_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/interlock-go/interlock/core/internal/history"
)

// notLinearizable is the rule of Porcupine, in [history.Violation].
const notLinearizable = "not linearizable"

// The specification treats a key as an object that makes one step at a time. Porcupine looks for an order of
// the steps in which each step is allowed and happens within its time. The time of a grant is the time from
// the call of Acquire to its return. The time of a release is defined in the same way.

// verb is what a step does.
type verb string

const (
	queues   verb = "is queued"   // a waiter of a fair lock certainly has its place
	lapses   verb = "may lapse"   // the waiter may have lost that place
	takes    verb = "takes"       // a grant
	enters   verb = "enters"      // a re-entry
	holds    verb = "still holds" // the holder found its context alive
	releases verb = "releases"    // one hold of the owner ends
	ends     verb = "ends"        // all holds of the owner end without a confirmed release
	forces   verb = "forces"      // a ForceRelease
	fails    verb = "is refused"  // a caller that does not wait does not get the key
)

// step is the input of an operation.
type step struct {
	verb  verb
	owner string
	lock  history.Lock
	token int64
	came  time.Duration // when Acquire was called
	loose bool          // the owner may lose the key without a confirmed release, or has already lost it
}

func (s step) String() string {
	text := fmt.Sprintf("%s %s", s.owner, s.verb)
	if s.token != 0 {
		text += fmt.Sprintf(" token %d", s.token)
	}
	return text
}

// claim counts the holds that one owner has of a key as one kind of lock.
type claim struct {
	owner  string
	lock   history.Lock
	count  int
	inside bool // a reader that entered under the writer of the same owner
	loose  bool // see step
}

// queued is the place of a waiter, with the time at which the waiter got it.
type queued struct {
	owner string
	at    time.Duration
}

// keyState is the state of a key.
type keyState struct {
	claims []claim
	token  int64    // the last one
	queue  []queued // by time
}

func (s keyState) equal(other keyState) bool {
	return s.token == other.token && slices.Equal(s.claims, other.claims) && slices.Equal(s.queue, other.queue)
}

func (s keyState) String() string {
	return fmt.Sprintf("holders %v, last token %d, queue %v", s.claims, s.token, s.queue)
}

func (s keyState) has(owner string, lock history.Lock) int {
	return slices.IndexFunc(s.claims, func(c claim) bool { return c.owner == owner && c.lock == lock })
}

// with returns the state after an owner has gained `more` holds, or lost them if more is negative. States are
// values: no method changes the slices that they share.
func (s keyState) with(c claim, more int) keyState {
	s.claims = slices.Clone(s.claims)
	switch i := s.has(c.owner, c.lock); {
	case i < 0:
		c.count = more
		s.claims = append(s.claims, c)
		slices.SortFunc(s.claims, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.lock, b.lock))
		})
	case s.claims[i].count+more <= 0:
		s.claims = slices.Delete(s.claims, i, i+1)
	default:
		s.claims[i].count += more
	}
	return s
}

// spec is the specification of a kind of lock: a function that reports whether a step may take the key in a
// state.
type spec func(s keyState, by step) bool

// specOf returns the specification for a key that clients take as the given kind of lock.
func specOf(key string, lock history.Lock, permits map[string]int) spec {
	switch lock {
	case history.ReadLock, history.WriteLock:
		return shared
	case history.Permit:
		return limited(permits[key])
	case history.Fair:
		return fair
	case history.Fenced:
		return fenced
	default:
		return exclusive
	}
}

// exclusive specifies the reentrant lock.
func exclusive(s keyState, _ step) bool { return len(s.claims) == 0 }

// fenced specifies the fenced lock, whose tokens rise with each grant.
func fenced(s keyState, by step) bool { return exclusive(s, by) && by.token > s.token }

// fair specifies the fair lock: a caller gets the lock after every waiter that had a place before the call.
func fair(s keyState, by step) bool {
	return exclusive(s, by) && (len(s.queue) == 0 || s.queue[0].at >= by.came || s.queue[0].owner == by.owner)
}

// shared specifies the read-write lock.
func shared(s keyState, by step) bool {
	return exclusive(s, by) || by.lock == history.ReadLock &&
		!slices.ContainsFunc(s.claims, func(c claim) bool { return c.lock == history.WriteLock })
}

// limited returns the specification of a semaphore of n permits.
func limited(n int) spec {
	return func(s keyState, _ step) bool { return len(s.claims) < n }
}

// next returns the states to which a step may lead, or none if the step is not allowed.
func (allows spec) next(s keyState, do step) []keyState {
	one := claim{owner: do.owner, lock: do.lock, loose: do.loose}
	there := slices.ContainsFunc(s.claims, func(c claim) bool { return c.owner == do.owner })
	switch do.verb {
	case queues:
		s.queue = append(slices.Clone(s.queue), queued{do.owner, do.came})
	case lapses:
		s.queue = s.without(do.owner)
	case takes:
		if !allows(s, do) {
			return nil
		}
		s = s.with(one, 1)
		s.token, s.queue = max(s.token, do.token), s.without(do.owner)
	case enters:
		one.inside = do.lock == history.ReadLock && s.has(do.owner, history.WriteLock) >= 0
		switch {
		case there && do.token == s.token:
			s = s.with(one, 1)
		case !do.loose:
			return nil
		}
	case holds, releases:
		has := s.has(do.owner, do.lock) >= 0
		switch {
		case has && do.verb == releases:
			s = s.with(one, -1)
		case !has && !do.loose:
			return nil
		}
	case ends:
		if !there {
			return nil
		}
		s.claims = slices.DeleteFunc(slices.Clone(s.claims), func(c claim) bool { return c.owner == do.owner })
	case forces:
		return s.forced(do)
	case fails:
		if allows(s, do) {
			return nil
		}
	}
	return []keyState{s}
}

// without returns the queue without a waiter.
func (s keyState) without(owner string) []queued {
	return slices.DeleteFunc(slices.Clone(s.queue), func(w queued) bool { return w.owner == owner })
}

// forced returns the states after a ForceRelease of one kind. A force release of a writer also frees the
// readers that entered under it, unless the writer has already released. Separate steps end loose claims.
func (s keyState) forced(do step) []keyState {
	freed, inner := s, s
	freed.claims = slices.DeleteFunc(slices.Clone(s.claims), func(c claim) bool { return c.lock == do.lock && !c.loose })
	inner.claims = slices.DeleteFunc(slices.Clone(freed.claims), func(c claim) bool {
		return c.inside && do.lock == history.WriteLock && !c.loose
	})
	return []keyState{freed, inner}
}

// model converts the specification for Porcupine. The model starts in the given state.
func (allows spec) model(from keyState) porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{from} },
		Step: func(s, input, _ any) (all []any) {
			for _, after := range allows.next(s.(keyState), input.(step)) {
				all = append(all, after)
			}
			return all
		},
		Equal: func(a, b any) bool { return a.(keyState).equal(b.(keyState)) },
	}
	return nondeterministic.ToModel()
}

// open is the end of an operation that may happen at any later time.
const open = time.Duration(math.MaxInt64)

// kept is the time for which even a slow waiter of a fair lock certainly keeps its place. The lock removes a
// waiter that has no subscription and made no attempt for 0.75 s.
const kept = 700 * time.Millisecond

// operation is a step with its time.
type operation struct {
	step

	call, end time.Duration
	event     *history.Event
}

// owned contains the operations of one owner on one key.
type owned struct {
	owner      string
	operations []*operation
	simple     bool          // one grant and one release
	take       *operation    // the grant
	alive      time.Duration // the owner certainly had the key until this time
	last       time.Duration // the end of its last operation
}

func (o *owned) add(v verb, e *history.Event, call, end time.Duration) *operation {
	op := &operation{step{v, o.owner, e.Lock, 0, e.Begin, false}, call, max(call, end), e}
	if v == takes || v == enters {
		op.token = e.Hold.Token
	}
	o.operations = append(o.operations, op)
	o.last = max(o.last, op.end)
	return op
}

// verifier converts the events of a run into operations and lets Porcupine judge them.
type verifier struct {
	limits history.Limits
	faults []*history.Event
	lives  map[int]*life // by process
	keys   map[string]*keyHistory
	since  map[*history.Event]time.Duration // for each later hold of a run, the time at which the run began

	operations, partitions, largest int
	places, refusals                int // numbers of judged ones
	violations                      []history.Violation
}

// life is the time between the first and the last event of a process.
type life struct {
	from, to time.Duration
	finished bool // the process did not die
}

// keyHistory contains the operations on one key.
type keyHistory struct {
	name   string
	lock   history.Lock
	events map[string][]*history.Event // the holds, by owner
	asked  []*history.Event            // all acquisitions
	vague  []*history.Event            // acquisitions that may have had the key for a moment although no hold was recorded
	owned  []*owned
	forces []*operation // the force releases
	beside []*operation // the confirmed force releases, and the refusals
}

// linearized lets Porcupine judge the events of a run. It returns the violations and the numbers of judged
// operations.
func linearized(limits history.Limits, events []history.Event) (found []history.Violation, summary string) {
	f := &verifier{limits: limits, lives: make(map[int]*life), keys: make(map[string]*keyHistory), since: make(map[*history.Event]time.Duration)}
	for _, run := range history.Runs(events) {
		for _, e := range run[1:] {
			f.since[e] = run[0].Begin
		}
	}
	for i := range events {
		f.file(&events[i])
	}
	for _, name := range slices.Sorted(maps.Keys(f.keys)) {
		k := f.keys[name]
		f.addForces(k)
		f.omitPassedOn(k)
		f.addRefusals(k)
		for _, owner := range slices.Sorted(maps.Keys(k.events)) {
			f.addOwner(k, owner)
		}
		f.check(k)
	}
	return f.violations, fmt.Sprintf("porcupine: %d operations on %d keys, in %d partitions of at most %d; %d places in a queue, %d refusals",
		f.operations, len(f.keys), f.partitions, f.largest, f.places, f.refusals)
}

func (f *verifier) file(e *history.Event) {
	f.live(e)
	switch {
	case e.Kind == history.Fault:
		f.faults = append(f.faults, e)
	case e.Kind == history.Force, e.Kind == history.Acquire:
		for _, key := range e.Keys {
			k := f.keys[key]
			if k == nil {
				k = &keyHistory{name: key, events: make(map[string][]*history.Event)}
				f.keys[key] = k
			}
			k.lock = cmp.Or(k.lock, e.Lock)
			if e.Kind == history.Acquire {
				k.asked = append(k.asked, e)
			}
			switch {
			case e.Kind == history.Force:
				k.beside = append(k.beside, &operation{step: step{verb: forces}, event: e})
			case len(e.Keys) == 1 && e.Outcome == history.Busy && e.Ask.Wait == 0:
				k.beside = append(k.beside, &operation{step: step{verb: fails}, event: e})
			default:
				k.attempt(e)
			}
		}
	}
}

func (f *verifier) live(e *history.Event) {
	if e.Kind == history.Fault || e.Kind == history.Stall {
		return // not recorded by the process that the event names
	}
	l := f.lives[e.Process]
	if l == nil {
		l = &life{from: e.Begin, finished: e.Process == 0}
		f.lives[e.Process] = l
	}
	l.from, l.to, l.finished = min(l.from, e.Begin), max(l.to, e.End), l.finished || e.Kind == history.Finish
}

// complete reports whether all holds between two moments are known. A process that died did not record its
// last holds.
func (f *verifier) complete(from, to time.Duration) bool {
	for _, l := range f.lives {
		if !l.finished && l.from <= to && l.to+f.limits.Recovery >= from {
			return false
		}
	}
	return true
}

func (k *keyHistory) attempt(e *history.Event) {
	if e.Hold != nil {
		k.events[e.Owner] = append(k.events[e.Owner], e)
	}
	if e.Hold == nil || len(e.Keys) > 1 {
		k.vague = append(k.vague, e)
	}
}

// quiet reports that no fault had an effect between two moments.
func (f *verifier) quiet(from, to time.Duration) bool {
	return !slices.ContainsFunc(f.faults, func(e *history.Event) bool { return e.Begin <= to && e.End+f.limits.Recovery >= from })
}

// addRefusals creates the operations for the refusals. It omits refusals while a fault has effects and
// refusals while the key may have had a holder that no event shows. It also omits refusals of fair locks and
// of readers, because a queue or a waiting writer can cause them, not only a holder.
func (f *verifier) addRefusals(k *keyHistory) {
	k.beside = slices.DeleteFunc(k.beside, func(op *operation) bool {
		e := op.event
		return op.verb == fails && (e.Lock == history.Fair || e.Lock == history.ReadLock || e.Ask.Reentry ||
			!f.quiet(e.Begin, e.End) || !f.complete(e.Begin, e.End) || slices.ContainsFunc(k.vague, func(v *history.Event) bool { return v.Begin <= e.End && v.End+f.limits.Residue >= e.Begin }))
	})
	for _, op := range k.beside {
		if e := op.event; op.verb == fails {
			op.step = step{fails, e.Owner, e.Lock, math.MaxInt64, e.Begin, false}
			op.call, op.end = e.Begin, e.End
			f.refusals++
		}
	}
}

// addForces creates the operations for the force releases. Redis may execute an unconfirmed force release
// late, or never. Such a force release makes holds loose and does not become an operation.
func (f *verifier) addForces(k *keyHistory) {
	k.beside = slices.DeleteFunc(k.beside, func(op *operation) bool {
		e := op.event
		if op.verb != forces {
			return false
		}
		force := operation{step{forces, fmt.Sprintf("p%d.g%d", e.Process, e.Goroutine), e.Lock, 0, e.Begin, false}, e.Begin, e.End, e}
		confirmed := e.Outcome == history.OK || e.Outcome == history.Free
		if !confirmed {
			force.end += f.limits.Landing
		}
		*op = force
		k.forces = append(k.forces, &force)
		return !confirmed
	})
}

// omitPassedOn omits holds of a run that got the lock in memory after a force release may have ended the run.
// Their process did not know of the force release, and another process may already have had the lock.
func (f *verifier) omitPassedOn(k *keyHistory) {
	maps.DeleteFunc(k.events, func(_ string, all []*history.Event) bool {
		for _, e := range all {
			if since, ok := f.since[e]; ok && k.forcedFrom([]*history.Event{e}, since, e.End) != open {
				k.vague = append(k.vague, all...)
				return true
			}
		}
		return false
	})
}

// forcedFrom returns the first time between since and until at which a force release may have ended one of
// the holds. It returns open if none may have.
func (k *keyHistory) forcedFrom(holds []*history.Event, since, until time.Duration) time.Duration {
	from := open
	for _, op := range k.forces {
		for _, e := range holds {
			frees := op.lock == e.Lock || op.lock == history.WriteLock && e.Ask.Reentry
			if frees && op.call <= until && op.end >= since {
				from = min(from, op.call)
			}
		}
	}
	return from
}

// addOwner creates the operations of one owner. If a process died before it recorded its outer hold, the
// re-entries inside that hold are ignored, because they prove nothing.
func (f *verifier) addOwner(k *keyHistory, owner string) {
	all := k.events[owner]
	slices.SortFunc(all, func(a, b *history.Event) int { return cmp.Compare(a.Begin, b.Begin) })
	if all[0].Ask.Reentry {
		return
	}
	var until time.Duration
	for _, e := range all {
		until = max(until, e.Hold.Release.End+e.Hold.Left)
	}
	forced := k.forcedFrom(all, all[0].Begin, until)
	o := &owned{owner: owner, simple: len(all) == 1}
	loose := slices.ContainsFunc(all, func(e *history.Event) bool { return !o.released(f, k, e, forced) })
	for _, e := range all {
		if e.Ask.Reentry {
			o.add(enters, e, e.Begin, e.End).loose = loose && e.End >= forced
		} else {
			o.take = o.add(takes, e, e.Begin, e.End)
			o.take.loose = loose
			f.addPlace(o, e)
		}
		if alive := min(e.Hold.Alive, forced-1); alive > e.End {
			o.add(holds, e, alive, alive)
			o.alive = alive
		}
		switch {
		case !loose:
			o.add(releases, e, e.Hold.Release.Begin, e.Hold.Release.End)
		case e.Lock == history.WriteLock && !o.simple: // readers that entered under the writer may continue without it
			o.add(releases, e, mayEnd(e.Hold, false), open).loose = true
		}
	}
	if loose {
		o.add(ends, all[0], o.endsFrom(all, forced), open)
	}
	k.owned = append(k.owned, o)
}

// released reports whether the owner certainly had the key when it released a hold. A release asks Redis,
// unless it passes the lock on in memory.
func (o *owned) released(f *verifier, k *keyHistory, e *history.Event, forced time.Duration) bool {
	r := e.Hold.Release
	return r.Outcome == history.OK && e.Hold.Left == 0 && (forced > r.End || o.simple && !k.mayPass(e) && f.quiet(r.Begin, r.End))
}

// mayPass reports whether the release of a hold may have passed the lock on in memory to a waiting
// caller of the process.
func (k *keyHistory) mayPass(e *history.Event) bool {
	return e.Lock.Passes() && slices.ContainsFunc(k.asked, func(next *history.Event) bool {
		return next.Process == e.Process && next.Owner != e.Owner && next.Begin <= e.Hold.Release.End && next.End >= e.Hold.Release.Begin
	})
}

// addPlace creates the operations for the place of a waiter of a fair lock. The place is certain once Redis
// has answered. A waiter gives up its place if its lease has already expired when the answer arrives.
func (f *verifier) addPlace(o *owned, e *history.Event) {
	lapse := e.Begin + min(kept, e.Ask.Lease/2)
	if e.Lock != history.Fair || e.Ask.Queued == 0 || e.Ask.Queued >= lapse {
		return
	}
	o.add(queues, e, e.Ask.Queued, e.Ask.Queued).came = e.Ask.Queued
	o.take.call = min(e.Ask.Queued+1, e.End) // Redis refused the waiter before that
	if lapse < e.End {
		o.add(lapses, e, lapse, lapse)
	}
	f.places++
}

// endsFrom returns the earliest time at which all holds of an owner can have ended without a confirmation:
// when the last of them can, or when a force release can have ended them.
func (o *owned) endsFrom(all []*history.Event, forced time.Duration) (from time.Duration) {
	refreshed := slices.ContainsFunc(all, func(e *history.Event) bool { return e.Hold.Refreshed })
	for _, e := range all {
		from = max(from, mayEnd(e.Hold, !refreshed || o.simple)) // otherwise another hold may have lowered the lease
	}
	return min(from, forced)
}

// mayEnd returns the earliest time at which a hold can have ended without a confirmation: during its release,
// or when its holder no longer relies on the lease.
func mayEnd(h *history.Hold, leaseIsKnown bool) time.Duration {
	released, expired := max(h.Release.Begin, h.Release.Begin+h.Left-2*time.Millisecond), h.Alive // 2 ms, because Redis rounds
	if leaseIsKnown {
		expired = max(expired, h.Safe)
	}
	return min(released, expired)
}

// The time and the memory that Porcupine needs grow with the square of the number of operations. So the
// history of a key is cut into partitions at moments at which the state of the key is known.
const (
	partition   = 60               // the number of pending operations from which a history is cut
	undecided   = 10 * time.Minute // the limit for one partition, which usually takes milliseconds
	shownEvents = 4                // the most events that a violation shows
)

// check judges a key.
func (f *verifier) check(k *keyHistory) {
	slices.SortFunc(k.owned, func(a, b *owned) int { return cmp.Compare(a.operations[0].call, b.operations[0].call) })
	c := &cutter{verifier: f, key: k, allows: specOf(k.name, k.lock, f.limits.Permits)}
	for _, at := range k.moments() {
		c.advance(at)
		if c.pending >= partition {
			c.cut(at)
		}
	}
	c.advance(open)
	c.judge(c.take(open))
}

// moments returns the times at which the history of a key may be cut: while a hold is certain, and before an
// acquisition.
func (k *keyHistory) moments() (all []time.Duration) {
	for _, o := range k.owned {
		all = append(all, o.operations[0].call-1)
		if o.simple && o.alive > o.take.end+1 {
			all = append(all, o.alive-1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cutter cuts the history of a key into partitions.
type cutter struct {
	*verifier

	key     *keyHistory
	allows  spec
	coming  int // index of the next element of key.owned
	there   []*owned
	pending int // the number of operations in there
	from    keyState
}

// advance adds the operations that begin before a moment.
func (c *cutter) advance(at time.Duration) {
	for ; c.coming < len(c.key.owned) && c.key.owned[c.coming].operations[0].call <= at; c.coming++ {
		o := c.key.owned[c.coming]
		c.there = append(c.there, o)
		c.pending += len(o.operations)
	}
}

// cut ends a partition at a moment if the state is known at that moment: every owner certainly has the key,
// has certainly released it, or cannot get it because of the others.
//
// If the certain holders leave no room, an owner whose release has begun must have released the key before
// they got it, and a waiter gets the key after them. So the operations of that owner may end at this moment,
// and the operations of the waiter may begin at it.
func (c *cutter) cut(at time.Duration) {
	if slices.ContainsFunc(c.key.beside, func(op *operation) bool { return op.call <= at && op.end >= at }) {
		return
	}
	state := keyState{token: c.from.token}
	for _, o := range c.there {
		if o.take.end < at {
			state.token = max(state.token, o.take.token)
		}
		if o.certainAt(at) {
			state.claims = append(state.claims, claim{o.owner, o.take.lock, 1, false, o.take.loose})
		}
	}
	full := len(state.claims) > 0 && !c.allows(keyState{claims: state.claims}, step{lock: history.ReadLock, token: 1})
	for _, o := range c.there {
		if o.certainAt(at) || o.last < at {
			continue
		}
		waiting := o.take.end > at
		if !full || waiting && c.forcedBetween(o.take.call, at) || !waiting && o.latestCall() >= at {
			return
		}
		if waiting && c.queuedAt(o, at) {
			state.queue = append(state.queue, queued{o.owner, o.take.event.Ask.Queued})
		}
	}
	slices.SortFunc(state.claims, func(a, b claim) int { return cmp.Compare(a.owner, b.owner) })
	slices.SortFunc(state.queue, func(a, b queued) int { return cmp.Compare(a.at, b.at) })
	c.judge(c.take(at))
	c.from = state
}

// queuedAt reports whether a waiter certainly has a place in the queue at a moment.
func (c *cutter) queuedAt(o *owned, at time.Duration) bool {
	has := slices.ContainsFunc(c.from.queue, func(w queued) bool { return w.owner == o.owner })
	for _, op := range o.operations {
		if op.call <= at && (op.verb == queues || op.verb == lapses) {
			has = op.verb == queues
		}
	}
	return has
}

// certainAt reports whether the owner certainly has the key at a moment, with a count of one.
func (o *owned) certainAt(at time.Duration) bool {
	return o.simple && o.take.end < at && at < o.alive
}

// latestCall returns the time at which the last operation of an owner begins.
func (o *owned) latestCall() (last time.Duration) {
	for _, op := range o.operations {
		last = max(last, op.call)
	}
	return last
}

// forcedBetween reports whether a force release may have been executed between two moments.
func (c *cutter) forcedBetween(from, to time.Duration) bool {
	return slices.ContainsFunc(c.key.forces, func(op *operation) bool { return op.call <= to && op.end >= from })
}

// take removes and returns the operations before a moment.
func (c *cutter) take(at time.Duration) (before []*operation) {
	var after []*owned
	c.pending = 0
	for _, o := range c.there {
		certain, waiting := o.certainAt(at), o.take.end > at && at != open
		var later []*operation
		for _, op := range o.operations {
			switch {
			case certain && op.call > at:
				later = append(later, op)
			case waiting && op.end > at:
				op.call = max(op.call, at)
				later = append(later, op)
			default:
				op.end = min(op.end, at)
				before = append(before, op)
			}
		}
		if o.operations = later; len(later) > 0 {
			after = append(after, o)
			c.pending += len(later)
		}
	}
	c.there = after
	c.key.beside = slices.DeleteFunc(c.key.beside, func(op *operation) bool {
		if op.call > at {
			return false
		}
		before = append(before, op)
		return true
	})
	return before
}

// judge lets Porcupine judge one partition.
func (c *cutter) judge(operations []*operation) {
	c.operations += len(operations)
	c.partitions++
	c.largest = max(c.largest, len(operations))
	all := make([]porcupine.Operation, len(operations))
	for i, op := range operations {
		all[i] = porcupine.Operation{ClientId: i, Input: op.step, Call: int64(op.call), Return: int64(op.end), Metadata: op}
	}
	model := c.allows.model(c.from)
	switch porcupine.CheckOperationsTimeout(model, all, undecided) {
	case porcupine.Ok:
	case porcupine.Illegal:
		c.reject(model, all)
	default:
		c.report(nil, operations, fmt.Sprintf("%s: undecided after %s: %d operations, starting with %s", c.key.name, undecided, len(all), c.from))
	}
}

// reject reports the first operation that Porcupine could not order, after the longest order that it found.
func (c *cutter) reject(model porcupine.Model, all []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(model, all, undecided)
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations() {
		for _, one := range partial {
			if len(one) > len(longest) {
				longest = one
			}
		}
	}
	done, state := make(map[int]bool), model.Init()
	var order []string
	var before, stuck []*operation
	for _, p := range longest {
		op := p.Metadata.(*operation)
		done[p.ClientId] = true
		before = append(before, op)
		order = append(order, op.String())
		_, state = model.Step(state, op.step, nil)
	}
	for _, p := range all {
		if !done[p.ClientId] {
			stuck = append(stuck, p.Metadata.(*operation))
		}
	}
	slices.SortFunc(stuck, func(a, b *operation) int { return cmp.Compare(a.end, b.end) })
	slices.Reverse(before)
	c.report(stuck[:1], before, fmt.Sprintf("%s: %q is not possible with %s, the result of: %s",
		c.key.name, stuck[0].step, model.DescribeState(state), strings.Join(order[max(0, len(order)-8):], "; ")))
}

// report adds a violation with the events that led to it.
func (f *verifier) report(stuck, before []*operation, text string) {
	var events []*history.Event
	for _, op := range slices.Concat(stuck, before) {
		if op.event != nil && !slices.Contains(events, op.event) && len(events) < shownEvents {
			events = append(events, op.event)
		}
	}
	f.violations = append(f.violations, history.Violation{Rule: notLinearizable, Text: text, Events: events})
}

// waited returns a hold of a fair lock by a caller that first waited in the queue, where it had its place
// from placed on.
func waited(owner string, begin, placed, granted, alive time.Duration) history.Event {
	e := of(history.Fair, hold(owner, begin, alive))
	e.End, e.Ask.Queued, e.Ask.Lease = granted, placed, 2*time.Second
	return e
}

// foundAlive returns a hold that its holder released some time after it last found the hold alive.
func foundAlive(e history.Event, releaseBegin time.Duration, outcome history.Outcome) history.Event {
	e.Hold.Release = history.Release{Begin: releaseBegin, End: releaseBegin + ms, Outcome: outcome}
	return e
}

func TestPorcupine(t *testing.T) {
	t.Parallel()
	read := func(owner string, begin, alive time.Duration) history.Event {
		return of(history.ReadLock, hold(owner, begin, alive))
	}
	write := func(owner string, begin, alive time.Duration) history.Event {
		return written(hold(owner, begin, alive))
	}
	permitted := func(owner string, begin, alive time.Duration) history.Event { return permit(hold(owner, begin, alive)) }
	under := func(e *history.Event) { e.Ask.Reentry = true }
	left := func(e *history.Event) { e.Hold.Left = 100 * ms }
	inner := func(owner string, begin, alive time.Duration) history.Event {
		return changed(hold(owner, begin, alive), under)
	}
	brief := func(owner string, begin, alive time.Duration) history.Event { // the lease expired while the holder was busy
		return changed(foundAlive(hold(owner, begin, alive), 1100*ms, history.Lost), func(e *history.Event) { e.Hold.Safe = alive })
	}
	for _, tc := range []struct {
		name         string
		wrong, right []history.Event
	}{
		{
			"two holders",
			[]history.Event{hold("a", 0, 50*ms), hold("b", 30*ms, 80*ms)},
			[]history.Event{hold("a", 0, 50*ms), hold("b", 51*ms, 80*ms)},
		},
		{
			"short hold during a long one",
			[]history.Event{hold("a", 0, 500*ms), hold("b", 400*ms, 410*ms)},
			[]history.Event{hold("a", 0, 399*ms), hold("b", 400*ms, 410*ms)},
		},
		{
			"granted during the release",
			[]history.Event{hold("a", 0, 50*ms), hold("b", 48*ms, 80*ms)},
			[]history.Event{hold("a", 0, 50*ms), hold("b", 49*ms, 80*ms)},
		},
		{
			"re-entry without the outer hold",
			[]history.Event{hold("a", 0, 50*ms), inner("a", 60*ms, 80*ms)},
			[]history.Event{hold("a", 0, 50*ms), inner("a", 20*ms, 40*ms)},
		},
		{
			"taken while an inner hold outlives the outer one",
			[]history.Event{hold("a", 0, 50*ms), inner("a", 20*ms, 90*ms), hold("b", 55*ms, 70*ms)},
			[]history.Event{hold("a", 0, 50*ms), inner("a", 20*ms, 90*ms), hold("b", 91*ms, 99*ms)},
		},
		{
			"release of another owner's lock",
			[]history.Event{hold("a", 0, 50*ms), foundAlive(hold("b", 60*ms, 65*ms), 70*ms, history.OK), foundAlive(hold("c", 10*ms, 20*ms), 62*ms, history.OK)},
			[]history.Event{hold("a", 0, 50*ms), foundAlive(hold("b", 60*ms, 65*ms), 70*ms, history.OK), foundAlive(hold("c", 75*ms, 80*ms), 82*ms, history.OK)},
		},
		{
			"late release that frees the next holder's lock",
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 1100*ms, history.OK), hold("b", 1050*ms, 1200*ms), hold("c", 1150*ms, 1300*ms)},
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 1100*ms, history.Lost), hold("b", 1050*ms, 1200*ms), hold("c", 1200*ms, 1300*ms)},
		},
		{
			"taken before the lease of a lost hold can have ended",
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 1100*ms, history.Lost), hold("b", 900*ms, 980*ms)},
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 1100*ms, history.Lost), hold("b", 990*ms, 1000*ms)},
		},
		{
			"taken before the release of an inner hold with a longer lease",
			[]history.Event{brief("a", 0, 10*ms), inner("a", 5*ms, 20*ms), hold("b", 15*ms, 30*ms)},
			[]history.Event{brief("a", 0, 10*ms), inner("a", 5*ms, 20*ms), hold("b", 25*ms, 30*ms)},
		},
		{
			"taken before a release without an answer was sent",
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 30*ms, history.Unavailable), hold("b", 20*ms, 25*ms)},
			[]history.Event{foundAlive(hold("a", 0, 10*ms), 30*ms, history.Unavailable), hold("b", 30*ms, 35*ms)},
		},
		{
			"taken during the marker of Leave",
			[]history.Event{changed(hold("a", 0, 10*ms), left), hold("b", 100*ms, 120*ms)},
			[]history.Event{changed(hold("a", 0, 10*ms), left), hold("b", 110*ms, 120*ms)},
		},
		{
			"taken before the force release",
			[]history.Event{hold("a", 0, 50*ms), hold("b", 22*ms, 80*ms), force(30*ms, 31*ms, history.OK)},
			[]history.Event{
				foundAlive(hold("a", 0, 50*ms), 60*ms, history.Lost), force(20*ms, 21*ms, history.OK), hold("b", 22*ms, 80*ms),
			},
		},
		{
			"released after the force release",
			[]history.Event{hold("a", 0, 50*ms), force(20*ms, 21*ms, history.OK)},
			[]history.Event{hold("a", 0, 20*ms), force(20*ms, 21*ms, history.OK)},
		},
		{
			"taken during a run",
			[]history.Event{hold("a", 10*ms, 50*ms), force(8*ms, 9*ms, history.OK), follows(hold("b", 49*ms, 80*ms)), hold("c", 22*ms, 70*ms)},
			[]history.Event{hold("a", 0, 50*ms), force(20*ms, 21*ms, history.OK), follows(hold("b", 49*ms, 80*ms)), hold("c", 22*ms, 70*ms)},
		},
		{
			"taken twice after a force release without an answer",
			[]history.Event{
				force(0, ms, history.Unavailable), foundAlive(hold("a", 200*ms, 300*ms), 400*ms, history.Lost),
				hold("b", 210*ms, 310*ms), hold("c", 220*ms, 320*ms),
			},
			[]history.Event{
				force(0, ms, history.Unavailable), foundAlive(hold("a", 200*ms, 300*ms), 400*ms, history.Lost), hold("b", 210*ms, 310*ms),
			},
		},
		{
			"reader during a write",
			[]history.Event{write("a", 0, 50*ms), read("b", 30*ms, 80*ms)},
			[]history.Event{write("a", 0, 50*ms), read("b", 51*ms, 80*ms), read("c", 60*ms, 90*ms)},
		},
		{
			"writer during a read",
			[]history.Event{read("a", 0, 50*ms), read("c", 10*ms, 90*ms), write("b", 60*ms, 80*ms)},
			[]history.Event{read("a", 0, 50*ms), read("c", 10*ms, 90*ms), write("b", 91*ms, 99*ms)},
		},
		{
			"writer during a read that was inside a write",
			[]history.Event{write("a", 0, 50*ms), changed(read("a", 10*ms, 80*ms), under), write("b", 55*ms, 90*ms)},
			[]history.Event{write("a", 0, 50*ms), changed(read("a", 10*ms, 80*ms), under), read("b", 55*ms, 90*ms)},
		},
		{
			"writer during a read that outlived its write and was lost",
			[]history.Event{write("a", 0, 50*ms), foundAlive(changed(read("a", 10*ms, 80*ms), under), 90*ms, history.Lost), write("b", 55*ms, 90*ms)},
			[]history.Event{write("a", 0, 50*ms), foundAlive(changed(read("a", 10*ms, 80*ms), under), 90*ms, history.Lost), read("b", 55*ms, 90*ms)},
		},
		{
			"force release of the writer while readers hold the lock",
			[]history.Event{read("a", 0, 50*ms), of(history.WriteLock, force(20*ms, 21*ms, history.OK)), write("b", 22*ms, 80*ms)},
			[]history.Event{
				foundAlive(read("a", 0, 50*ms), 60*ms, history.Lost), of(history.ReadLock, force(20*ms, 21*ms, history.OK)), write("b", 22*ms, 80*ms),
			},
		},
		{
			"one permit more",
			[]history.Event{permitted("a", 0, 50*ms), permitted("b", 10*ms, 80*ms), permitted("c", 20*ms, 80*ms)},
			[]history.Event{permitted("a", 0, 50*ms), permitted("b", 10*ms, 80*ms), permitted("c", 51*ms, 80*ms)},
		},
		{
			"token falls",
			[]history.Event{token(hold("a", 0, 50*ms), 2), token(hold("b", 50*ms, 80*ms), 1)},
			[]history.Event{token(hold("a", 0, 50*ms), 1), token(hold("b", 50*ms, 80*ms), 2)},
		},
		{
			"re-entry with another token",
			[]history.Event{token(hold("a", 0, 50*ms), 2), token(inner("a", 10*ms, 40*ms), 3)},
			[]history.Event{token(hold("a", 0, 50*ms), 2), token(inner("a", 10*ms, 40*ms), 2)},
		},
		{
			"refused without a holder",
			[]history.Event{hold("a", 0, 50*ms), refused(60*ms, 61*ms, 0, history.Busy), hold("b", 62*ms, 70*ms)},
			[]history.Event{hold("a", 0, 50*ms), refused(51*ms, 61*ms, 0, history.Busy), hold("b", 62*ms, 70*ms)},
		},
		{
			"refused while a process has not recorded all holds",
			[]history.Event{hold("a", 0, 50*ms), refused(60*ms, 61*ms, 0, history.Busy)},
			[]history.Event{
				changed(hold("a", 0, 50*ms), func(e *history.Event) { e.Process = 3 }), refused(60*ms, 61*ms, 0, history.Busy),
			},
		},
		{
			"writer refused without a holder",
			[]history.Event{write("a", 0, 50*ms), of(history.WriteLock, refused(60*ms, 61*ms, 0, history.Busy))},
			[]history.Event{write("a", 0, 50*ms), read("b", 58*ms, 70*ms), of(history.WriteLock, refused(60*ms, 61*ms, 0, history.Busy))},
		},
		{
			"refused with a free permit",
			[]history.Event{permitted("a", 0, 50*ms), permit(refused(20*ms, 21*ms, 0, history.Busy))},
			[]history.Event{permitted("a", 0, 50*ms), permitted("b", 0, 50*ms), permit(refused(20*ms, 21*ms, 0, history.Busy))},
		},
		{
			"refused long after a waiter gave up",
			[]history.Event{hold("a", 0, 50*ms), refused(40*ms, 60*ms, 20*ms, history.Busy), refused(1100*ms, 1101*ms, 0, history.Busy)},
			[]history.Event{hold("a", 0, 50*ms), refused(40*ms, 60*ms, 20*ms, history.Busy), refused(1000*ms, 1001*ms, 0, history.Busy)},
		},
		{
			"waiter overtaken",
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), waited("c", 20*ms, 21*ms, 52*ms, 80*ms),
			},
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 52*ms, 80*ms), waited("c", 20*ms, 21*ms, 90*ms, 95*ms),
			},
		},
		{
			"waiter overtaken by a caller that does not wait",
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), of(history.Fair, hold("c", 60*ms, 80*ms)),
			},
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 52*ms, 58*ms), of(history.Fair, hold("c", 60*ms, 80*ms)),
			},
		},
		{
			"waiter overtaken by a later caller without an answer",
			[]history.Event{
				broken(0, 100*ms), of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), waited("c", 12*ms, 0, 52*ms, 80*ms),
			},
			[]history.Event{
				broken(0, 100*ms), of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), waited("c", 9*ms, 0, 52*ms, 80*ms),
			},
		},
		{
			"waiter overtaken although it cannot have lost its place",
			[]history.Event{
				of(history.Fair, hold("a", 0, 700*ms)), waited("b", 10*ms, 11*ms, 900*ms, 950*ms), waited("c", 20*ms, 21*ms, 705*ms, 708*ms),
			},
			[]history.Event{
				of(history.Fair, hold("a", 0, 710*ms)), waited("b", 10*ms, 11*ms, 900*ms, 950*ms), waited("c", 20*ms, 21*ms, 715*ms, 800*ms),
			},
		},
		{
			"waiter overtaken by a caller that came at the same time",
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), waited("c", 11*ms+1, 21*ms, 52*ms, 80*ms),
			},
			[]history.Event{
				of(history.Fair, hold("a", 0, 50*ms)), waited("b", 10*ms, 11*ms, 90*ms, 95*ms), waited("c", 11*ms, 21*ms, 52*ms, 80*ms),
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			found, _ := linearized(limits, slices.Concat(tc.wrong, ended))
			if len(found) != 1 || found[0].Rule != notLinearizable {
				t.Errorf("wrong history: got %v, want one violation", found)
			} else {
				t.Log(history.Window(tc.wrong, found[0]))
			}
			if found, _ := linearized(limits, slices.Concat(tc.right, ended)); len(found) > 0 {
				t.Errorf("right history: got %v, want no violation", found)
			}
		})
	}
}

// TestPorcupine_Partitions cuts a long history into partitions and finds one mistake in the middle.
func TestPorcupine_Partitions(t *testing.T) {
	t.Parallel()
	const turns, length = 2000, 10 * ms
	var right []history.Event
	for n := range turns {
		begin := time.Duration(n) * length
		waiter := hold(fmt.Sprintf("w%d", n), begin, begin+7*length)
		waiter.Begin = max(0, begin-5*length) // there are always waiters
		waiter.Hold.Alive, waiter.Hold.Release.Begin, waiter.Hold.Release.End = begin+8*ms, begin+9*ms, begin+12*ms
		right = append(right, waiter)
	}
	found, counts := linearized(limits, right)
	if len(found) > 0 {
		t.Errorf("got %v, want no violation", found)
	}
	t.Log(counts)
	wrong := slices.Clone(right)
	wrong[turns/2] = changed(wrong[turns/2], func(e *history.Event) {
		longer := *e.Hold
		longer.Alive += length
		e.Hold = &longer
	})
	if found, _ := linearized(limits, wrong); len(found) != 1 || found[0].Rule != notLinearizable {
		t.Errorf("got %v, want one violation", found)
	}
}
