package redisstore

import (
	"sync/atomic"
	"testing"
	"time"
)

// What is measured decides how long a call is no slow one, when a pipeline hangs, and
// whether a lone caller reads itself.
func TestFlow_FollowsTheRoundTrip(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		trip, patient, hanging time.Duration
		near                   bool
	}{
		{0, patience, mostPatience, true},
		{100 * time.Microsecond, patience, mostPatience, true},
		{4 * time.Millisecond, 16 * time.Millisecond, mostPatience, true},
		{10 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond, false},
		{900 * time.Millisecond, mostPatience, 7200 * time.Millisecond, false},
	} {
		f := flow{trip: new(atomic.Int64)}
		f.trip.Store(int64(tt.trip))
		if f.patient() != tt.patient || f.hanging() != tt.hanging || f.near() != tt.near {
			t.Errorf("round trip %s: patient %s, hanging %s, near %t; want %s, %s, %t",
				tt.trip, f.patient(), f.hanging(), f.near(), tt.patient, tt.hanging, tt.near)
		}
	}
}

// The round trip is smoothed, and a reply ends a hang.
func TestFlow_Heard(t *testing.T) {
	t.Parallel()
	f := flow{trip: new(atomic.Int64)}
	now := time.Now()
	f.heard(now, now.Add(-8*time.Millisecond), 1)
	if got := time.Duration(f.trip.Load()); got != 8*time.Millisecond {
		t.Errorf("first: got %s", got)
	}
	f.hangs.Store(true)
	f.slow = 3
	f.heard(now, now, 2)
	if got := time.Duration(f.trip.Load()); got != 7*time.Millisecond || f.hangs.Load() || f.slow != 1 {
		t.Errorf("second: got %s, hangs %t, %d slow", got, f.hangs.Load(), f.slow)
	}
}

// Time in which nobody looked is no quiet.
func TestFlow_StoppedIsNotQuiet(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := flow{quiet: now}
	for range 4 {
		now = now.Add(patience)
		f.awake(now)
	}
	now = now.Add(time.Hour)
	f.awake(now)
	if got, want := now.Sub(f.quiet), 6*patience; got != want {
		t.Errorf("quiet for %s, want %s", got, want)
	}
}

// The queue keeps its order while it grows and goes round.
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
			t.Fatalf("the %d-th is another one", i)
		}
	}
}
