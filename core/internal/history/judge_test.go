package history_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/history"
)

const ms = time.Millisecond

var limits = history.Limits{
	Backend: time.Second, Slow: 4 * time.Second, Poll: time.Second, Slack: 10 * ms, Recovery: 2 * time.Second,
	Landing: 10 * time.Second, Residue: time.Second, Empty: time.Minute,
	Permits: map[string]int{"p": 2},
	Turn:    5 * ms,
}

// hold returns an acquisition of "k" that took a millisecond, with a fixed lease of one second. The release
// begins when the holder last finds the hold alive.
func hold(owner string, begin, alive time.Duration) history.Event {
	return history.Event{
		Kind: history.Acquire, Process: 1, Goroutine: 1, Keys: []string{"k"}, Owner: owner,
		Begin: begin, End: begin + ms, Outcome: history.Acquired,
		Ask: &history.Ask{Wait: time.Second, Lease: time.Second},
		Hold: &history.Hold{
			Field: "field of " + owner, Alive: alive, Safe: begin + 990*ms,
			Release: history.Release{Begin: alive, End: alive + ms, Outcome: history.OK},
		},
	}
}

// refused returns a failed acquisition of "k".
func refused(begin, end time.Duration, wait time.Duration, outcome history.Outcome) history.Event {
	return history.Event{
		Kind: history.Acquire, Process: 2, Goroutine: 1, Keys: []string{"k"}, Owner: "refused",
		Begin: begin, End: end, Outcome: outcome, Ask: &history.Ask{Wait: wait, Lease: time.Second},
	}
}

func leased(d time.Duration, e history.Event) history.Event {
	e.Ask.Lease = d
	return e
}

// atMost gives a hold a limit.
func atMost(d time.Duration, e history.Event) history.Event {
	e.Ask.MaxHold = d
	return e
}

func force(begin, end time.Duration, outcome history.Outcome) history.Event {
	return history.Event{Kind: history.Force, Process: 2, Keys: []string{"k"}, Begin: begin, End: end, Outcome: outcome}
}

func broken(begin, end time.Duration) history.Event {
	return history.Event{Kind: history.Fault, Begin: begin, End: end}
}

// late returns a fault that delays the answers to process 1.
func late(begin, end time.Duration) history.Event {
	return history.Event{Kind: history.Fault, Process: 1, Begin: begin, End: end, Slow: true}
}

func stall(process int, begin, end time.Duration) history.Event {
	return history.Event{Kind: history.Stall, Process: process, Begin: begin, End: end}
}

func sample(at, ttl time.Duration, fields ...string) history.Event {
	e := history.Event{Kind: history.Sample, Keys: []string{"k"}, Begin: at, End: at + ms, TTL: ttl, Fields: make(map[string]int)}
	for _, field := range fields {
		e.Fields[field] = 1
	}
	return e
}

// changed returns an event after a change.
func changed(e history.Event, change func(e *history.Event)) history.Event {
	change(&e)
	return e
}

func again(owner string, begin time.Duration, outcome history.Outcome) history.Event {
	e := refused(begin, begin+ms, time.Second, outcome)
	e.Owner, e.Ask.Reentry = owner, true
	return e
}

func updated(e history.Event, read uint64, certain bool) history.Event {
	e.Hold.Updates = append(e.Hold.Updates, history.Update{Key: "k", At: e.Hold.Alive, Read: read, Wrote: uint64(e.Begin), Certain: certain})
	return e
}

func look(owner string, at time.Duration, count int, fields map[string]int) history.Event {
	return history.Event{
		Kind: history.Look, Process: 1, Keys: []string{"k"}, Owner: owner, Begin: at, End: at + ms,
		Outcome: history.OK, Fields: fields, Count: count, Field: "field of " + owner,
	}
}

// follows turns a hold into a later hold of the run that "a" began.
func follows(e history.Event) history.Event {
	e.Hold.Field = "field of a"
	return e
}

// of turns an event into an event of another kind of lock.
func of(lock history.Lock, e history.Event) history.Event {
	e.Lock = lock
	return e
}

// written turns a hold into the hold of a writer.
func written(e history.Event) history.Event {
	e = of(history.WriteLock, e)
	e.Hold.Field += ":write"
	return e
}

func token(e history.Event, n int64) history.Event {
	e.Lock, e.Hold.Token = history.Fenced, n
	return e
}

// permit turns an event into an event of the semaphore of two permits.
func permit(e history.Event) history.Event {
	e.Lock, e.Keys = history.Permit, []string{"p"}
	return e
}

func reading(e history.Event, first, last uint64, certain bool) history.Event {
	e.Hold.Reads = []history.Reading{{Key: "k", At: e.Hold.Alive, First: first, Last: last, Certain: certain}}
	return of(history.ReadLock, e)
}

// count returns a sample of the semaphore's available permits.
func count(at time.Duration, free int) history.Event {
	return history.Event{Kind: history.Sample, Keys: []string{"p"}, Begin: at, End: at + ms, TTL: -1, Stays: true, Count: free}
}

// ended reports that processes 1 and 2 ended cleanly.
var ended = []history.Event{{Kind: history.Finish, Process: 1}, {Kind: history.Finish, Process: 2}}

// judgment is a history with the rule that it breaks.
type judgment struct {
	name   string
	want   string // the rule that must be broken; empty: none
	events []history.Event
}

func (tc judgment) run(t *testing.T) {
	t.Helper()
	t.Run(tc.name, func(t *testing.T) {
		t.Parallel()
		events := append(slices.Clone(tc.events), ended...)
		var got []string
		for _, v := range history.Judge(limits, events) {
			got = append(got, v.Rule)
		}
		if tc.want == "" && len(got) > 0 || tc.want != "" && !slices.Equal(got, []string{tc.want}) {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	lost := func(e *history.Event) { e.Hold.Ended, e.Hold.Cause = e.Hold.Alive+2*ms, history.Lost }
	briefly := func(e *history.Event) { e.Ask.Lease = 20 * ms }
	for _, tc := range []judgment{
		{"one after the other", "", []history.Event{hold("a", 0, 50*ms), hold("b", 49*ms, 80*ms)}},
		{"two holders", history.TwoHolders, []history.Event{hold("a", 0, 50*ms), hold("b", 48*ms, 80*ms)}},
		{"short hold during a long one", history.TwoHolders, []history.Event{hold("a", 0, 500*ms), hold("b", 600*ms, 700*ms), hold("c", 400*ms, 410*ms)}},
		{"re-entry is the same holder", "", []history.Event{
			hold("a", 0, 50*ms), changed(hold("a", 10*ms, 40*ms), func(e *history.Event) {
				e.Ask.Reentry = true
				e.Hold.Release.Outcome = history.Unavailable
			}),
		}},
		{"force release between two holds", "", []history.Event{hold("a", 0, 50*ms), force(20*ms, 21*ms, history.OK), hold("b", 22*ms, 80*ms)}},
		{"force release before the grant was known", "", []history.Event{
			force(ms, 2*ms, history.OK), changed(hold("a", 0, 50*ms), func(e *history.Event) { e.End = 10 * ms }), hold("b", 22*ms, 80*ms),
		}},
		{"force release after the second grant", history.TwoHolders, []history.Event{hold("a", 0, 50*ms), hold("b", 22*ms, 80*ms), force(30*ms, 31*ms, history.OK)}},
		{"force release without an answer is executed late", "", []history.Event{force(0, ms, history.Unavailable), hold("a", 200*ms, 950*ms), hold("b", 300*ms, 980*ms)}},
		{"holder relies on its lock long after the force release", history.Forced, []history.Event{
			changed(hold("a", 0, 3*time.Second), func(e *history.Event) { e.Ask.Renewed = true }), force(100*ms, 101*ms, history.OK),
		}},

		{"run", "", []history.Event{hold("a", 0, 50*ms), follows(hold("b", 49*ms, 80*ms)), follows(hold("c", 80*ms, 900*ms))}},
		{"two holders of a run", history.TwoHolders, []history.Event{hold("a", 0, 50*ms), follows(hold("b", 48*ms, 80*ms))}},
		{"run of two processes", history.TwoProcesses, []history.Event{
			hold("a", 0, 50*ms), changed(follows(hold("b", 50*ms, 80*ms)), func(e *history.Event) { e.Process = 2 }),
		}},
		{"run until the end of the reserve", "", []history.Event{hold("a", 0, 500*ms), follows(hold("b", 500*ms, 1101*ms))}},
		{"run beyond its lease", history.RunOverrun, []history.Event{hold("a", 0, 500*ms), follows(hold("b", 500*ms, 1102*ms))}},
		{"run beyond twice a short lease", history.RunOverrun, []history.Event{
			changed(hold("a", 0, 10*ms), briefly), changed(follows(hold("b", 11*ms, 24*ms)), briefly),
			changed(follows(hold("c", 25*ms, 42*ms)), briefly),
		}},
		{"run whose lease was renewed", "", []history.Event{
			changed(hold("a", 0, 500*ms), func(e *history.Event) { e.Ask.Renewed = true }), follows(hold("b", 500*ms, 1450*ms)),
		}},
		{"run whose lease was refreshed", "", []history.Event{
			changed(hold("a", 0, 500*ms), func(e *history.Event) { e.Hold.Refreshed = true }), follows(hold("b", 500*ms, 1450*ms)),
		}},
		{"run with a re-entry", "", []history.Event{
			hold("a", 0, 500*ms), again("a", 100*ms, history.Unavailable), broken(50*ms, 200*ms), follows(hold("b", 500*ms, 1450*ms)),
		}},
		{"redis still has the count of an earlier holder of the run", history.NotInRedis, []history.Event{
			hold("a", 0, 50*ms), changed(hold("a", 10*ms, 40*ms), func(e *history.Event) { e.Ask.Reentry = true }),
			follows(hold("b", 50*ms, 80*ms)),
			changed(look("b", 60*ms, 1, map[string]int{"field of a": 2}), func(e *history.Event) { e.Field = "field of a" }),
		}},
		{"force release of an earlier holder of the run", "", []history.Event{
			hold("a", 0, 50*ms), force(20*ms, 21*ms, history.OK), changed(follows(hold("b", 49*ms, 80*ms)), lost), hold("c", 22*ms, 60*ms),
		}},
		{"force release before the run began", history.TwoHolders, []history.Event{
			force(0, ms, history.OK), hold("a", 10*ms, 50*ms), follows(hold("b", 49*ms, 80*ms)), hold("c", 60*ms, 90*ms),
		}},
		{"holder of a run relies on its lock long after the force release", history.Forced, []history.Event{
			changed(hold("a", 0, 200*ms), func(e *history.Event) { e.Ask.Renewed = true }), force(100*ms, 101*ms, history.OK),
			changed(follows(hold("b", 200*ms, 3*time.Second)), func(e *history.Event) { e.Ask.Renewed = true }),
		}},
		{"field of an ended run remains", history.Leftover, []history.Event{
			hold("a", 0, 50*ms), follows(hold("b", 50*ms, 80*ms)), sample(200*ms, ms, "field of a"),
		}},
		{"field that passed to a caller that got another one", history.Leftover, []history.Event{
			hold("a", 0, 50*ms), broken(0, 10*ms), changed(hold("b", 40*ms, 400*ms), func(e *history.Event) { e.End = 300 * ms }), sample(200*ms, ms, "field of a"),
		}},
		{"field that passed to a caller that waits for another key", "", []history.Event{
			hold("a", 0, 50*ms), broken(0, 10*ms), changed(hold("b", 40*ms, 400*ms), func(e *history.Event) { e.Keys, e.End = []string{"l", "k"}, 300*ms }),
			sample(200*ms, ms, "field of a"), sample(350*ms, ms, "field of a"),
		}},
		{"field that passed to a caller of two keys, which has released them", history.Leftover, []history.Event{
			hold("a", 0, 50*ms), broken(0, 10*ms), changed(hold("b", 40*ms, 400*ms), func(e *history.Event) { e.Keys, e.End = []string{"l", "k"}, 300*ms }),
			sample(450*ms, ms, "field of a"),
		}},

		{"updates in order", "", []history.Event{updated(hold("a", 0, 10*ms), 0, true), updated(hold("b", 10*ms, 20*ms), 1, true)}},
		{"lost update", history.LostUpdate, []history.Event{updated(hold("a", 0, 10*ms), 7, true), updated(hold("b", 10*ms, 20*ms), 7, true)}},
		{"update of a holder that had ended", "", []history.Event{updated(hold("a", 0, 10*ms), 7, false), updated(hold("b", 10*ms, 20*ms), 7, true)}},

		{"redis has the holder", "", []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 1})}},
		{"redis has another holder", history.NotInRedis, []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"x": 1})}},
		{"redis has another count", history.NotInRedis, []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 2})}},
		{"an older count arrives late", "", []history.Event{broken(0, 5*ms), hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 2})}},
		{"redis was asked after the hold had ended", "", []history.Event{hold("a", 0, 50*ms), look("a", 50*ms, 1, nil)}},

		{"holder relies on its lock beyond the lease", history.Overrun, []history.Event{changed(hold("a", 0, 1002*ms), lost)}},
		{"lost at the end of the lease", "", []history.Event{changed(hold("a", 0, 990*ms), func(e *history.Event) {
			lost(e)
			e.Hold.Release.Outcome = history.Lost
		})}},
		{"lost without cause", history.EarlyLoss, []history.Event{changed(hold("a", 0, 100*ms), lost)}},
		{"lost by force", "", []history.Event{changed(hold("a", 0, 100*ms), lost), force(50*ms, 60*ms, history.OK)}},
		{"release of a live hold reported as lost", history.ReleaseLost, []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.Outcome = history.Lost }),
		}},
		{"release that came too late", "", []history.Event{
			changed(hold("a", 0, 900*ms), func(e *history.Event) {
				e.Hold.Release.Outcome, e.Hold.Release.End = history.Lost, 1100*ms
			}),
		}},
		{"slow release", history.SlowRelease, []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.End = 1200 * ms }),
		}},
		{"release of a process whose answers are late", "", []history.Event{
			late(50*ms, 300*ms), changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.End = 1300 * ms }),
		}},
		{"release slower than the answers", history.SlowRelease, []history.Event{
			late(50*ms, 300*ms), changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.End = 1311 * ms }),
		}},
		{"release that waits for late answers for too long", history.SlowRelease, []history.Event{
			late(50*ms, 10*time.Second), changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.End = 4111 * ms }),
		}},
		{"release that waits for another release of the same owner", "", []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) {
				e.Hold.Release.End, e.Hold.Release.Outcome = 1100*ms, history.Unavailable
			}),
			changed(hold("a", 10*ms, 200*ms), func(e *history.Event) { e.Ask.Reentry, e.Hold.Release.End = true, 1500*ms }),
		}},
		{"second release", history.Undocumented, []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.Twice = history.OK }),
		}},
		{"re-entry reported as busy", history.NotEntered, []history.Event{hold("a", 0, 100*ms), again("a", 50*ms, history.Busy)}},
		{"re-entry after the end", "", []history.Event{hold("a", 0, 50*ms), again("a", 50*ms, history.Lost)}},

		{"wait", "", []history.Event{hold("a", 0, 500*ms), refused(0, 109*ms, 100*ms, history.Busy)}},
		{"wait too long", history.SlowWait, []history.Event{hold("a", 0, 500*ms), refused(0, 111*ms, 100*ms, history.Busy)}},
		{"wait while the answers are late", history.SlowWait, []history.Event{
			hold("a", 0, 500*ms), changed(refused(0, 111*ms, 100*ms, history.Busy), func(e *history.Event) { e.Process = 1 }), late(0, 200*ms),
		}},
		{"one attempt while the answers are late", "", []history.Event{
			late(0, 2*time.Second), changed(refused(0, 2500*ms, 0, history.Unavailable), func(e *history.Event) { e.Process = 1 }),
		}},
		{"one attempt while the answers to another process are late", history.SlowWait, []history.Event{
			late(0, 2*time.Second), refused(0, 2500*ms, 0, history.Unavailable),
		}},
		{"wait during a stall of the process", "", []history.Event{hold("a", 0, 500*ms), refused(0, 131*ms, 100*ms, history.Busy), stall(2, 50*ms, 60*ms)}},
		{"wait during a stall of another process", history.SlowWait, []history.Event{hold("a", 0, 500*ms), refused(0, 131*ms, 100*ms, history.Busy), stall(1, 50*ms, 60*ms)}},
		{"late cancel", history.SlowWait, []history.Event{
			hold("a", 0, 500*ms), changed(refused(0, 111*ms, history.NoWaitTime, history.Canceled), func(e *history.Event) { e.Ask.Cut = 100 * ms }),
		}},
		{"granted after the cancel", history.LateGrant, []history.Event{changed(hold("a", 100*ms, 150*ms), func(e *history.Event) { e.Ask.Cut = 90 * ms })}},
		{"held beyond its limit", history.HeldTooLong, []history.Event{atMost(200*ms, hold("a", 0, 212*ms))}},
		{"held until its limit", "", []history.Event{atMost(200*ms, hold("a", 0, 211*ms))}},
		{"held beyond its limit, in a stall", "", []history.Event{atMost(200*ms, hold("a", 0, 220*ms)), stall(1, 195*ms, 205*ms)}},
		{"held beyond a limit that a refresh ended", "", []history.Event{changed(atMost(200*ms, hold("a", 0, 300*ms)), func(e *history.Event) { e.Hold.Refreshed = true })}},
		{"ended by its limit", "", []history.Event{changed(atMost(200*ms, hold("a", 0, 199*ms)), func(e *history.Event) { e.Hold.Ended, e.Hold.Cause, e.Hold.Safe = 200*ms, history.Lost, 900*ms })}},
		{"ended before its limit", history.EarlyLoss, []history.Event{changed(atMost(200*ms, hold("a", 0, 198*ms)), func(e *history.Event) { e.Hold.Ended, e.Hold.Cause, e.Hold.Safe = 199*ms, history.Lost, 900*ms })}},
		{"undocumented error", history.Undocumented, []history.Event{refused(0, ms, time.Second, history.Other)}},

		{"free lock reported as busy", history.BusyButFree, []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+ms, 0, history.Busy)}},
		{"busy after a fault", "", []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+ms, 0, history.Busy), broken(0, 2*time.Second)}},
		{"free lock reported as busy, after a wait", history.BusyButFree, []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+8*ms, 8*ms, history.Busy)}},
		{"busy before its turn may have come", "", []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+2*ms, 2*ms, history.Busy)}},
		{"unavailable without cause", history.NotReachable, []history.Event{refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable)}},
		{"unavailable, with a lease that ends before an answer may come", "", []history.Event{leased(5*ms, refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable))}},
		{"unavailable, with a short lease", history.NotReachable, []history.Event{leased(20*ms, refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable))}},
		{"unavailable, with a short lease and a stall", "", []history.Event{stall(2, 3500*ms, 3510*ms), leased(20*ms, refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable))}},
		{"unavailable after a fault", "", []history.Event{broken(time.Second, 2*time.Second), refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable)}},
		{"failing fast after a stall", "", []history.Event{stall(2, 2*time.Second, 2400*ms), refused(3*time.Second, 3*time.Second+ms, time.Second, history.Unavailable)}},
		{"no time for an answer", "", []history.Event{refused(3*time.Second, 3*time.Second+5*ms, 5*ms, history.Unavailable)}},
		{"free lock with a waiter", history.LostWakeup, []history.Event{hold("a", 0, 100*ms), hold("b", 5*time.Second, 5010*ms), refused(50*ms, 1150*ms, 1100*ms, history.Busy)}},
		{"held lock with a waiter", "", []history.Event{hold("a", 0, 900*ms), refused(50*ms, 1150*ms, 1100*ms, history.Busy)}},

		{"key without TTL", history.NoTTL, []history.Event{sample(0, -1, "x")}},
		{"key of a holder", "", []history.Event{hold("a", 0, 100*ms), sample(100*ms, ms, "field of a")}},
		{"key of a holder that has released", history.Leftover, []history.Event{hold("a", 0, 100*ms), sample(200*ms, ms, "field of a")}},
		{"key of an outer hold under another field", "", []history.Event{
			changed(hold("a", 0, 300*ms), func(e *history.Event) { e.Keys = []string{"j", "k"} }), sample(200*ms, ms, "of k"),
			changed(hold("a", 10*ms, 100*ms), func(e *history.Event) { e.Ask.Reentry, e.Hold.Field = true, "of k" }),
		}},
		{"key remains at the end", history.Leftover, []history.Event{sample(61*time.Second, ms, "x")}},
		{"unclean end", history.UncleanEnd, []history.Event{{Kind: history.Finish, Process: 3, Note: "goroutines"}}},
	} {
		tc.run(t)
	}
}

// TestJudge_Kinds checks the rules in which the kinds of lock differ.
func TestJudge_Kinds(t *testing.T) {
	t.Parallel()
	read := func(owner string, begin, alive time.Duration) history.Event {
		return of(history.ReadLock, hold(owner, begin, alive))
	}
	write := func(owner string, begin, alive time.Duration) history.Event {
		return written(hold(owner, begin, alive))
	}
	permitted := func(owner string, begin, alive time.Duration) history.Event { return permit(hold(owner, begin, alive)) }
	asWriter := func(e *history.Event) { e.Field += ":write" }
	under := func(e *history.Event) { e.Ask.Reentry = true }
	wantsRead := of(history.ReadLock, refused(3*time.Second, 3*time.Second+ms, 0, history.Busy))
	wantsWrite := of(history.WriteLock, refused(3*time.Second, 3*time.Second+ms, 0, history.Busy))
	for _, tc := range []judgment{
		{"two holders of a fair lock", history.TwoHolders, []history.Event{of(history.Fair, hold("a", 0, 50*ms)), of(history.Fair, hold("b", 48*ms, 80*ms))}},
		{"two holders of a spin lock", history.TwoHolders, []history.Event{of(history.Spin, hold("a", 0, 50*ms)), of(history.Spin, hold("b", 48*ms, 80*ms))}},
		{"two holders of a fenced lock", history.TwoHolders, []history.Event{token(hold("a", 0, 50*ms), 1), token(hold("b", 48*ms, 80*ms), 2)}},

		{"reader during a read", "", []history.Event{read("a", 0, 50*ms), read("b", 10*ms, 80*ms)}},
		{"writer during a read", history.TwoHolders, []history.Event{read("a", 0, 50*ms), write("b", 10*ms, 80*ms)}},
		{"reader during a write", history.TwoHolders, []history.Event{write("a", 0, 50*ms), read("b", 10*ms, 80*ms)}},
		{"writer during a write", history.TwoHolders, []history.Event{write("a", 0, 50*ms), write("b", 10*ms, 80*ms)}},
		{"reader inside a write", "", []history.Event{write("a", 0, 50*ms), changed(read("a", 10*ms, 80*ms), under), read("b", 55*ms, 90*ms)}},
		{"writer during a read that was inside another write", history.TwoHolders, []history.Event{
			write("a", 0, 50*ms), changed(read("a", 10*ms, 80*ms), under), write("b", 55*ms, 90*ms),
		}},
		{"read inside a write whose lease expires during the acquisition", "", []history.Event{
			changed(write("a", 0, 2*time.Second), func(e *history.Event) { e.Hold.Safe = 5 * time.Second }),
			changed(read("a", 10*ms, 950*ms), func(e *history.Event) {
				under(e)
				e.Hold.Ended, e.Hold.Cause = time.Second, history.Lost
				e.Hold.Release = history.Release{Begin: time.Second, End: time.Second, Outcome: history.Lost}
			}),
			changed(of(history.ReadLock, again("a", 960*ms, history.Lost)), func(e *history.Event) { e.End = time.Second }),
		}},
		{"read twice", "", []history.Event{reading(hold("a", 0, 50*ms), 3, 3, true)}},
		{"write during a read", history.DirtyRead, []history.Event{
			reading(hold("a", 0, 50*ms), 3, uint64(60*ms), true), updated(write("b", 60*ms, 80*ms), 3, true),
		}},
		{"write during a read by a writer that lost its lock to a force release", "", []history.Event{
			updated(write("b", 60*ms, 80*ms), 3, true), of(history.WriteLock, force(65*ms, 66*ms, history.OK)),
			reading(hold("a", 67*ms, 90*ms), 3, uint64(60*ms), true),
		}},
		{"write during a read by a writer whose hold had ended", "", []history.Event{
			updated(write("b", 60*ms, 80*ms), 3, false), reading(hold("a", 80*ms, 90*ms), 3, uint64(60*ms), true),
		}},
		{"write after the read hold had ended", "", []history.Event{reading(hold("a", 0, 50*ms), 3, uint64(60*ms), false), updated(write("b", 60*ms, 80*ms), 3, true)}},
		{"redis also has other readers", "", []history.Event{read("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 1, "x": 1})}},
		{"redis has a writer in addition to the reader", history.NotInRedis, []history.Event{
			read("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 1, "x:write": 1}),
		}},
		{"redis has a reader in addition to the writer", history.NotInRedis, []history.Event{
			write("a", 0, 50*ms), changed(look("a", 10*ms, 1, map[string]int{"field of a:write": 1, "x": 1}), asWriter),
		}},
		{"redis has another count of the reader inside a write", history.NotInRedis, []history.Event{
			write("a", 0, 80*ms), changed(read("a", 10*ms, 50*ms), under), look("a", 20*ms, 1, map[string]int{"field of a:write": 1, "field of a": 2}),
		}},
		{"redis has another count of the writer", "", []history.Event{
			write("a", 0, 80*ms), changed(read("a", 10*ms, 50*ms), under), look("a", 20*ms, 1, map[string]int{"field of a:write": 2, "field of a": 1}),
		}},
		{"writer refused because of a reader", "", []history.Event{read("a", 2500*ms, 3300*ms), wantsWrite}},
		{"reader refused because of a reader", history.BusyButFree, []history.Event{read("a", 2500*ms, 3300*ms), wantsRead}},
		{"reader refused because of a waiting writer", "", []history.Event{
			read("a", 2500*ms, 3300*ms), of(history.WriteLock, refused(2600*ms, 3100*ms, 500*ms, history.Busy)), wantsRead,
		}},
		{"reader refused because of the mark of a writer that gave up", "", []history.Event{
			read("a", 2*time.Second, 2900*ms), of(history.WriteLock, refused(2200*ms, 2300*ms, 100*ms, history.Busy)), wantsRead,
		}},
		{"reader refused because of an old mark", history.BusyButFree, []history.Event{
			read("a", ms, 900*ms), of(history.WriteLock, refused(10*ms, 110*ms, 100*ms, history.Busy)), wantsRead,
		}},
		{"readers wait while readers hold the lock", history.LostWakeup, []history.Event{
			read("a", 0, 900*ms), read("c", 850*ms, 1800*ms), of(history.WriteLock, refused(0, ms, 0, history.Busy)),
			of(history.ReadLock, refused(50*ms, 2150*ms, 2100*ms, history.Busy)),
		}},

		{"force release of readers", "", []history.Event{
			read("a", 0, 50*ms), of(history.ReadLock, force(20*ms, 21*ms, history.OK)), write("b", 22*ms, 80*ms),
		}},
		{"force release of readers while a writer holds the lock", history.TwoHolders, []history.Event{
			write("a", 0, 50*ms), of(history.ReadLock, force(20*ms, 21*ms, history.OK)), read("b", 22*ms, 80*ms),
		}},
		{"force release of the writer while readers hold the lock", history.TwoHolders, []history.Event{
			read("a", 0, 50*ms), of(history.WriteLock, force(20*ms, 21*ms, history.OK)), write("b", 22*ms, 80*ms),
		}},
		{"force release of permits", "", []history.Event{
			permitted("a", 0, 50*ms), permitted("b", 10*ms, 80*ms), permit(force(15*ms, 16*ms, history.OK)), permitted("c", 20*ms, 80*ms),
		}},
		{"as many holders as permits", "", []history.Event{permitted("a", 0, 50*ms), permitted("b", 10*ms, 80*ms), permitted("c", 51*ms, 80*ms)}},
		{"more holders than permits", history.TooManyHolders, []history.Event{permitted("a", 0, 50*ms), permitted("b", 10*ms, 80*ms), permitted("c", 20*ms, 80*ms)}},
		{"redis has more holders than permits", history.NotInRedis, []history.Event{
			permitted("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 1, "x": 1, "y": 1}),
		}},
		{"busy although no permit is free", "", []history.Event{
			permitted("a", 2500*ms, 3300*ms), permitted("b", 2500*ms, 3300*ms), permit(refused(3*time.Second, 3*time.Second+ms, 0, history.Busy)),
		}},
		{"busy although a permit is free", history.BusyButFree, []history.Event{
			permitted("a", 2500*ms, 3300*ms), permit(refused(3*time.Second, 3*time.Second+ms, 0, history.Busy)),
		}},
		{"free permit with a waiter", history.LostWakeup, []history.Event{
			permitted("a", 0, 900*ms), permitted("b", 850*ms, 1800*ms), permitted("c", 0, 100*ms), permit(refused(50*ms, 1950*ms, 1900*ms, history.Busy)),
		}},
		{"no free permit with a waiter", "", []history.Event{
			permitted("a", 0, 900*ms), permitted("c", 0, 900*ms), permit(refused(50*ms, 1850*ms, 1800*ms, history.Busy)),
		}},

		{"tokens rise", "", []history.Event{token(hold("a", 0, 50*ms), 1), token(hold("b", 49*ms, 80*ms), 2)}},
		{"token falls", history.TokenOrder, []history.Event{token(hold("a", 0, 50*ms), 2), token(hold("b", 50*ms, 80*ms), 1)}},
		{"token stays", history.TokenOrder, []history.Event{token(hold("a", 0, 50*ms), 2), token(hold("b", 50*ms, 80*ms), 2)}},
		{"re-entry with the same token", "", []history.Event{token(hold("a", 0, 50*ms), 2), changed(token(hold("a", 10*ms, 40*ms), 2), under)}},
		{"re-entry with another token", history.TokenOrder, []history.Event{token(hold("a", 0, 50*ms), 2), changed(token(hold("a", 10*ms, 40*ms), 3), under)}},

		{"permits back", "", []history.Event{count(61*time.Second, 2)}},
		{"permits out before the end", "", []history.Event{count(59*time.Second, 1)}},
		{"permit not back", history.LostPermit, []history.Event{count(61*time.Second, 1)}},
		{"permit too many", history.LostPermit, []history.Event{count(61*time.Second, 3)}},
		{"counter of tokens at the end", "", []history.Event{changed(sample(61*time.Second, -1), func(e *history.Event) { e.Stays = true })}},
		{"permit that is out at the end", history.Leftover, []history.Event{changed(sample(61*time.Second, -1, "x"), func(e *history.Event) { e.Stays = true })}},
	} {
		tc.run(t)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	events := []history.Event{
		hold("before", 0, 10*ms), hold("a", 20*ms, 50*ms), broken(25*ms, 30*ms), hold("b", 40*ms, 80*ms),
		changed(hold("elsewhere", 40*ms, 60*ms), func(e *history.Event) { e.Keys = []string{"other"} }),
	}
	found := history.Judge(limits, events)
	if len(found) != 1 {
		t.Fatalf("got %d violations, want 1", len(found))
	}
	window := history.Window(events, found[0])
	for _, want := range []string{"two holders: k was held by a and by b", "*     0.020000s  p1.g1   a asks for k", "b releases: ok"} {
		if !strings.Contains(window, want) {
			t.Errorf("the window has no %q:\n%s", want, window)
		}
	}
	for _, other := range []string{"before", "elsewhere"} {
		if strings.Contains(window, other) {
			t.Errorf("the window has %q, which has nothing to do with it:\n%s", other, window)
		}
	}
}

func TestLog_LastLineCutOff(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	log := history.NewLog(&file)
	log.Note(hold("a", 0, 10*ms))
	log.Note(hold("b", 10*ms, 20*ms))
	file.Truncate(file.Len() - 5)
	events, err := history.Read(&file)
	if err != nil || len(events) != 1 || events[0].Owner != "a" || events[0].Hold.Alive != 10*ms {
		t.Errorf("got %v, %v, want the first event", events, err)
	}
}
