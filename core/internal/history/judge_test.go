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
	Backend: time.Second, Poll: time.Second, Slack: 10 * ms, Recovery: 2 * time.Second,
	Landing: 10 * time.Second, Residue: time.Second, Empty: time.Minute,
}

// hold is an acquisition of "k" with a fixed lease of one second, that took a
// millisecond, and a release at once when it was last found alive.
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

// refused is an acquisition of "k" that failed.
func refused(begin, end time.Duration, wait time.Duration, outcome history.Outcome) history.Event {
	return history.Event{
		Kind: history.Acquire, Process: 2, Goroutine: 1, Keys: []string{"k"}, Owner: "refused",
		Begin: begin, End: end, Outcome: outcome, Ask: &history.Ask{Wait: wait, Lease: time.Second},
	}
}

func force(begin, end time.Duration, outcome history.Outcome) history.Event {
	return history.Event{Kind: history.Force, Process: 2, Keys: []string{"k"}, Begin: begin, End: end, Outcome: outcome}
}

func broken(begin, end time.Duration) history.Event {
	return history.Event{Kind: history.Fault, Begin: begin, End: end}
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

// changed is an event after a change.
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
		Outcome: history.OK, Fields: fields, Count: count,
	}
}

// ended says that processes 1 and 2 did not die.
var ended = []history.Event{{Kind: history.Finish, Process: 1}, {Kind: history.Finish, Process: 2}}

func TestJudge(t *testing.T) {
	t.Parallel()
	lost := func(e *history.Event) { e.Hold.Ended, e.Hold.Cause = e.Hold.Alive+2*ms, history.Lost }
	for _, tc := range []struct {
		name   string
		want   string // a rule; empty: nothing
		events []history.Event
	}{
		{"one after the other", "", []history.Event{hold("a", 0, 50*ms), hold("b", 49*ms, 80*ms)}},
		{"two holders", history.TwoHolders, []history.Event{hold("a", 0, 50*ms), hold("b", 48*ms, 80*ms)}},
		{"a long hold around short ones", history.TwoHolders, []history.Event{hold("a", 0, 500*ms), hold("b", 600*ms, 700*ms), hold("c", 400*ms, 410*ms)}},
		{"re-entry is the same holder", "", []history.Event{
			hold("a", 0, 50*ms), changed(hold("a", 10*ms, 40*ms), func(e *history.Event) {
				e.Ask.Reentry = true
				e.Hold.Release.Outcome = history.Unavailable
			}),
		}},
		{"forced away", "", []history.Event{hold("a", 0, 50*ms), force(20*ms, 21*ms, history.OK), hold("b", 22*ms, 80*ms)}},
		{"forced away before the grant was known", "", []history.Event{
			force(ms, 2*ms, history.OK), changed(hold("a", 0, 50*ms), func(e *history.Event) { e.End = 10 * ms }), hold("b", 22*ms, 80*ms),
		}},
		{"forced away later", history.TwoHolders, []history.Event{hold("a", 0, 50*ms), hold("b", 22*ms, 80*ms), force(30*ms, 31*ms, history.OK)}},
		{"force without an answer lands late", "", []history.Event{force(0, ms, history.Unavailable), hold("a", 200*ms, 950*ms), hold("b", 300*ms, 980*ms)}},
		{"believed in long after the force", history.Forced, []history.Event{
			changed(hold("a", 0, 3*time.Second), func(e *history.Event) { e.Ask.Renewed = true }), force(100*ms, 101*ms, history.OK),
		}},

		{"updates in order", "", []history.Event{updated(hold("a", 0, 10*ms), 0, true), updated(hold("b", 10*ms, 20*ms), 1, true)}},
		{"lost update", history.LostUpdate, []history.Event{updated(hold("a", 0, 10*ms), 7, true), updated(hold("b", 10*ms, 20*ms), 7, true)}},
		{"update of a holder that had ended", "", []history.Event{updated(hold("a", 0, 10*ms), 7, false), updated(hold("b", 10*ms, 20*ms), 7, true)}},

		{"redis knows the holder", "", []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 1})}},
		{"redis knows another one", history.NotInRedis, []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"x": 1})}},
		{"redis has another count", history.NotInRedis, []history.Event{hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 2})}},
		{"an older count came late", "", []history.Event{broken(0, 5*ms), hold("a", 0, 50*ms), look("a", 10*ms, 1, map[string]int{"field of a": 2})}},
		{"asked when it was over", "", []history.Event{hold("a", 0, 50*ms), look("a", 50*ms, 1, nil)}},

		{"believed in beyond the lease", history.Overrun, []history.Event{changed(hold("a", 0, 1002*ms), lost)}},
		{"lost at the end of the lease", "", []history.Event{changed(hold("a", 0, 990*ms), func(e *history.Event) {
			lost(e)
			e.Hold.Release.Outcome = history.Lost
		})}},
		{"lost without cause", history.EarlyLoss, []history.Event{changed(hold("a", 0, 100*ms), lost)}},
		{"lost by force", "", []history.Event{changed(hold("a", 0, 100*ms), lost), force(50*ms, 60*ms, history.OK)}},
		{"release of a live hold said lost", history.ReleaseLost, []history.Event{
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
		{"release behind one of the same owner", "", []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) {
				e.Hold.Release.End, e.Hold.Release.Outcome = 1100*ms, history.Unavailable
			}),
			changed(hold("a", 10*ms, 200*ms), func(e *history.Event) { e.Ask.Reentry, e.Hold.Release.End = true, 1500*ms }),
		}},
		{"second release", history.Undocumented, []history.Event{
			changed(hold("a", 0, 100*ms), func(e *history.Event) { e.Hold.Release.Twice = history.OK }),
		}},
		{"own lock said busy", history.NotEntered, []history.Event{hold("a", 0, 100*ms), again("a", 50*ms, history.Busy)}},
		{"re-entry after the end", "", []history.Event{hold("a", 0, 50*ms), again("a", 50*ms, history.Lost)}},

		{"wait", "", []history.Event{hold("a", 0, 500*ms), refused(0, 109*ms, 100*ms, history.Busy)}},
		{"wait too long", history.SlowWait, []history.Event{hold("a", 0, 500*ms), refused(0, 111*ms, 100*ms, history.Busy)}},
		{"wait of a machine that stood still", "", []history.Event{hold("a", 0, 500*ms), refused(0, 131*ms, 100*ms, history.Busy), stall(2, 50*ms, 60*ms)}},
		{"another process stood still", history.SlowWait, []history.Event{hold("a", 0, 500*ms), refused(0, 131*ms, 100*ms, history.Busy), stall(1, 50*ms, 60*ms)}},
		{"late cancel", history.SlowWait, []history.Event{
			hold("a", 0, 500*ms), changed(refused(0, 111*ms, history.NoWaitTime, history.Canceled), func(e *history.Event) { e.Ask.Cut = 100 * ms }),
		}},
		{"granted after the cancel", history.LateGrant, []history.Event{changed(hold("a", 100*ms, 150*ms), func(e *history.Event) { e.Ask.Cut = 90 * ms })}},
		{"undocumented error", history.Undocumented, []history.Event{refused(0, ms, time.Second, history.Other)}},

		{"free lock said busy", history.BusyButFree, []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+ms, 0, history.Busy)}},
		{"busy after a fault", "", []history.Event{hold("a", 0, 100*ms), refused(3*time.Second, 3*time.Second+ms, 0, history.Busy), broken(0, 2*time.Second)}},
		{"unavailable without cause", history.NotReachable, []history.Event{refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable)}},
		{"unavailable after a fault", "", []history.Event{broken(time.Second, 2*time.Second), refused(3*time.Second, 4*time.Second, time.Second, history.Unavailable)}},
		{"failing fast after the machine stood still", "", []history.Event{stall(2, 2*time.Second, 2400*ms), refused(3*time.Second, 3*time.Second+ms, time.Second, history.Unavailable)}},
		{"no time for an answer", "", []history.Event{refused(3*time.Second, 3*time.Second+5*ms, 5*ms, history.Unavailable)}},
		{"free beside a waiter", history.LostWakeup, []history.Event{hold("a", 0, 100*ms), hold("b", 5*time.Second, 5010*ms), refused(50*ms, 1150*ms, 1100*ms, history.Busy)}},
		{"taken beside a waiter", "", []history.Event{hold("a", 0, 900*ms), refused(50*ms, 1150*ms, 1100*ms, history.Busy)}},

		{"key without TTL", history.NoTTL, []history.Event{sample(0, -1, "x")}},
		{"key of a holder", "", []history.Event{hold("a", 0, 100*ms), sample(100*ms, ms, "field of a")}},
		{"key of a holder that has released", history.Leftover, []history.Event{hold("a", 0, 100*ms), sample(200*ms, ms, "field of a")}},
		{"key of an outer hold under another field", "", []history.Event{
			changed(hold("a", 0, 300*ms), func(e *history.Event) { e.Keys = []string{"j", "k"} }), sample(200*ms, ms, "of k"),
			changed(hold("a", 10*ms, 100*ms), func(e *history.Event) { e.Ask.Reentry, e.Hold.Field = true, "of k" }),
		}},
		{"key at the end", history.Leftover, []history.Event{sample(61*time.Second, ms, "x")}},
		{"unclean end", history.UncleanEnd, []history.Event{{Kind: history.Finish, Process: 3, Note: "goroutines"}}},
	} {
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
