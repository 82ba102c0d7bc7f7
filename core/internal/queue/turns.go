package queue

import (
	"slices"
	"time"
)

// RunLimits are the limits of a run, the time in which the lock goes from caller to caller within
// this process.
type RunLimits struct {
	Alone  time.Duration // where no other process is known to want the lock; longer where Redis is far away
	Shared time.Duration // where others want it; up to twice as long while some callers still wait for their turn, and longer where Redis is far away
}

// These constants limit the length of a run. A run lasts from an acquire of this process to the release
// at its end. In between, the lock is passed on in memory or handed off by a script. The release sends a
// message, so that other processes get their turn. The lock then travels for two round trips: half of
// one each for the release, the message, the attempt and its answer. No client holds the lock in this
// time, which is called a way here.
//
// Beside other processes a run ends after runLength changes of the holder, or after sharedRunTime.
// If all others are fellows, two rules make it longer. It lasts for at least sharedRunWays ways, so
// that the lock is idle for at most a quarter of the time. And it lasts for up to twice
// sharedRunTime while callers that waited at its beginning still wait for their turn, because they
// would have to wait for the next run. Strangers do not use ranks and get the lock after a short run.
//
// The reply to a release contains the number of other processes that listen. A process that just
// arrived does not listen yet. So a run also ends if the last release reached no other process: after
// twice the shared limits, and after twice as long for each further such release, up to runTime or
// runWays ways.
//
// A release does not grant the lock to a waiter of another process, although that would halve the
// way: Redis would have to keep a field for each waiter and a lease until that waiter answers.
// Redisson supports neither.
const (
	runLength     = 16
	sharedRunTime = 5 * time.Millisecond
	sharedRunWays = 3
	runTime       = 10 * sharedRunTime
	runWays       = 10

	// maxAlone is the number of releases without a listener after which a run lasts longest: the
	// number of doublings that lead from sharedRunTime past runTime.
	maxAlone = 4

	// leastSharedRun applies to processes next to Redis. Their ways depend on the load of their
	// machines more than on the distance.
	leastSharedRun = time.Millisecond

	// longestWay is the longest way that counts. A slower answer comes from a Redis that stalled, not
	// from a distant one.
	longestWay = 50 * time.Millisecond
)

const (
	// rankStep is how much later a process attempts for each other process that has waited longer.
	// It exceeds the differences between the ways of processes to Redis. The ways themselves do not
	// matter: a message takes the same way as the attempt that it causes.
	rankStep = 700 * time.Microsecond

	// maxTrust is the longest delay that a process adds to its rank while the processes before it keep
	// coming. It is the longest run of fellows, so their run usually ends first.
	maxTrust = 2 * sharedRunTime

	// minPatience is how long a free lock is left to strangers: twice what a Redisson thread needs
	// to wake up and take it.
	minPatience = 3 * time.Millisecond

	// maxPatience bounds the patience that grows with the hold time of strangers.
	maxPatience = 2 * minPatience

	// patienceMargin is added to the time after which the next message of strangers is expected, so that
	// the patience does not end at exactly that moment.
	patienceMargin = time.Millisecond

	// memory is the time for which a process that was seen counts as present.
	memory = 5 * time.Second

	// debtLifetime is the time after a stand-back for which the remaining turns stay owed to strangers.
	// After that time, the strangers had their chance to take the lock.
	debtLifetime = time.Second

	// extraTurnEvery is the number of runs after which strangers get one more turn; see account.add.
	extraTurnEvery = 4

	// maxOwed bounds the turns that this process and strangers owe each other: two runs.
	maxOwed = 2 * runLength

	// maxUnused is the number of unused stand-backs in a row after which there are none for a while.
	// That time begins with minQuiet and doubles up to maxQuiet.
	maxUnused = 3
	minQuiet  = 10 * time.Millisecond
	maxQuiet  = 10 * minQuiet
)

// These values stand for an unknown number of other listeners of a release.
const (
	Uncounted   = -1 // PUBLISH does not count them: in a Cluster with classic pub/sub it counts the listeners of one node
	NoMessage   = -2 // the release sent no message, as far as is known
	Unpublished = -3 // the release certainly sent no message, because other holders remain
	Unanswered  = -4 // the reply of the release was lost; others may listen
)

// Rival classifies the client of another process that holds the lock, according to a refusal.
type Rival uint8

// A fellow is a client of this library, which uses ranks. A stranger is any other client.
const (
	Unseen Rival = iota
	Fellow
	Stranger
)

// turns decides when this process may take a lock that other processes also want. It observes them
// only by their messages, by refusals, and by the number of listeners.
//
// # Fellows: the process that has waited longest goes first
//
// Each process counts the releases of others since its last turn (missed). With n rivals, the
// process that has missed n is first and attempts at once. Every other process attempts one
// rankStep later for each process before it and finds the lock taken. If the first process does
// not come, the next one takes its place. Each time it does come, the processes behind it trust it:
// they wait longer the next time, until the message of its release comes before their attempt. A
// process that gets the lock out of turn trusts the others no more.
//
// Three processes A, B and C take turns for 4 ms each. Each has missed two releases before each of
// its turns, so each counts two rivals. Trust has grown to 5.6 ms (0.7, 1.4, 2.8, 5.6). For each
// process the table shows the missed releases and the time of its next attempt:
//
//	  ms   event                           A          B          C
//	 0.0   A releases, two others listen   0,  7.0    2,  0.0    1,  6.3
//	 0.0   B takes the lock                0,  7.0    runs       1,  6.3
//	 4.0   B releases, two others listen   1, 10.3    0, 11.0    2,  4.0
//	 4.0   C takes the lock                1, 10.3    0, 11.0    runs
//	 8.0   C releases, two others listen   2,  8.0    1, 14.3    0, 15.0
//	 8.0   A has no more callers
//	14.3   B takes the lock out of turn    2,  now    runs       0, 15.0
//
// At 6.3 and 7.0 ms no process attempts, because the messages of 4.0 ms set new times. At
// 14.3 ms B stops trusting: after its next turn it waits two rankSteps and nothing more.
//
// # Strangers: they get as many turns as this process has had
//
// Strangers do not use ranks and need longer to take a free lock. This process owes them one turn for
// each turn of its run. While it owes any, it leaves them the lock after every message, for as long
// as they need to take it. Each message is one of their turns. If they take more than that, they owe
// turns to this process, which then does not stand back.
//
// # Stand-backs that no process uses
//
// A process that listens does not have to wait. After maxUnused stand-backs without a taker there
// are none for a while, or until another process shows up.
//
// # States
//
//	ranked ── begin ──▶ running ── release, no listener ──▶ free (no delay)
//	  ▲                    └────── release, listeners ────▶ stands back
//	  └────────── message, or the end of the stand-back ────────┘
//
// In "ranked" the delay of the next attempt follows from a release of others, in "stands back" from
// a release of this process.
//
// It uses no clock, no mutex and no I/O. Its owner guards it.
type turns struct {
	run     int              // turns of the run under way
	trips   [4]time.Duration // round trips of the last attempts that brought the lock; 0: unknown
	callers int              // number of callers that wanted a turn when the run began
	since   time.Time        // when the run began
	missed  int              // releases of others since then
	rounds  [4]int           // missed before each of the last runs

	others    int  // listeners of the last release of this process; Uncounted in some Clusters
	alone     int  // number of releases in a row that reached no other process, as far as is known; 0 once others are seen
	contested bool // others were seen since the last release without a listener

	backTo time.Time     // the lock is left to others until then
	behind bool          // it is left to others because other processes are before this one
	trust  time.Duration // additional delay of its attempt in that case
	stands standing
	quiet  quiet

	account account
}

// standing is the state of a stand-back after a release of this process.
type standing int

const (
	notBack   standing = iota // there is none, or another process released the lock since
	backAgain                 // no caller of this process waited for its end yet
	waitedOut                 // a caller waited for its end
)

// quiet is a time without stand-backs.
type quiet struct {
	unused int // stand-backs without a taker, in a row
	long   time.Duration
	to     time.Time
}

// begin records that this process took the lock from Redis. hears reports whether messages would have
// arrived before.
func (t *turns) begin(now time.Time, hears bool) {
	if t.stands == waitedOut && hears && !now.Before(t.backTo) {
		t.countUnused(now)
	}
	if t.behind {
		t.trust = 0 // the processes before this one did not come
	}
	if !t.backTo.IsZero() && now.Sub(t.backTo) > debtLifetime {
		t.account.owed = 0 // strangers had their chance to take it
	}
	copy(t.rounds[1:], t.rounds[:])
	t.rounds[0], t.missed = t.missed, 0
	t.run, t.since = 1, now
	t.backTo, t.behind, t.stands = time.Time{}, false, notBack
	t.account.last, t.account.gift = Unseen, false
}

// countUnused records that no process took the lock while it was left to others.
func (t *turns) countUnused(now time.Time) {
	q := &t.quiet
	if q.unused++; q.unused < maxUnused {
		return
	}
	q.long = min(max(2*q.long, minQuiet), maxQuiet)
	q.to = now.Add(q.long)
	t.account.owed = min(t.account.owed, 0)
	if t.others == Uncounted {
		t.contested = false
	}
}

// serve records the number of callers of this process that want a turn of the run that just began.
func (t *turns) serve(callers int) { t.callers = callers }

// handOn records a pass or a hand-off.
func (t *turns) handOn() { t.run++ }

// measure records the round trip of an attempt that acquired the lock.
func (t *turns) measure(trip time.Duration) {
	copy(t.trips[1:], t.trips[:])
	t.trips[0] = trip
}

// way returns the time that the lock travels to another process: two round trips. The fastest of the
// last ones counts, because a slower one was delayed by something other than the distance.
func (t *turns) way() time.Duration { return min(2*slices.Min(t.trips[:]), longestWay) }

// mayHandOff reports whether the run may continue with a pass or a hand-off.
func (t *turns) mayHandOff(now time.Time, limits RunLimits) bool {
	lasts, worthwhile := now.Sub(t.since), sharedRunWays*t.way()
	if t.alone > 0 {
		return lasts < min(max(limits.Shared, worthwhile)<<t.alone, max(limits.Alone, runWays*t.way()))
	}
	longest := limits.Shared
	if !t.account.besideStrangers(now) {
		if lasts < max(worthwhile, leastSharedRun) {
			return true
		}
		if t.run < t.callers {
			longest *= 2
		}
	}
	return t.run <= runLength && lasts < longest
}

// othersListen reports whether others received the message of the last release of this process, as far
// as is known.
func (t *turns) othersListen() bool { return t.others > 0 || t.others == Uncounted && t.contested }

// release records that this process freed the lock, and the number of other processes that were notified.
func (t *turns) release(now time.Time, others int) {
	run, before := min(t.run, runLength), t.others // strangers did not wait for all turns of a longer run
	if others == Unanswered {                      // as many as before, but at least one
		t.contested = true
		if others = before; others == 0 {
			others = 1
		}
	}
	t.run, t.missed, t.others, t.account.freed = 0, 0, others, now
	if others == 0 || others == Uncounted && !t.contested {
		t.account.owed, t.contested, t.alone, t.quiet = 0, false, min(t.alone+1, maxAlone), quiet{}
		return
	}
	t.alone = 0
	t.account.add(run, now)
	if others > before {
		t.expect(others)
	}
	if !now.Before(t.quiet.to) {
		t.stands = backAgain
		t.standBack(now)
	}
}

// expect assumes that every new listener waits, until that proves wrong.
func (t *turns) expect(others int) {
	for i, missed := range t.rounds {
		t.rounds[i] = max(missed, others)
	}
	t.quiet = quiet{}
}

// refuse records the rival that holds the lock.
func (t *turns) refuse(now time.Time, by Rival) {
	t.account.see(now, by)
	if t.behind && by == Fellow && !now.Before(t.backTo) {
		t.trust = min(max(2*t.trust, rankStep), maxTrust)
	}
	t.contested, t.alone, t.behind, t.quiet = true, 0, false, quiet{}
}

// giveAway records that the lock is left free for every client until the next turn of this process.
func (t *turns) giveAway() { t.account.gift = true }

// message records that another process freed the lock.
func (t *turns) message(now time.Time) {
	t.account.released(now)
	t.missed++
	t.contested, t.alone, t.quiet, t.stands = true, 0, quiet{}, notBack
	t.standBack(now)
}

// standBack leaves the lock, which is free now, to others.
func (t *turns) standBack(now time.Time) {
	before := max(t.rivals()-t.missed, 0)
	t.behind = before > 0
	t.backTo = now.Add(t.delay(before, now))
}

// delay returns the time for which a lock that is free now is left to others. before is the number of
// processes before this one.
func (t *turns) delay(before int, now time.Time) time.Duration {
	ranked := time.Duration(before) * rankStep
	switch {
	case !t.account.besideStrangers(now):
		if before > 0 {
			ranked += t.trust
		}
		return ranked
	case t.account.owed == 0:
		return ranked
	case t.account.owed < 0:
		return 0
	default:
		return max(ranked, t.account.patience())
	}
}

// rivals returns the number of other processes that take turns: the most that had one between two of the
// last turns of this process, limited to the number of listeners.
func (t *turns) rivals() int {
	most := max(slices.Max(t.rounds[:]), 1)
	if t.others == Uncounted {
		return most
	}
	return min(most, max(t.others, 1))
}

// wait returns how long the next attempt has to wait, 0 if it need not.
func (t *turns) wait(now time.Time) time.Duration {
	left := t.backTo.Sub(now)
	if left <= 0 {
		return 0
	}
	if t.stands == backAgain {
		t.stands = waitedOut
	}
	return left
}

// account counts the turns that this process and strangers owe each other.
type account struct {
	owed      int           // turns owed to strangers; negative: strangers owe them
	runs      int           // runs of this process beside strangers
	gift      bool          // the lock is left free for a while: a stranger that takes it owes nothing for it
	last      Rival         // the rival that held the lock since the last message
	fellows   time.Time     // when a fellow was seen
	strangers time.Time     // when a stranger was seen
	freed     time.Time     // the last release
	takes     time.Duration // time between the last two releases of others
}

// see records the rival that holds the lock.
func (a *account) see(now time.Time, by Rival) {
	switch by {
	case Fellow:
		a.fellows = now
	case Stranger:
		a.strangers = now
	case Unseen:
	}
	a.last = by
}

// add records a run of this process. Known strangers are owed at least two turns for it.
//
// Each message wakes one of their threads. A thread that is woken when it is the turn of this
// process finds the lock taken and goes to the end of their queue. If both sides had one turn each,
// these would be the same threads again and again: with an even number of threads, half of them
// would never get the lock. So a single turn counts twice. After every extraTurnEvery runs strangers get
// one more, in case another number of threads is in step with that.
func (a *account) add(turns int, now time.Time) {
	if now.Sub(a.strangers) < memory {
		turns = max(turns, 2)
		if a.runs++; a.runs%extraTurnEvery == 0 {
			turns++
		}
	}
	a.owed = min(a.owed+turns, maxOwed)
}

// besideStrangers reports whether there are, or may be, strangers.
func (a *account) besideStrangers(now time.Time) bool {
	return now.Sub(a.strangers) < memory || now.Sub(a.fellows) >= memory
}

// released records a release of another process. It counts as the release of a stranger if there may be
// strangers and no fellow was seen since the release before.
func (a *account) released(now time.Time) {
	if a.last != Fellow && a.besideStrangers(now) {
		least := -maxOwed
		if a.gift {
			least = min(a.owed, 0)
		}
		a.owed = max(a.owed-1, least)
	}
	a.takes = now.Sub(a.freed)
	a.freed, a.last = now, Unseen
}

// patience returns the time for which a free lock is left to strangers.
func (a *account) patience() time.Duration {
	return min(max(a.takes+patienceMargin, minPatience), maxPatience)
}
