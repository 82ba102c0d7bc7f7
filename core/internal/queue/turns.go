package queue

import "time"

const (
	// runLength and runTime bound a run of hand-offs: after so many, or so long, the lock
	// is freed with a message, so that waiters of other processes get their turn.
	runLength = 16
	runTime   = 50 * time.Millisecond

	// standBack is how long the head leaves the lock to other processes after a run,
	// unless it is notified earlier that somebody has released it.
	standBack = 2 * time.Millisecond
)

// turns decide whose turn it is between this process and others.
type turns struct {
	run        int        // hand-offs since the lock was taken from Redis
	runStart   time.Time  // when that was
	backTo     time.Time  // the head stands back until then
	pace       pace       // of the attempts that messages cause
	pacedTo    time.Time  // the head waits until then because of it
	possession possession // how busy this process keeps the lock
}

// acquired notes that an attempt of this process has brought the lock.
func (t *turns) acquired(now time.Time) {
	t.run, t.runStart, t.backTo = 0, now, time.Time{}
	t.pace, t.pacedTo = pace{}, time.Time{}
	t.possession.taken(now)
}

// handedOff notes that the lock has gone from one caller of this process to the next.
func (t *turns) handedOff() { t.run++ }

// released notes that the lock is not held by this process any more. yield says that
// others were notified, and that there are waiters here to stand back.
func (t *turns) released(now time.Time, yield bool) {
	t.pacedTo = time.Time{}
	t.possession.freed(now)
	if yield {
		t.backTo = now.Add(standBack)
	}
}

// contested notes that somebody else has, or had, the lock.
func (t *turns) contested() { t.possession.contested() }

// message notes a message of another process, and reports whether the head should be notified.
// due says that it has been, and has not attempted since: one attempt is enough then, and
// is not put off again.
func (t *turns) message(due bool, now time.Time) (tell bool) {
	t.contested()
	if now.Before(t.pacedTo) {
		return false
	}
	t.backTo = time.Time{}
	if !due {
		t.pacedTo = t.pace.next(now)
	}
	return true
}

// mayHandOff reports whether the lock may go on within this process.
func (t *turns) mayHandOff(key string, runTime time.Duration, now time.Time) bool {
	return t.run < runLength && now.Sub(t.runStart) < runTime && !t.possession.owes(key, now)
}

// waits is for how long the head leaves the lock to others: a release may have woken
// others, messages may come too fast, or the lock has to be left free. free says that no
// holder is of this process, silent that it gets no messages.
func (t *turns) waits(key string, free, silent bool, now time.Time) time.Duration {
	if p := &t.possession; free && (p.again || !silent) && p.owes(key, now) {
		p.give(key, now)
	}
	return max(t.backTo.Sub(now), t.pacedTo.Sub(now), t.possession.until.Sub(now))
}

// kept is what has to be remembered of a key that nobody here needs any more, if anything.
func (t *turns) kept() (turns, bool) {
	return turns{possession: t.possession}, t.possession.busy
}

// stale reports whether what is remembered says nothing any more.
func (t *turns) stale(now time.Time) bool { return now.Sub(t.possession.ended) >= giveWay }
