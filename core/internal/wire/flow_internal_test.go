package wire

import (
	"sync/atomic"
	"testing"
	"time"
)

// The measured round trip decides when a call is slow, when a pipeline hangs, and whether a lone
// caller reads its reply.
func TestFlow_FollowsTheRoundTrip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		trip, patient, hanging time.Duration
		near                   bool
	}{
		{0, moment, longestMoment, true},
		{100 * time.Microsecond, moment, longestMoment, true},
		{4 * time.Millisecond, 16 * time.Millisecond, longestMoment, true},
		{10 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, false},
		{900 * time.Millisecond, longestMoment, 7200 * time.Millisecond, false},
	} {
		f := flow{trip: new(atomic.Int64)}
		f.trip.Store(int64(tt.trip))
		if f.slowAfter() != tt.patient || f.hangsAfter() != tt.hanging || f.near() != tt.near {
			t.Errorf("round trip %s: patient %s, hanging %s, near %t; want %s, %s, %t",
				tt.trip, f.slowAfter(), f.hangsAfter(), f.near(), tt.patient, tt.hanging, tt.near)
		}
	}
}

// The round trip is smoothed, and a reply ends a hang.
func TestFlow_Hear(t *testing.T) {
	t.Parallel()
	f := flow{trip: new(atomic.Int64)}
	now := time.Now()
	f.sample = sample{since: now.Add(-8 * time.Millisecond), ahead: 1}
	f.hear(now, 1)
	if got := time.Duration(f.trip.Load()); got != 8*time.Millisecond {
		t.Errorf("first: got %s", got)
	}
	f.quiet, f.slow = now.Add(-time.Second), 3
	f.sample = sample{since: now, ahead: 2}
	f.hear(now, 2)
	if got := time.Duration(f.trip.Load()); got != 7*time.Millisecond || now.Sub(f.quiet) >= f.hangsAfter() || f.slow != 1 {
		t.Errorf("second: got %s, quiet for %s, %d slow", got, now.Sub(f.quiet), f.slow)
	}
}

// The round trip of one command at a time is measured, from its write to the connection until its reply.
func TestFlow_Sample(t *testing.T) {
	t.Parallel()
	f := flow{trip: new(atomic.Int64)}
	f.enter(1)
	f.enter(2) // not measured, because the first one is
	start := f.sample.since
	f.hear(start.Add(2*time.Millisecond), 2)
	f.hear(start.Add(time.Hour), 1) // not a sample
	if got := time.Duration(f.trip.Load()); got != 2*time.Millisecond {
		t.Errorf("the first: got %s", got)
	}
	f.enter(5)
	start = f.sample.since
	f.hear(start.Add(time.Millisecond), 4)
	if got := time.Duration(f.trip.Load()); got != 2*time.Millisecond {
		t.Errorf("before its reply: got %s", got)
	}
	f.hear(start.Add(10*time.Millisecond), 1)
	if got := time.Duration(f.trip.Load()); got != 3*time.Millisecond {
		t.Errorf("the second: got %s", got)
	}
}

// A single hang hardly changes the time after which a pipeline counts as hanging. A distant Redis changes it
// soon.
func TestFlow_Measure_Hang(t *testing.T) {
	t.Parallel()
	f := flow{trip: new(atomic.Int64)}
	f.measure(time.Hour)
	if got := f.hangsAfter(); got != longestMoment {
		t.Errorf("after one hang: a pipeline hangs after %s", got)
	}
	f.trip.Store(int64(time.Millisecond))
	f.measure(time.Hour)
	if got := f.hangsAfter(); got > 2*longestMoment {
		t.Errorf("after another one: a pipeline hangs after %s", got)
	}
	for range 20 {
		f.measure(900 * time.Millisecond)
	}
	if got := f.hangsAfter(); got < time.Second {
		t.Errorf("with a distant Redis: a pipeline hangs after %s", got)
	}
}

// Time in which the process did not run does not count as quiet.
func TestFlow_SubtractStall(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := flow{quiet: now}
	for range 4 {
		now = now.Add(moment)
		f.subtractStall(now)
	}
	now = now.Add(time.Hour)
	f.subtractStall(now)
	if got, want := now.Sub(f.quiet), 6*moment; got != want {
		t.Errorf("quiet for %s, want %s", got, want)
	}
}

// The queue keeps its order while it grows and wraps around.
func TestQueue_Order(t *testing.T) {
	t.Parallel()
	var q queue
	var in, out []*command
	for round := range 200 {
		for range round%7 + 1 {
			c := &command{}
			in = append(in, c)
			q.push(c)
		}
		out = q.pop(out, min(round%5, q.len()))
	}
	out = q.pop(out, q.len())
	if len(in) != len(out) || q.len() != 0 {
		t.Fatalf("%d in, %d out, %d left", len(in), len(out), q.len())
	}
	for i := range in {
		if in[i] != out[i] {
			t.Fatalf("element %d is another one", i)
		}
	}
}
