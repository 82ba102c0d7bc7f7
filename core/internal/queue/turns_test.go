package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// After a run the head leaves the lock to the notified processes, for a moment or until they have released
// it.
func TestTurns_StandBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		notified int
		after    func(b *bench)
		want     time.Duration
	}{
		{"others were notified", 1, nothing, queue.StandBack},
		{"no process was notified", 0, nothing, 0},
		{"a little later", 1, func(b *bench) { b.pass(ms) }, queue.StandBack - ms},
		{"afterwards", 1, func(b *bench) { b.pass(queue.StandBack) }, 0},
		{"others have released it", 1, func(b *bench) { b.RecordMessage("k", b.now) }, 0},
		{"another caller of this process has had it", 1, func(b *bench) { b.RemoveHolder("k", b.holds(), queue.NoMessage, b.now) }, 0},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			w := b.joined()
			b.rests(w)
			b.RemoveHolder("k", h, tt.notified, b.now)
			tt.after(b)
			if tt.want == 0 {
				b.attempts(w)
				return
			}
			if got := b.rests(w); got.Sleep != tt.want || !got.Head {
				t.Errorf("got %+v, want a sleep of %s", got, tt.want)
			}
			b.pass(tt.want)
			b.attempts(w)
		})
	}
}

// A caller that returns at once also leaves the lock to others and listens for their messages.
func TestTurns_StandBack_CallerComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.RemoveHolder("k", b.holds(), 1, b.now)
	b.wantEmpty()
	w := b.joined()
	if got := b.rests(w); got.Sleep != queue.StandBack || !got.Subscribe || !got.Head {
		t.Errorf("got %+v, want a sleep of %s, without a subscription", got, queue.StandBack)
	}
	b.subscribed(w)
	if got := b.rests(w); got.Sleep != queue.StandBack || got.Subscribe {
		t.Errorf("got %+v, want a sleep of %s, with a subscription", got, queue.StandBack)
	}
	b.RecordConfirmation("k", b.now)
	if got := b.rests(w).Sleep; got != queue.StandBack || !woken(w) {
		t.Errorf("got %s, want that a confirmation does not count as a release", got)
	}
	b.RecordMessage("k", b.now)
	b.attempts(w)
}

// The messages for a key without a queue count for the next caller, except the echo of a release of this
// process.
func TestTurns_StandBack_MessageBeforeTheNextCaller(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		messages int
		want     time.Duration
	}{
		{"none", 0, queue.StandBack},
		{"the echo", 1, queue.StandBack},
		{"two messages of other releases", 3, 0}, // this process owes a stranger two turns for one
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined()
			b.refused(w)
			b.subscribed(w)
			h, _ := b.takes(w)
			if !b.Listens("k") {
				t.Error("an ended subscription is not remembered")
			}
			if b.TakeNext("k", h, b.now) != nil {
				t.Error("a waiter was chosen")
			}
			b.RemoveHolder("k", h, 1, b.now)
			b.wantEmpty()
			if !b.Listens("k") {
				t.Error("a subscription is not remembered without a queue")
			}
			for range tt.messages {
				if got := b.RecordMessage("k", b.now); got != nil {
					t.Errorf("got the holders %v", got)
				}
			}
			next := b.joined()
			if tt.want == 0 {
				b.attempts(next)
			} else if got := b.rests(next).Sleep; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Among fellows the process that has waited longest is first. Each of the others attempts one step later for
// every process before it.
func TestTurns_Ranks(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	b.RecordRefusal(w, queue.Refusal{}, queue.Fellow, b.now)
	b.subscribed(w)
	b.RecordMessage("k", b.now)
	b.attempts(w)
	h, _ := b.takes(w)
	next := b.joined()
	b.RemoveHolder("k", h, 3, b.now)
	for before := 3; before > 0; before-- {
		if got := b.rests(next).Sleep; got != time.Duration(before)*queue.RankStep {
			t.Errorf("got %s with %d processes before this one", got, before)
		}
		b.RecordMessage("k", b.now)
	}
	b.attempts(next)
}

// A sharer that joins holders of this process does not take another turn.
func TestTurns_Ranks_SharersJoinATurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	b.RecordRefusal(w, queue.Refusal{}, queue.Fellow, b.now)
	h, _ := b.takes(w)
	b.RemoveHolder("k", h, 3, b.now)
	for range 3 {
		b.RecordMessage("k", b.now)
	}
	all := []*holder{b.holds(sharing), b.holds(sharing), b.holds(sharing), b.holds(sharing), b.holds(sharing)}
	for _, h := range all {
		b.RemoveHolder("k", h, 3, b.now)
	}
	wantSame(t, "rest", b.rests(b.joined()).Sleep, 3*queue.RankStep)
}

// A caller whose deadline is near stands back only as long as enough time for an attempt remains.
func TestTurns_StandBack_KeepsAReserve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left, want time.Duration
	}{
		{ms, ms / 2},
		{2 * ms, ms},
		{3 * ms, 3 * ms / 2},
		{4 * ms, 2 * ms},
		{6 * ms, queue.StandBack},
		{queue.Reserve * 3, queue.StandBack},
	} {
		onBench(t, fmt.Sprint(tt.left), queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			w := b.joined(until(b.now.Add(tt.left)))
			b.rests(w)
			b.RemoveHolder("k", h, 1, b.now)
			wantSame(t, "rest", b.rests(w).Sleep, tt.want)
			b.pass(tt.want)
			b.attempts(w)
		})
	}
}
