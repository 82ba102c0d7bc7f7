package queue

import (
	"slices"
	"time"
)

// RunLimits contains the limits of a run. In a run the lock goes from caller to caller within this process.
// Both limits are longer if Redis is far away.
type RunLimits struct {
	Alone  time.Duration // limit if no other process is known to want the lock
	Shared time.Duration // limit if other processes want the lock; up to twice as long while callers still wait for their turn
}

// These constants limit the length of a run. A run begins when this process acquires the lock from Redis
// and ends with a release. In between, the lock is passed on in memory or handed off by a script. The
// release publishes a message, so that other processes get their turn. From the release to the answer of
// the next attempt, no client holds the lock. That takes two round trips: half of one each for the release,
// the message, the attempt and its answer. This time is called a way here.
//
// If other processes want the lock, a run ends after runLength changes of the holder, or after
// sharedRunTime. If all of them are fellows, two rules make the run longer. The run takes at least
// sharedRunWays ways, so that the lock is idle for at most a quarter of the time. And the run takes up to
// twice sharedRunTime while callers that waited at its beginning still wait for their turn, because they
// would have to wait for the next run. If there are strangers, the run stays short, because strangers do
// not use ranks.
//
// The reply to a release contains the number of other processes that listen. A process that has just
// arrived does not listen yet. So a run ends even if the last release reached no other process. After the
// first such release the limits are twice the shared ones. Each further such release doubles them, up to
// runTime or runWays ways.
//
// A release could grant the lock to a waiter of another process, which would halve the way. It does not,
// because Redis would have to keep a field for each waiter, and a lease until that waiter answers.
// Redisson supports neither.
const (
	runLength     = 16
	sharedRunTime = 5 * time.Millisecond
	sharedRunWays = 3
	runTime       = 10 * sharedRunTime
	runWays       = 10

	// maxUnheard is the number of releases without a listener after which a run has its longest limit. That
	// many doublings of sharedRunTime exceed runTime.
	maxUnheard = 4

	// leastSharedRun is the shortest run among fellows. It applies to processes close to Redis, whose ways
	// depend on the load of their machines more than on the distance.
	leastSharedRun = time.Millisecond

	// longestWay is the upper limit of a way. If an answer takes longer, Redis stalled.
	longestWay = 50 * time.Millisecond
)

const (
	// rankStep is the delay of an attempt for each other process that has waited longer. It exceeds the
	// differences between the distances of the processes from Redis. The distances themselves do not
	// matter, because a message takes as long as the attempt that it causes.
	rankStep = 700 * time.Microsecond

	// maxTrust is the longest delay that a process adds to the delay by its rank; see turns. It is the
	// longest run among fellows, so the run of another fellow usually ends first.
	maxTrust = 2 * sharedRunTime

	// minPatience is the shortest time for which a free lock is left to strangers. It is twice the time that
	// a Redisson thread needs to wake up and take the lock.
	minPatience = 3 * time.Millisecond

	// maxPatience bounds the patience that grows with the hold time of strangers.
	maxPatience = 2 * minPatience

	// patienceMargin is added to the time after which the next message of strangers is expected, so that
	// the patience does not end at exactly that moment.
	patienceMargin = time.Millisecond

	// memory is the time for which a process that was seen counts as present.
	memory = 5 * time.Second

	// debtLifetime is how long this process owes turns to strangers after a stand-back. Later it owes none,
	// because strangers have had their chance to take the lock.
	debtLifetime = time.Second

	// extraTurnEvery is the number of runs after which strangers get one more turn; see account.addRun.
	extraTurnEvery = 4

	// maxOwed limits the turns that this process and strangers owe each other to two runs.
	maxOwed = 2 * runLength

	// maxUnused is the number of unused stand-backs in a row after which this process does not stand back
	// for a while. That time is minQuiet at first and doubles up to maxQuiet.
	maxUnused = 3
	minQuiet  = 10 * time.Millisecond
	maxQuiet  = 10 * minQuiet
)

// These values replace the number of other processes that received the message of a release.
const (
	Uncounted   = -1 // PUBLISH counts only the listeners of one node, in a Cluster with classic pub/sub
	NoMessage   = -2 // the release published no message, as far as is known
	Unpublished = -3 // the release certainly published no message, because other holders remain
	Unanswered  = -4 // the release got no answer; other processes may have received a message
)

// Rival is the class of the other client that holds the lock, according to a refusal.
type Rival uint8

// A Fellow is a client of this library, which uses ranks. A Stranger is any other client. Unseen means that
// no refusal showed the client.
const (
	Unseen Rival = iota
	Fellow
	Stranger
)

// turns decides when this process may take a lock that other processes also want. It observes other
// processes only by their messages, by refusals, and by the number of listeners.
//
// # Fellows: the process that has waited longest goes first
//
// Each process counts the releases of other processes since its last turn (missed). With n rivals, the
// process that has missed n releases is first and attempts at once. Every other process attempts one
// rankStep later for each process before it, and finds the lock taken. If the first process does not
// attempt, the second one gets the lock.
//
// Each time the first process does get the lock, the other processes trust it more. They wait longer the
// next time, until the message of its release comes before their attempt. A process that gets the lock
// out of turn stops trusting the others.
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
// Strangers do not use ranks and need longer to take a free lock. For each turn of a run this process owes
// them one turn. While it owes turns, it leaves the lock free after every message, for as long as strangers
// need to take it. Each message counts as one of their turns. If strangers take more turns than that, they
// owe turns to this process, which then does not stand back.
//
// # Stand-backs that no process uses
//
// Not every process that listens wants the lock. After maxUnused stand-backs in which no process took the
// lock, this process does not stand back for a while, or until another process is seen.
//
// # States
//
//	ranked ── beginRun ──▶ running ── release, no listener ──▶ free (no delay)
//	  ▲                       └────── release, listeners ────▶ stands back
//	  └─────────── message, or the end of the stand-back ──────────┘
//
// In "ranked" the delay of the next attempt follows from a release of another process. In "stands back" it
// follows from a release of this process.
//
// The methods use no clock, no mutex and no I/O. The mutex of the shard guards turns.
type turns struct {
	run     int              // turns of the run under way
	trips   [4]time.Duration // round trips of the last attempts that got the lock; 0: unknown
	callers int              // number of callers that wanted a turn when the run began
	since   time.Time        // when the run began
	missed  int              // number of releases of other processes since then
	rounds  [4]int           // the values of missed at the beginning of the last runs

	listeners int  // other processes that received the message of the last release; Uncounted in some Clusters
	unheard   int  // releases in a row that reached no other process; 0 after another process was seen
	contested bool // another process was seen since the last release without a listener

	backUntil time.Time     // this process leaves the lock to other processes until then
	outranked bool          // the reason is that other processes have waited longer
	trust     time.Duration // delay while outranked, in addition to the delay by rank
	standing  standing
	quiet     quiet

	account account
}

// standing is the state of a stand-back after a release of this process.
type standing int

const (
	noStandBack  standing = iota // this process does not stand back, or another process has released the lock since
	standingBack                 // no caller of this process has waited for the end of the stand-back yet
	waitedOut                    // a caller has waited for the end of the stand-back
)

// quiet is a time without stand-backs.
type quiet struct {
	unused int           // stand-backs in a row in which no process took the lock
	long   time.Duration // length of the last quiet time
	to     time.Time     // end of the quiet time
}

// beginRun records that this process got the lock from Redis. hears means that this process receives the
// messages of other processes.
func (t *turns) beginRun(now time.Time, hears bool) {
	if t.standing == waitedOut && hears && !now.Before(t.backUntil) {
		t.countUnused(now)
	}
	if t.outranked {
		t.trust = 0 // the processes before this one did not take the lock
	}
	if !t.backUntil.IsZero() && now.Sub(t.backUntil) > debtLifetime {
		t.account.owed = 0 // strangers had their chance to take the lock
	}
	copy(t.rounds[1:], t.rounds[:])
	t.rounds[0], t.missed = t.missed, 0
	t.run, t.since = 1, now
	t.backUntil, t.outranked, t.standing = time.Time{}, false, noStandBack
	t.account.lastRival, t.account.gift = Unseen, false
}

// countUnused records a stand-back in which no process took the lock. After maxUnused of them in a row, a
// quiet time begins.
func (t *turns) countUnused(now time.Time) {
	q := &t.quiet
	if q.unused++; q.unused < maxUnused {
		return
	}
	q.long = min(max(2*q.long, minQuiet), maxQuiet)
	q.to = now.Add(q.long)
	t.account.owed = min(t.account.owed, 0)
	if t.listeners == Uncounted {
		t.contested = false
	}
}

// setCallers records the number of callers of this process that want a turn of the run that just began.
func (t *turns) setCallers(callers int) { t.callers = callers }

// recordHandOff records a pass or a hand-off.
func (t *turns) recordHandOff() { t.run++ }

// recordTrip records the round trip of an attempt that got the lock.
func (t *turns) recordTrip(trip time.Duration) {
	copy(t.trips[1:], t.trips[:])
	t.trips[0] = trip
}

// way returns the time between a release and the next grant to another process: two round trips. The
// fastest of the last round trips counts, because something other than the distance delayed the others.
func (t *turns) way() time.Duration { return min(2*slices.Min(t.trips[:]), longestWay) }

// mayHandOff reports whether the run may continue with a pass or a hand-off.
func (t *turns) mayHandOff(now time.Time, limits RunLimits) bool {
	lasts, worthwhile := now.Sub(t.since), sharedRunWays*t.way()
	if t.unheard > 0 {
		return lasts < min(max(limits.Shared, worthwhile)<<t.unheard, max(limits.Alone, runWays*t.way()))
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

// othersListen reports whether other processes received the message of the last release of this process,
// as far as is known.
func (t *turns) othersListen() bool {
	return t.listeners > 0 || t.listeners == Uncounted && t.contested
}

// recordRelease records that this process freed the lock. others is the number of other processes that
// received the message, [Uncounted] or [Unanswered].
func (t *turns) recordRelease(now time.Time, others int) {
	run, before := min(t.run, runLength), t.listeners // strangers did not wait for all turns of a longer run
	if others == Unanswered {                         // as many as before, but at least one
		t.contested = true
		if others = before; others == 0 {
			others = 1
		}
	}
	t.run, t.missed, t.listeners, t.account.lastRelease = 0, 0, others, now
	if others == 0 || others == Uncounted && !t.contested {
		t.account.owed, t.contested, t.unheard, t.quiet = 0, false, min(t.unheard+1, maxUnheard), quiet{}
		return
	}
	t.unheard = 0
	t.account.addRun(run, now)
	if others > before {
		t.expectListeners(others)
	}
	if !now.Before(t.quiet.to) {
		t.standing = standingBack
		t.standBack(now)
	}
}

// expectListeners raises the number of rivals to others, because a process that has begun to listen
// probably waits for the lock. Later runs correct the number.
func (t *turns) expectListeners(others int) {
	for i, missed := range t.rounds {
		t.rounds[i] = max(missed, others)
	}
	t.quiet = quiet{}
}

// recordRefusal records that a client of the class by holds the lock.
func (t *turns) recordRefusal(now time.Time, by Rival) {
	t.account.recordRival(now, by)
	if t.outranked && by == Fellow && !now.Before(t.backUntil) {
		t.trust = min(max(2*t.trust, rankStep), maxTrust)
	}
	t.contested, t.unheard, t.outranked, t.quiet = true, 0, false, quiet{}
}

// recordGift records that this process gives way. Until its next turn, strangers owe nothing for a turn.
func (t *turns) recordGift() { t.account.gift = true }

// recordMessage records that another process freed the lock.
func (t *turns) recordMessage(now time.Time) {
	t.account.recordRelease(now)
	t.missed++
	t.contested, t.unheard, t.quiet, t.standing = true, 0, quiet{}, noStandBack
	t.standBack(now)
}

// standBack leaves the lock, which is free now, to other processes for the time that delay returns.
func (t *turns) standBack(now time.Time) {
	before := max(t.rivals()-t.missed, 0)
	t.outranked = before > 0
	t.backUntil = now.Add(t.delay(before, now))
}

// delay returns the time for which this process leaves a free lock to other processes. before is the
// number of processes that have waited longer.
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

// rivals returns the number of other processes that take turns. It is the largest number of releases that
// this process missed before one of its last runs, limited to the number of listeners.
func (t *turns) rivals() int {
	most := max(slices.Max(t.rounds[:]), 1)
	if t.listeners == Uncounted {
		return most
	}
	return min(most, max(t.listeners, 1))
}

// wait returns how long the next attempt has to wait; 0 if it need not wait.
func (t *turns) wait(now time.Time) time.Duration {
	left := t.backUntil.Sub(now)
	if left <= 0 {
		return 0
	}
	if t.standing == standingBack {
		t.standing = waitedOut
	}
	return left
}

// account counts the turns that this process and strangers owe each other.
type account struct {
	owed         int           // turns owed to strangers; negative: turns that strangers owe
	runs         int           // runs of this process beside strangers
	gift         bool          // this process gives way, so a stranger owes nothing for a turn
	lastRival    Rival         // class of the last client that held the lock since the last message
	fellowSeen   time.Time     // when a fellow was last seen
	strangerSeen time.Time     // when a stranger was last seen
	lastRelease  time.Time     // time of the last release, by this process or another one
	releaseGap   time.Duration // time between the last release of another process and the release before it
}

// recordRival records the class of the client that holds the lock.
func (a *account) recordRival(now time.Time, by Rival) {
	switch by {
	case Fellow:
		a.fellowSeen = now
	case Stranger:
		a.strangerSeen = now
	case Unseen:
	}
	a.lastRival = by
}

// addRun records a run of this process with a number of turns. If strangers were seen, this process owes
// them at least two turns for the run.
//
// The reason is that each message wakes one thread of Redisson. If this process has the next turn, that
// thread finds the lock taken and goes to the end of the queue of threads. If both sides had one turn each,
// the same threads would find the lock taken again and again. With an even number of threads, half of them
// would never get the lock. So a single turn counts twice. After every extraTurnEvery runs this process
// owes one more turn, in case two turns have the same effect with another number of threads.
func (a *account) addRun(turns int, now time.Time) {
	if now.Sub(a.strangerSeen) < memory {
		turns = max(turns, 2)
		if a.runs++; a.runs%extraTurnEvery == 0 {
			turns++
		}
	}
	a.owed = min(a.owed+turns, maxOwed)
}

// besideStrangers reports whether strangers may want the lock: a stranger was seen within memory, or no
// fellow was.
func (a *account) besideStrangers(now time.Time) bool {
	return now.Sub(a.strangerSeen) < memory || now.Sub(a.fellowSeen) >= memory
}

// recordRelease records a release of another process. If strangers may want the lock and no fellow was seen
// since the release before, the release counts as a turn of a stranger.
func (a *account) recordRelease(now time.Time) {
	if a.lastRival != Fellow && a.besideStrangers(now) {
		least := -maxOwed
		if a.gift {
			least = min(a.owed, 0)
		}
		a.owed = max(a.owed-1, least)
	}
	a.releaseGap = now.Sub(a.lastRelease)
	a.lastRelease, a.lastRival = now, Unseen
}

// patience returns the time for which this process leaves a free lock to strangers.
func (a *account) patience() time.Duration {
	return min(max(a.releaseGap+patienceMargin, minPatience), maxPatience)
}
