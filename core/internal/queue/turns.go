package queue

import (
	"slices"
	"time"
)

// RunLimits are the limits of a run, the time in which the lock goes from caller to caller within
// this process.
type RunLimits struct {
	Alone  time.Duration // where no other process is known to want the lock; longer where Redis is far away
	Shared time.Duration // where others want it; up to twice as long while some callers have not had their turn, and longer where Redis is far away
}

// The length of a run. A run lasts from an acquire of this process to the release at its end. In
// between the lock is passed on in memory, or handed off by a script. The release sends a message,
// so that other processes get their turn. The lock then travels for two round trips: half of one
// each for the release, the message, the attempt and its answer. No client holds it in this time,
// which is called a way here.
//
// Beside other processes a run ends after runLength changes of the holder, or after sharedRunTime.
// If all others are fellows, two rules make it longer. It lasts for at least sharedRunWays ways, so
// that the lock is idle for a quarter of the time at most. And it lasts for up to twice
// sharedRunTime while callers that waited at its beginning have not had their turn, because those
// would have to wait for the next run. Strangers know no ranks, and get the lock after a short run.
//
// The reply to a release says how many other processes listen. A process that has just come does
// not listen yet. So a run also ends if the last release has reached no other process: after twice
// the shared limits, and after twice as long for each further such release, up to runTime or
// runWays ways.
//
// A release does not grant the lock to a waiter of another process, although that would halve the
// way: Redis would have to keep a field for each waiter, and a lease until that waiter answers.
// Redisson knows neither.
const (
	runLength     = 16
	sharedRunTime = 5 * time.Millisecond
	sharedRunWays = 3
	runTime       = 10 * sharedRunTime
	runWays       = 10

	// surelyAlone is after how many releases without a listener a run lasts longest: the number of
	// doublings that lead from sharedRunTime past runTime.
	surelyAlone = 4

	// leastSharedRun counts for processes next to Redis. Their ways differ by the load of their
	// machines, and say little.
	leastSharedRun = time.Millisecond

	// longestWay is the longest way that counts. A slower answer comes from a Redis that stood
	// still, not from a distant one.
	longestWay = 50 * time.Millisecond
)

const (
	// rankStep is how much later a process attempts for each other process that has waited longer.
	// It exceeds the differences between the ways of processes to Redis. The ways themselves do not
	// matter: a message takes the same way as the attempt that it causes.
	rankStep = 700 * time.Microsecond

	// maxTrust is the most that a process adds to its rank while the processes before it keep
	// coming. It is the longest run of fellows, so that the end of their run mostly comes first.
	maxTrust = 2 * sharedRunTime

	// minPatience is how long a free lock is left to strangers: twice what a Redisson thread needs
	// to wake up and take it.
	minPatience = 3 * time.Millisecond

	// maxPatience bounds the patience that grows with the hold time of strangers.
	maxPatience = 2 * minPatience

	// farEnough is added to the time after which the next message of strangers is expected, so that
	// the patience does not end at just that moment.
	farEnough = time.Millisecond

	// memory is for how long a process that was seen counts as present.
	memory = 5 * time.Second

	// debtLasts is for how long after a stand-back the remaining turns stay owed to strangers. After
	// that this process has not kept them from taking the lock.
	debtLasts = time.Second

	// outOfStep is after how many runs strangers are left one more turn; see account.add.
	outOfStep = 4

	// maxOwed bounds the turns that this process and strangers owe each other: two runs.
	maxOwed = 2 * runLength

	// unusedBefore is after how many stand-backs that no process used there are none for a while.
	// The while begins with minQuiet, and doubles up to maxQuiet.
	unusedBefore = 3
	minQuiet     = 10 * time.Millisecond
	maxQuiet     = 10 * minQuiet
)

// The values that stand for the number of other listeners of a release where it is not known.
const (
	Uncounted   = -1 // PUBLISH does not count them: in a Cluster with classic pub/sub it knows the listeners of one node
	NoMessage   = -2 // the end sent no message, as far as is known
	Unpublished = -3 // the end certainly sent no message, because other holders remain
	Unanswered  = -4 // the reply of the release was lost; others may listen
)

// Rival says what kind of client of another process holds the lock, as a refusal shows it.
type Rival uint8

// A fellow is a client of this library, which knows ranks. A stranger is any other client.
const (
	Unseen Rival = iota
	Fellow
	Stranger
)

// turns decides when this process may take a lock that other processes want, too. It knows them
// only by their messages, their refusals, and the number that listens.
//
// # Fellows: the process that has waited longest goes first
//
// Each process counts the releases of others since its last turn (missed). With n rivals, the
// process that has missed n is first and attempts at once. Every other process attempts one
// rankStep later for each process before it, and finds the lock taken. If the first process does
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
//	 8.0   A has no caller any more
//	14.3   B takes the lock out of turn    2,  now    runs       0, 15.0
//
// At 6.3 and 7.0 ms no process attempts, because the messages of 4.0 ms have set new times. At
// 14.3 ms B stops trusting: after its next turn it waits two rankSteps and nothing more.
//
// # Strangers: they get as many turns as this process has had
//
// Strangers know no ranks, and need longer to take a free lock. This process owes them one turn for
// each turn of its run. While it owes any, it leaves them the lock after every message, for as long
// as they need to take it. Each message is one of their turns. If they take more than that, they owe
// turns to this process, which then does not stand back.
//
// # Stand-backs that no process uses
//
// A process that listens does not have to wait. After unusedBefore stand-backs without a taker there
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
// It is a value without clock, locks and I/O. Its owner guards it.
type turns struct {
	run     int              // turns of the run under way
	trips   [4]time.Duration // round trips of the last attempts that brought the lock; 0: unknown
	callers int              // how many wanted a turn when the run began
	since   time.Time        // when the run began
	missed  int              // releases of others since then
	rounds  [4]int           // missed before each of the last runs

	others    int  // listeners of the last release of this process; Uncounted in some Clusters
	alone     int  // how many last releases reached no other process, as far as is known; 0 once others are seen
	contested bool // others were seen since the last release without a listener

	backTo time.Time     // the lock is left to others until then
	behind bool          // because other processes are before this one
	trust  time.Duration // how much later it attempts then
	stands standing
	quiet  quiet

	account account
}

// standing is the state of the stand-back after a release of this process.
type standing int

const (
	notBack   standing = iota // there is none, or another process has released the lock since
	backAgain                 // no caller of this process has waited for its end yet
	waitedOut                 // a caller has waited for its end
)

// quiet is a time without stand-backs.
type quiet struct {
	unused int // stand-backs without a taker, in a row
	long   time.Duration
	to     time.Time
}

// begin notes that the lock was taken from Redis. hears says that messages would have arrived
// before.
func (t *turns) begin(now time.Time, hears bool) {
	if t.stands == waitedOut && hears && !now.Before(t.backTo) {
		t.countUnused(now)
	}
	if t.behind {
		t.trust = 0 // the processes before this one have not come
	}
	if !t.backTo.IsZero() && now.Sub(t.backTo) > debtLasts {
		t.account.owed = 0 // this process has not kept them from taking it
	}
	copy(t.rounds[1:], t.rounds[:])
	t.rounds[0], t.missed = t.missed, 0
	t.run, t.since = 1, now
	t.backTo, t.behind, t.stands = time.Time{}, false, notBack
	t.account.last, t.account.gift = Unseen, false
}

// countUnused notes that no process has taken the lock that was left to others.
func (t *turns) countUnused(now time.Time) {
	q := &t.quiet
	if q.unused++; q.unused < unusedBefore {
		return
	}
	q.long = min(max(2*q.long, minQuiet), maxQuiet)
	q.to = now.Add(q.long)
	t.account.owed = min(t.account.owed, 0)
	if t.others == Uncounted {
		t.contested = false
	}
}

// serve notes how many callers of this process want a turn of the run that has begun.
func (t *turns) serve(callers int) { t.callers = callers }

// handOn notes a pass or a hand-off.
func (t *turns) handOn() { t.run++ }

// measure notes the round trip of an attempt that has brought the lock.
func (t *turns) measure(trip time.Duration) {
	copy(t.trips[1:], t.trips[:])
	t.trips[0] = trip
}

// way returns for how long the lock travels to another process: two round trips. The fastest of the
// last ones counts, because a slower one waited for something else than the distance.
func (t *turns) way() time.Duration { return min(2*slices.Min(t.trips[:]), longestWay) }

// mayHandOff reports whether the run may go on with a pass or a hand-off.
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

// othersListen reports whether others have heard the last release of this process, as far as is
// known.
func (t *turns) othersListen() bool { return t.others > 0 || t.others == Uncounted && t.contested }

// release notes that this process has freed the lock, and how many others were notified.
func (t *turns) release(now time.Time, others int) {
	run, before := min(t.run, runLength), t.others // strangers have not waited for all turns of a longer run
	if others == Unanswered {                      // as many as before, and one at least
		t.contested = true
		if others = before; others == 0 {
			others = 1
		}
	}
	t.run, t.missed, t.others, t.account.freed = 0, 0, others, now
	if others == 0 || others == Uncounted && !t.contested {
		t.account.owed, t.contested, t.alone, t.quiet = 0, false, min(t.alone+1, surelyAlone), quiet{}
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

// refuse notes which kind of rival holds the lock.
func (t *turns) refuse(now time.Time, by Rival) {
	t.account.see(now, by)
	if t.behind && by == Fellow && !now.Before(t.backTo) {
		t.trust = min(max(2*t.trust, rankStep), maxTrust)
	}
	t.contested, t.alone, t.behind, t.quiet = true, 0, false, quiet{}
}

// giveAway notes that the lock is left free for every client, up to the next turn of this process.
func (t *turns) giveAway() { t.account.gift = true }

// message notes that another process has freed the lock.
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

// delay returns for how long a lock that is free now is left to others, of which so many are before
// this process.
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

// rivals returns how many others take turns: the most that had one between two of the last turns of
// this process, but not more than listen.
func (t *turns) rivals() int {
	most := max(slices.Max(t.rounds[:]), 1)
	if t.others == Uncounted {
		return most
	}
	return min(most, max(t.others, 1))
}

// wait returns for how long the next attempt has to wait, 0 if it need not.
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
	last      Rival         // held the lock since the last message
	fellows   time.Time     // when a fellow was seen
	strangers time.Time     // when a stranger was seen
	freed     time.Time     // the last release
	takes     time.Duration // from one release to the next release of others, the last time
}

// see notes which kind of rival holds the lock.
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

// add notes a run of this process. Known strangers are owed at least two turns for it.
//
// Each message wakes one thread of theirs. The thread that it wakes when it is the turn of this
// process finds the lock taken, and goes to the end of their queue. If both sides had one turn each,
// these would be the same threads again and again: with an even number of threads, half of them
// would never get the lock. So a single turn is owed twice. After every outOfStep runs they get one
// more, in case another number of threads is in step with that.
func (a *account) add(turns int, now time.Time) {
	if now.Sub(a.strangers) < memory {
		turns = max(turns, 2)
		if a.runs++; a.runs%outOfStep == 0 {
			turns++
		}
	}
	a.owed = min(a.owed+turns, maxOwed)
}

// besideStrangers reports whether there are, or may be, others that know no ranks.
func (a *account) besideStrangers(now time.Time) bool {
	return now.Sub(a.strangers) < memory || now.Sub(a.fellows) >= memory
}

// released notes a release of another process. It counts as a stranger's if there may be any, and
// no fellow was seen since the release before.
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

// patience returns for how long a free lock is left to strangers.
func (a *account) patience() time.Duration {
	return min(max(a.takes+farEnough, minPatience), maxPatience)
}
