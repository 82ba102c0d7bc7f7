package queue

import (
	"slices"
	"time"
)

// A run is the turns that this process has from one acquire to the release. In between the lock is passed
// on in memory, or handed off by a script. The run ends with a message, so that other processes get their
// turns. The way of the lock to another process takes two round trips, half of one for each of the release,
// the message, the attempt and its answer. No client has the lock in this time.
//
// Beside others a run ends after 16 changes of the holder, or after 5 ms. If the others know ranks, two things
// make it longer. It lasts for at least three ways, so that the lock is idle for a quarter of the time at most.
// And it lasts up to 10 ms if callers that waited when it began have not had their turn: a shorter run would
// have them wait for the next one. Redisson's threads know no ranks, and get the lock after a short run.
//
// A process finds out that there are others by how many of them hear its message. Others that have just come
// do not listen yet. So a run ends, too, if the last release has reached no other: after 10 ms or six ways, and
// after twice as long for each further such release, up to 50 ms or ten ways.
//
// A release does not grant the lock to a waiter of another process, which would halve the way. Redis would
// have to keep a field for each waiter, and a lease until that waiter answers. Redisson knows neither.
const (
	runLength     = 16
	sharedRunTime = 5 * time.Millisecond
	sharedRunWays = 3
	runTime       = 50 * time.Millisecond
	runWays       = 10
	surelyAlone   = 4 // releases that reached no other, after which a run lasts longest

	// leastSharedRun is for processes beside Redis, whose ways differ by how busy their machines are.
	leastSharedRun = time.Millisecond

	// longestWay is the longest way that counts: a Redis that stands still is not far away.
	longestWay = 50 * time.Millisecond
)

const (
	// rankStep is how much later a process attempts for each other one that has waited
	// longer. It is to be more than their ways to Redis differ by; how long these are
	// does not matter, for a message has the same way as the attempt that it causes.
	rankStep = 700 * time.Microsecond

	// maxTrust is how much later those behind the first one attempt at most, when it has
	// always been there: as long as a run of others, so that its end mostly comes first.
	maxTrust = 2 * sharedRunTime

	// A free lock is left for so long to those who know no ranks, such as Redisson's
	// threads: twice what they need to wake up and take it. It is longer by far enough
	// if the message of their release is to be expected in just that instant.
	minPatience = 3 * time.Millisecond
	maxPatience = 6 * time.Millisecond
	farEnough   = time.Millisecond

	// memory is how long it counts who was seen.
	memory = 5 * time.Second

	// outOfStep says after how many runs strangers are left one turn more.
	outOfStep = 4

	// maxOwed bounds what is owed to others, and what they owe.
	maxOwed = 2 * runLength

	// After so many stand-backs in vain there are none for a while, which doubles.
	vainBefore         = 3
	minQuiet, maxQuiet = 10 * time.Millisecond, 100 * time.Millisecond
)

// Uncounted is how many others a release has notified where PUBLISH does not count them: in
// a Cluster with classic pub/sub it knows those of one node.
const Uncounted = -1

// Unanswered stands for the number of others that a release has notified if its reply was lost. Others may
// listen.
const Unanswered = -4

// Rival is somebody of another process who has the lock, as a refusal names him.
type Rival uint8

// Who a rival is. A fellow is a client of this library: it knows ranks. A stranger is
// anybody else.
const (
	Unseen Rival = iota
	Fellow
	Stranger
)

// turns says when this process may take a lock that others want too, by what it sees of
// them: messages, refusals, and how many listen. Whose turn it is follows who has waited
// longest.
//
//	ranked ── begin ──▶ running ── release, nobody listens ──▶ free (no delay)
//	  ▲                    └────── release, others listen ────▶ stands back
//	  └───────── message, or the stand-back is over ──────────────┘
//
// "Ranked" and "stands back" differ in what the delay of the next attempt follows from: a
// release of others, or our own.
//
// Each process counts the releases that it has missed since its last turn. With n rivals
// the one that has missed n is first, and attempts at once; the others do so later by a
// step for each that is before them, and find the lock taken. So nobody needs to know
// anybody else, and when the first one is gone the next one takes its place. Each time the
// first one turns out to have been there, who is behind it trusts it for longer the next
// time, up to the length of a run; once it is gone it is not trusted any more.
//
// Strangers know nothing of that, and need longer to take what is free. To them every turn
// of a run is owed: while it is, the process leaves them the lock after every message, for
// as long as they need to take it, and each message is a turn of theirs. What they take
// beyond it is owed to us: then we do not stand back.
//
// Each message wakes one thread of theirs. The one that it wakes when it is our turn finds
// the lock taken, and goes to the end of their queue. If they and we had one turn each, that
// would be the same threads again and again: half of them would never have the lock, where
// their number is even. So a single turn is owed twice, and now and then they are left one
// turn more, lest some other number is in step.
//
// A stand-back may be in vain: who listens need not wait. After a few of them there is
// none for a while, up to a first sign of others.
//
// It is a value without clock, locks and I/O; it is guarded by whoever has it.
type turns struct {
	run    int              // turns of the run under way
	trips  [4]time.Duration // round trips of the last attempts that brought the lock; 0: unknown
	due    int              // how many wanted one when it began
	since  time.Time        // when it began
	missed int              // releases of others since
	rounds [4]int           // what was missed before each of the last runs

	others    int  // who listened to our last release, Uncounted in some Clusters
	alone     int  // so many last releases were heard by no other, as far as is known; 0 when others are seen
	contested bool // others were seen since nobody did

	backTo time.Time     // the lock is left to others until then
	behind bool          // because others are before it
	trust  time.Duration // how much later it attempts then
	stands standing
	quiet  lull

	debt debt
}

// standing is how a stand-back after our own release goes.
type standing int

const (
	notBack   standing = iota // there is none, or somebody has released the lock since
	backAgain                 // nobody has come to wait for its end
	waitedOut                 // somebody has
)

// debt is what is owed to strangers.
type debt struct {
	turns     int           // negative: others owe them
	runs      int           // of ours beside strangers
	gift      bool          // the lock is left free for a while: who takes it owes nothing for it
	last      Rival         // had the lock since the last message
	fellows   time.Time     // when one was seen
	strangers time.Time     // when one was seen
	freed     time.Time     // the last release
	takes     time.Duration // from one release to the next of others, the last time
}

// lull is a time without stand-backs.
type lull struct {
	vain int // stand-backs in vain, one after the other
	long time.Duration
	to   time.Time
}

// begin notes that the lock was taken from Redis. hears says that messages would have
// arrived before.
func (t *turns) begin(now time.Time, hears bool) {
	if t.stands == waitedOut && hears && !now.Before(t.backTo) {
		t.inVain(now)
	}
	if t.behind {
		t.trust = 0 // whoever was before it has not come
	}
	if !t.backTo.IsZero() && now.Sub(t.backTo) > time.Second {
		t.debt.turns = 0 // nobody has kept them from taking it
	}
	copy(t.rounds[1:], t.rounds[:])
	t.rounds[0], t.missed = t.missed, 0
	t.run, t.since = 1, now
	t.backTo, t.behind, t.stands = time.Time{}, false, notBack
	t.debt.last, t.debt.gift = Unseen, false
}

// inVain notes that nobody has taken what was left to others.
func (t *turns) inVain(now time.Time) {
	q := &t.quiet
	if q.vain++; q.vain < vainBefore {
		return
	}
	q.long = min(max(2*q.long, minQuiet), maxQuiet)
	q.to = now.Add(q.long)
	t.debt.turns = min(t.debt.turns, 0)
	if t.others == Uncounted {
		t.contested = false
	}
}

// serves notes how many callers of this process want a turn of the run that has begun.
func (t *turns) serves(callers int) { t.due = callers }

// handed notes a pass or a hand-off.
func (t *turns) handed() { t.run++ }

// measure notes the round trip of an attempt that has brought the lock.
func (t *turns) measure(trip time.Duration) {
	copy(t.trips[1:], t.trips[:])
	t.trips[0] = trip
}

// way returns for how long the lock is on its way to another process: two round trips, as fast as the
// fastest of the last ones, because a slower one waited for something else than the distance.
func (t *turns) way() time.Duration { return min(2*slices.Min(t.trips[:]), longestWay) }

// mayHandOff reports whether the run may go on, by a pass or a hand-off.
func (t *turns) mayHandOff(now time.Time, limits RunLimits) bool {
	lasts, worthwhile := now.Sub(t.since), sharedRunWays*t.way()
	if t.alone > 0 {
		return lasts < min(max(limits.Shared, worthwhile)<<t.alone, max(limits.Alone, runWays*t.way()))
	}
	longest := limits.Shared
	if !t.debt.besideStrangers(now) {
		if lasts < max(worthwhile, leastSharedRun) {
			return true
		}
		if t.run < t.due {
			longest *= 2
		}
	}
	return t.run <= runLength && lasts < longest
}

// heard reports whether others have heard our last release, as far as is known.
func (t *turns) heard() bool { return t.others > 0 || t.others == Uncounted && t.contested }

// release notes that the lock was freed, and how many others were notified.
func (t *turns) release(now time.Time, others int) {
	turns, before := min(t.run, runLength), t.others // strangers have not waited for all turns of a longer run
	if others == Unanswered {                        // as many as before, and one at least
		t.contested = true
		if others = before; others == 0 {
			others = 1
		}
	}
	t.run, t.missed, t.others, t.debt.freed = 0, 0, others, now
	if others == 0 || others == Uncounted && !t.contested {
		t.debt.turns, t.contested, t.alone, t.quiet = 0, false, min(t.alone+1, surelyAlone), lull{}
		return
	}
	t.alone = 0
	t.debt.took(turns, now)
	if others > before {
		t.joined(others)
	}
	if !now.Before(t.quiet.to) {
		t.stands = backAgain
		t.standBack(now)
	}
}

// joined expects that whoever listens waits, until that turns out to be wrong.
func (t *turns) joined(others int) {
	for i, missed := range t.rounds {
		t.rounds[i] = max(missed, others)
	}
	t.quiet = lull{}
}

// refuse notes who has the lock.
func (t *turns) refuse(now time.Time, by Rival) {
	switch by {
	case Fellow:
		t.debt.fellows = now
	case Stranger:
		t.debt.strangers = now
	case Unseen:
	}
	if t.behind && by == Fellow && !now.Before(t.backTo) {
		t.trust = min(max(2*t.trust, rankStep), maxTrust)
	}
	t.debt.last, t.contested, t.alone, t.behind, t.quiet = by, true, 0, false, lull{}
}

// gives notes that the lock is left free for whoever wants it, up to our next turn.
func (t *turns) gives() { t.debt.gift = true }

// message notes that somebody else has freed the lock.
func (t *turns) message(now time.Time) {
	t.debt.released(now)
	t.missed++
	t.contested, t.alone, t.quiet, t.stands = true, 0, lull{}, notBack
	t.standBack(now)
}

// standBack leaves the lock, which is free now, to others.
func (t *turns) standBack(now time.Time) {
	before := max(t.rivals()-t.missed, 0)
	t.behind = before > 0
	t.backTo = now.Add(t.delay(before, now))
}

// took notes a run of ours. Strangers that are known to be there are owed two turns at least,
// and now and then one more.
func (d *debt) took(turns int, now time.Time) {
	if now.Sub(d.strangers) < memory {
		turns = max(turns, 2)
		if d.runs++; d.runs%outOfStep == 0 {
			turns++
		}
	}
	d.turns = min(d.turns+turns, maxOwed)
}

// besideStrangers reports whether there are, or may be, others who know no ranks.
func (d *debt) besideStrangers(now time.Time) bool {
	return now.Sub(d.strangers) < memory || now.Sub(d.fellows) >= memory
}

// released notes a release of somebody else. It is that of a stranger, if there are any
// and a fellow was not seen since the one before.
func (d *debt) released(now time.Time) {
	if d.last != Fellow && d.besideStrangers(now) {
		least := -maxOwed
		if d.gift {
			least = min(d.turns, 0)
		}
		d.turns = max(d.turns-1, least)
	}
	d.takes = now.Sub(d.freed)
	d.freed, d.last = now, Unseen
}

// patience is for how long strangers are left a free lock.
func (d *debt) patience() time.Duration {
	return min(max(d.takes+farEnough, minPatience), maxPatience)
}

// delay is for how long a lock that is free now is left to others, of whom so many are
// before this process.
func (t *turns) delay(before int, now time.Time) time.Duration {
	ranked := time.Duration(before) * rankStep
	switch {
	case !t.debt.besideStrangers(now):
		if before > 0 {
			ranked += t.trust
		}
		return ranked
	case t.debt.turns == 0:
		return ranked
	case t.debt.turns < 0:
		return 0
	default:
		return max(ranked, t.debt.patience())
	}
}

// rivals is how many others take turns: as many as had one between two of ours, of late,
// but not more than listen.
func (t *turns) rivals() int {
	most := max(t.rounds[0], t.rounds[1], t.rounds[2], t.rounds[3], 1)
	if t.others == Uncounted {
		return most
	}
	return min(most, max(t.others, 1))
}

// waits is for how long the next attempt has to wait, 0 if it does not.
func (t *turns) waits(now time.Time) time.Duration {
	left := t.backTo.Sub(now)
	if left <= 0 {
		return 0
	}
	if t.stands == backAgain {
		t.stands = waitedOut
	}
	return left
}
