package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// game simulates processes that always want the lock. It has a clock.
type game struct {
	now   time.Time
	all   []*turns
	order []int // the process of each turn
}

func newGame(n int) *game {
	g := &game{now: time.Now()}
	for range n {
		t := &turns{}
		t.recordRefusal(g.now, Fellow)
		g.all = append(g.all, t)
	}
	return g
}

// turn lets the process with the shortest wait hold the lock for a while. The latencies to Redis differ by up
// to half a step.
func (g *game) turn(r *rand.Rand, lasts time.Duration) {
	first, at := -1, time.Time{}
	for i, t := range g.all {
		t := g.now.Add(t.wait(g.now) + time.Duration(r.Int64N(int64(rankStep/2))))
		if first < 0 || t.Before(at) {
			first, at = i, t
		}
	}
	g.all[first].beginRun(at, true)
	for i, t := range g.all {
		if i != first && t.wait(at) == 0 {
			t.recordRefusal(at, Fellow)
		}
	}
	g.now = at.Add(lasts)
	g.order = append(g.order, first)
	for i, t := range g.all {
		if i == first {
			t.recordRelease(g.now, len(g.all)-1)
		} else {
			t.recordMessage(g.now)
		}
	}
}

// Whichever process starts, after a few rounds the processes take turns one after the other.
func TestTurns_RoundRobin(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 8; n++ {
		for seed := range uint64(20) {
			r, g := rand.New(rand.NewPCG(seed, uint64(n))), newGame(n)
			for range 30 * n {
				g.turn(r, 4*time.Millisecond)
			}
			for i := 20 * n; i < len(g.order); i++ {
				if g.order[i] != g.order[i-n] {
					t.Fatalf("%d processes, seed %d: %v", n, seed, g.order)
				}
			}
		}
	}
}

func TestTurns_StandsBack(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	const ms = time.Millisecond
	ran := func(t *turns, hands int) {
		t.beginRun(start, true)
		for range hands {
			t.recordHandOff()
		}
	}
	for _, tt := range []struct {
		name string
		play func(t *turns)
		want time.Duration // from start on
	}{
		{"no process listens", func(t *turns) { ran(t, 3); t.recordRelease(start, 0) }, 0},
		{"an unknown number listens, no other was seen", func(t *turns) { ran(t, 3); t.recordRelease(start, Uncounted) }, 0},
		{"the reply of the release was lost, others listened before", func(t *turns) {
			t.recordRefusal(start, Fellow)
			ran(t, 1)
			t.recordRelease(start, 3)
			ran(t, 3)
			t.recordRelease(start, Unanswered)
		}, 3 * rankStep},
		{"the reply of the release was lost, no listener was seen", func(t *turns) { ran(t, 3); t.recordRelease(start, Unanswered) }, minPatience},
		{"a process listens that was never seen", func(t *turns) { ran(t, 3); t.recordRelease(start, 1) }, minPatience},
		{"an unknown number listens, another was seen", func(t *turns) {
			t.recordRefusal(start, Stranger)
			ran(t, 3)
			t.recordRelease(start, Uncounted)
		}, minPatience},
		{"a fellow", func(t *turns) { t.recordRefusal(start, Fellow); ran(t, 3); t.recordRelease(start, 1) }, rankStep},
		{"three fellows", func(t *turns) { t.recordRefusal(start, Fellow); ran(t, 3); t.recordRelease(start, 3) }, 3 * rankStep},
		{"three fellows, one of which has had its turn", func(t *turns) {
			t.recordRefusal(start, Fellow)
			ran(t, 3)
			t.recordRelease(start, 3)
			t.recordMessage(start)
		}, 2 * rankStep},
		{"three fellows, which all have had their turn", func(t *turns) {
			t.recordRefusal(start, Fellow)
			ran(t, 3)
			t.recordRelease(start, 3)
			for range 3 {
				t.recordMessage(start)
			}
		}, 0},
		{"a stranger is owed the turns of a run", func(t *turns) {
			ran(t, 3)
			t.recordRelease(start, 1)
			for range 3 {
				t.recordMessage(start)
			}
		}, minPatience},
		{"a stranger was owed the turns of a run, and has had them", func(t *turns) {
			ran(t, 3)
			t.recordRelease(start, 1)
			for range 4 {
				t.recordMessage(start)
			}
		}, 0},
		{"a stranger has had more than that", func(t *turns) {
			ran(t, 0)
			t.recordRelease(start, 1)
			for range 4 {
				t.recordMessage(start)
			}
			ran(t, 0)
			t.recordRelease(start, 1)
		}, 0},
		{"the message of a stranger is to be expected just then", func(t *turns) {
			ran(t, 3)
			t.recordRelease(at(-3*ms), 1)
			t.recordMessage(start)
		}, 4 * ms},
		{"strangers that hold it for long get more patience", func(t *turns) {
			ran(t, 3)
			t.recordRelease(at(-30*ms), 1)
			t.recordMessage(start)
		}, maxPatience},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var q turns
			tt.play(&q)
			if got := q.wait(start); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if tt.want > 0 && q.wait(at(tt.want)) != 0 {
				t.Error("does not end")
			}
		})
	}
}

// A process expects the processes that have waited longer to take their turns. Each time they do, the
// process attempts later, up to a limit. If they do not, the process attempts as early as at the start.
func TestTurns_Trust(t *testing.T) {
	t.Parallel()
	var q turns
	now := time.Now()
	behind := func() time.Duration {
		q.beginRun(now, true)
		q.recordRelease(now, 1)
		left := q.wait(now)
		now = now.Add(left)
		return left
	}
	q.recordRefusal(now, Fellow)
	for _, more := range []int64{0, 1, 2, 4, 8, 16} {
		if got := behind(); got != rankStep+min(time.Duration(more*int64(rankStep)), maxTrust) {
			t.Errorf("waits %s, want a step and %d more, or %s", got, more, maxTrust)
		}
		q.recordRefusal(now, Fellow)
		q.recordRefusal(now, Fellow) // a poll does not show that others want the lock
	}
	behind()
	if got := behind(); got != rankStep {
		t.Errorf("waits %s after no other process took the lock", got)
	}
	q.recordRefusal(now, Stranger)
	if got := behind(); got > maxPatience {
		t.Errorf("waits %s beside strangers", got)
	}
}

// Turns that strangers take while this process gives way do not count. After its next run this process
// stands back for strangers.
func TestTurns_RecordGift(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{false, true} {
		var q turns
		now := time.Now()
		play := func() {
			q.recordRefusal(now, Stranger)
			q.beginRun(now, true)
			q.recordRelease(now, 1)
		}
		play()
		if given {
			q.recordGift()
		}
		for range 6 {
			q.recordMessage(now)
		}
		play()
		if got, want := q.wait(now) > rankStep, given; got != want {
			t.Errorf("given %v: the process stands back %v", given, got)
		}
	}
}

// Strangers get two turns for a single turn of this process, and one more every few runs. Otherwise messages
// could always wake the same threads while the lock is taken.
func TestTurns_StrangersAreOutOfStep(t *testing.T) {
	t.Parallel()
	for threads := 2; threads <= 12; threads++ {
		var q turns
		now, next, since := time.Now(), 0, make([]int, threads)
		message := func() { next = (next + 1) % threads }
		for turn := 0; turn < 100*threads; {
			q.recordRefusal(now, Stranger)
			q.beginRun(now, true)
			q.recordRelease(now, 1)
			for q.wait(now) > rankStep { // they take it
				now = now.Add(time.Millisecond)
				since[next], turn = turn, turn+1
				message()
				q.recordMessage(now)
			}
			message() // wakes a thread for nothing
			for thread, last := range since {
				if turn-last > 12*threads {
					t.Fatalf("thread %d of %d got no turn while others had %d", thread, threads, turn-last)
				}
			}
			now = now.Add(10 * time.Millisecond)
		}
	}
}

// Stand-backs that no process uses become rare until another process appears.
func TestTurns_UnusedStandBacks(t *testing.T) {
	t.Parallel()
	var q turns
	now, stood := time.Now(), 0
	const rounds = 1000
	round := func() {
		q.beginRun(now, true)
		now = now.Add(time.Millisecond)
		q.recordRelease(now, 1)
		if left := q.wait(now); left > 0 {
			stood, now = stood+1, now.Add(left)
		}
	}
	for range rounds {
		round()
	}
	if stood < 5 || stood > rounds/20 {
		t.Errorf("stood back %d times of %d", stood, rounds)
	}
	q.recordMessage(now)
	if stood = 0; true {
		round()
	}
	if stood != 1 {
		t.Error("does not stand back after a sign of others")
	}
}

func TestTurns_Runs(t *testing.T) {
	t.Parallel()
	limits := RunLimits{Alone: runTime, Shared: sharedRunTime}
	now := time.Now()
	for _, tt := range []struct {
		name   string
		others int
		by     Rival
		due    int
		trip   time.Duration
		hold   time.Duration
		want   int // turns
	}{
		{"alone, short", 0, Unseen, 1, 0, 100 * time.Microsecond, 500},
		{"alone, long", 0, Unseen, 100, 0, 10 * time.Millisecond, 5},
		{"alone, far away", 0, Unseen, 100, 10 * time.Millisecond, 10 * time.Millisecond, 20},
		{"shared, short", 1, Unseen, 1, 0, 100 * time.Microsecond, runLength + 1},
		{"shared, long", 1, Unseen, 1, 0, time.Millisecond, 5},
		{"with strangers, long, many wait", 1, Stranger, 100, 0, time.Millisecond, 5},
		{"with strangers, far away", 1, Stranger, 100, 10 * time.Millisecond, time.Millisecond, 5},
		{"with fellows, short", 1, Fellow, 100, 100 * time.Microsecond, 10 * time.Microsecond, 100},
		{"with fellows, long", 1, Fellow, 1, 0, time.Millisecond, 5},
		{"with fellows, long, some wait", 1, Fellow, 8, 0, time.Millisecond, 8},
		{"with fellows, long, many wait", 1, Fellow, 100, 0, time.Millisecond, 10},
		{"with fellows, far away", 1, Fellow, 1, 5 * time.Millisecond, time.Millisecond, 30},
		{"with fellows, Redis stood still", 1, Fellow, 1, time.Minute, time.Millisecond, 150},
		{"shared, very long", 1, Unseen, 1, 0, 10 * time.Millisecond, 1},
	} {
		var q turns
		for range q.trips {
			q.recordTrip(tt.trip)
		}
		q.recordTrip(time.Second) // a slow turn
		for range maxUnheard {
			q.recordRelease(now, tt.others)
		}
		if tt.by != Unseen {
			q.recordRefusal(now, tt.by)
		}
		q.beginRun(now, true)
		q.setCallers(tt.due)
		at, turns := now.Add(tt.hold), 1
		for q.mayHandOff(at, limits) {
			q.recordHandOff()
			at, turns = at.Add(tt.hold), turns+1
		}
		if turns != tt.want {
			t.Errorf("%s: %d turns, want %d", tt.name, turns, tt.want)
		}
	}
}

// sums computes the counts that turns keeps, in a simple way.
type sums struct {
	missed, run, owed int
	runs              int
	others            int
	last              Rival
	seenFellow        time.Time
	seenStranger      time.Time
}

func (m *sums) strangers(now time.Time) bool {
	return now.Sub(m.seenStranger) < memory || now.Sub(m.seenFellow) >= memory
}

// owes returns the number of turns that a run adds.
func (m *sums) owes(now time.Time) int {
	run := min(m.run, runLength)
	if now.Sub(m.seenStranger) >= memory {
		return run
	}
	m.runs++
	if m.runs%extraTurnEvery == 0 {
		return max(run, 2) + 1
	}
	return max(run, 2)
}

// After random events the counts are equal to the counts of the model, and the process leaves the lock to others
// only for a bounded time.
func TestTurns_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		var q turns
		var m sums
		now := time.Now()
		for step := range 400 {
			now = now.Add(time.Duration(r.Int64N(int64(2 * time.Millisecond))))
			switch r.IntN(6) {
			case 0:
				q.beginRun(now, false)
				m.missed, m.run, m.last = 0, 1, Unseen
			case 1:
				q.recordHandOff()
				m.run++
			case 2:
				others := 1 + r.IntN(4)
				q.recordRelease(now, others)
				m.owed, m.run, m.missed, m.others = min(m.owed+m.owes(now), maxOwed), 0, 0, others
			case 3, 4:
				q.recordMessage(now)
				if m.last != Fellow && m.strangers(now) {
					m.owed = max(m.owed-1, -maxOwed)
				}
				m.missed, m.last = m.missed+1, Unseen
				if m.missed >= 4 && m.owed <= 0 && q.wait(now) > 0 {
					t.Fatalf("seed %d, step %d: the first process waits %s", seed, step, q.wait(now))
				}
			default:
				by := Fellow
				if r.IntN(2) == 0 {
					by = Stranger
					m.seenStranger = now
				} else {
					m.seenFellow = now
				}
				q.recordRefusal(now, by)
				m.last = by
			}
			if q.missed != m.missed || q.run != m.run || q.account.owed != m.owed {
				t.Fatalf("seed %d, step %d: missed %d, run %d, owed %d, want %+v", seed, step, q.missed, q.run, q.account.owed, m)
			}
			if most := max(maxPatience, time.Duration(m.others)*rankStep+maxTrust); q.wait(now) > most {
				t.Fatalf("seed %d, step %d: waits %s", seed, step, q.wait(now))
			}
		}
	}
}

// The example in the comment of turns: three fellows, one of which has no more callers.
func TestTurns_Example(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(tenths int) time.Time { return start.Add(time.Duration(tenths) * time.Millisecond / 10) }
	process := func(missed int) *turns {
		p := &turns{missed: missed, rounds: [4]int{2, 2, 2, 2}, listeners: 2, contested: true, trust: 8 * rankStep}
		p.account.fellowSeen = start
		return p
	}
	a, b, c := process(0), process(1), process(0)
	want := func(when int, ends ...int) {
		t.Helper()
		for i, p := range []*turns{a, b, c} {
			if ends[i] >= 0 && !at(when).Add(p.wait(at(when))).Equal(at(ends[i])) {
				t.Errorf("at %d: process %d waits %s, want until %d", when, i, p.wait(at(when)), ends[i])
			}
		}
	}
	frees := func(when int, from *turns) {
		for _, p := range []*turns{a, b, c} {
			if p == from {
				p.recordRelease(at(when), 2)
			} else {
				p.recordMessage(at(when))
			}
		}
	}
	a.beginRun(at(-40), true)
	frees(0, a)
	want(0, 70, 0, 63)
	b.beginRun(at(0), true)
	frees(40, b)
	want(40, 103, 110, 40)
	c.beginRun(at(40), true)
	frees(80, c)
	want(80, 80, 143, 150)
	b.beginRun(at(143), true)
	if b.trust != 0 {
		t.Errorf("B trusts the others for %s although they did not take the lock", b.trust)
	}
	b.recordRelease(at(183), 2)
	want(183, -1, 183+14, -1)
}
