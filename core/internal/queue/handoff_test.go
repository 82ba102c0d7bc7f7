package queue_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// TakeNext returns the waiter to hand the lock to, or nil if the lock has to be freed.
func TestQueues_TakeNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(b *bench, h *holder)
		want   int // index of the chosen waiter in the order, -1: none
	}{
		{"no caller waits", func(*bench, *holder) {}, -1},
		{"one caller waits", func(b *bench, _ *holder) { b.joined() }, 0},
		{"the first", func(b *bench, _ *holder) { b.joined(); b.joined() }, 0},
		{"of another holder", func(b *bench, h *holder) {
			b.joined()
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
			b.holds()
		}, -1},
		{"after its end", func(b *bench, h *holder) {
			b.joined()
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
		}, -1},
		{"after its end, with no queue", func(b *bench, h *holder) { b.RemoveHolder("k", h, queue.NoMessage, b.now) }, -1},
		{"the first wants several keys", func(b *bench, _ *holder) { b.joined(several); b.joined() }, -1},
		{"the second wants several keys", func(b *bench, _ *holder) { b.joined(); b.joined(several) }, 0},
		{"the first has moved here", func(b *bench, _ *holder) { b.moved(); b.joined() }, 1},
		{"two have moved here", func(b *bench, _ *holder) { b.moved(); b.moved(); b.joined() }, 2},
		{"only a waiter that has moved here", func(b *bench, _ *holder) { b.moved() }, -1},
		{"a moved waiter, and then one for several keys", func(b *bench, _ *holder) { b.moved(); b.joined(several); b.joined() }, -1},
		{"the first shares", func(b *bench, _ *holder) { b.joined(shared); b.joined() }, -1},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			tt.before(b, h)
			order := b.Order("k")
			var want *queue.Waiter
			if tt.want >= 0 {
				want = order[tt.want]
			}
			wantSame(t, "chosen", b.TakeNext("k", h, b.now), want)
			if chosen := want != nil; chosen && len(b.Order("k")) != len(order)-1 {
				t.Error("the chosen waiter is still in the queue")
			}
		})
	}
}

// moved returns a waiter for several keys that moved to "k" from another key.
func (b *bench) moved() *queue.Waiter {
	b.t.Helper()
	w := b.waiter(several)
	if err := b.Join("elsewhere", w, b.now); err != nil {
		b.t.Fatal(err)
	}
	b.attempts(w)
	if err := b.Move(w, "k", b.now); err != nil {
		b.t.Fatal(err)
	}
	return w
}

// A run ends after some time or, if other processes listen, after a number of hand-offs. A new run begins
// when this process takes the lock from Redis again.
func TestQueues_TakeNext_RunsAreBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		cfg    queue.Config
		turn   time.Duration
		others int
		want   int // hand-offs
	}{
		{"by count", queue.Config{}, 0, 1, queue.RunLength},
		{"by time, of many", queue.Config{}, ms, 0, 49},
		{"by time", queue.Config{}, 20 * ms, 0, 2},
		{"by a configured time", queue.Config{Run: queue.RunLimits{Alone: 90 * ms, Shared: 10 * ms}}, 20 * ms, 0, 4},
	} {
		onBench(t, tt.name, tt.cfg, func(t *testing.T, b *bench) {
			h := b.holds()
			for range 150 {
				b.joined()
			}
			for range 4 {
				b.RemoveHolder("k", h, tt.others, b.now)
				b.pass(10 * ms)
				w := b.Order("k")[0]
				b.attempts(w)
				h, _ = b.takes(w)
			}
			for range 2 {
				got := 0
				for {
					b.pass(tt.turn)
					w := b.TakeNext("k", h, b.now)
					if w == nil {
						break
					}
					next := &holder{field: "next"}
					b.CompleteHandOff(w, h, next, b.now)
					b.granted(w, next)
					h = next
					got++
				}
				if got != tt.want {
					t.Errorf("got %d hand-offs, want %d", got, tt.want)
				}
				b.RemoveHolder("k", h, queue.NoMessage, b.now)
				w := b.Order("k")[0]
				b.attempts(w)
				h, _ = b.takes(w)
			}
		})
	}
}

// A failed hand-off returns the chosen waiter to the head of the queue, where it attempts.
func TestQueues_CancelHandOff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		left  bool // the chosen waiter leaves before the hand-off fails
		ended bool // the release ends the holder too
	}{
		{"and the holder ends", false, true},
		{"and the holder goes on", false, false},
		{"to a waiter that has left", true, true},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			first, second := b.joined(), b.joined()
			b.rests(first)
			b.rests(second)
			if got := b.chosen(h); got != first {
				t.Fatal("the first waiter was not chosen")
			}
			b.rests(first)
			b.rests(second)
			want := []*queue.Waiter{first, second}
			if tt.left {
				b.Leave(first, b.now)
				want = want[1:]
			}
			b.CancelHandOff(first, b.now)
			if tt.ended {
				b.RemoveHolder("k", h, queue.NoMessage, b.now)
			}
			b.wantOrder("k", want...)
			if !woken(want[0]) {
				t.Error("the head was not woken")
			}
			b.attempts(want[0])
		})
	}
}

// A queue is removed when its only waiter has left and the hand-off to that waiter has failed.
func TestQueues_CancelHandOff_LastWaiterHasLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	b.Leave(w, b.now)
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	if b.Live() != 1 {
		t.Error("the queue was removed during a hand-off")
	}
	b.CancelHandOff(w, b.now)
	b.wantEmpty()
}

// A chosen waiter that leaves does not get the lock. The releasing caller passes the lock on.
func TestQueues_CompleteHandOff_ChosenHasLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	first, second := b.joined(), b.joined()
	b.chosen(h)
	if grant := b.Leave(first, b.now); grant != nil {
		t.Errorf("got the grant %v", grant)
	}
	next := &holder{field: "next"}
	if b.CompleteHandOff(first, h, next, b.now) {
		t.Error("a waiter that has left got the lock")
	}
	b.rests(second)
	if _, w := b.hands(next); w != second {
		t.Error("the second waiter did not get the lock")
	}
}

// A grant may arrive after another caller has taken the lock. The waiter still gets the grant, but the queue
// keeps the holder that Redis named last.
func TestQueues_CompleteHandOff_Late(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	other, replaced := b.takes(nil)
	if len(replaced) != 1 || replaced[0].Holder != queue.Holder(h) {
		t.Errorf("got %v replaced, want the earlier holder", replaced)
	}
	late := &holder{field: "late"}
	if !b.CompleteHandOff(w, h, late, b.now) {
		t.Error("the waiter had left")
	}
	b.granted(w, late)
	if got := b.Holders("k"); len(got) != 1 || got[0] != queue.Holder(other) {
		t.Errorf("got the holders %v", got)
	}
	b.frees(other)
	b.RemoveHolder("k", late, queue.NoMessage, b.now) // without effect
	b.wantEmpty()
}

// The lease of a holder expires while the holder hands the lock off. The queue registers the next holder.
func TestQueues_CompleteHandOff_AfterTheEndOfTheHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	next := &holder{field: "next"}
	b.CompleteHandOff(w, h, next, b.now)
	if got := b.Holders("k"); len(got) != 1 || got[0] != queue.Holder(next) {
		t.Errorf("got the holders %v", got)
	}
	b.granted(w, next)
}

// A hand-off may be so slow that the next one begins before the first one ends. The queue completes both and
// keeps its other waiters.
func TestQueues_CancelHandOff_BesideAnotherHandOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	slow := b.holds()
	first, second := b.joined(), b.joined()
	b.chosen(slow)
	h := b.holds() // the lease of the first has ended
	next, w := b.hands(h)
	if w != second {
		t.Fatal("the second waiter was not chosen")
	}
	b.frees(next)
	third := b.joined()
	b.CancelHandOff(first, b.now)
	b.wantOrder("k", first, third)
	b.attempts(first)
	got, _ := b.takes(first)
	b.RemoveHolder("k", got, queue.NoMessage, b.now)
	b.attempts(third)
	b.Leave(third, b.now)
	b.wantEmpty()
}

// After a pass the next waiter has the same holder in Redis.
func TestQueues_CompletePass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		left bool // the chosen waiter leaves before the pass
		lost bool // the holder is lost before the pass
	}{
		{"and both are there", false, false},
		{"to a waiter that has left", true, false},
		{"by a holder that is lost", false, true},
		{"by a holder that is lost, to a waiter that has left", true, true},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			first, second := b.joined(), b.joined()
			b.rests(first)
			b.rests(second)
			if b.chosen(h) != first {
				t.Fatal("the first waiter was not chosen")
			}
			if tt.left {
				b.Leave(first, b.now)
			}
			if tt.lost {
				b.RemoveHolder("k", h, queue.NoMessage, b.now)
			}
			if got := b.CompletePass(first, h, b.now); got != (!tt.left && !tt.lost) {
				t.Errorf("passed: %v", got)
			}
			switch {
			case tt.lost && tt.left:
				b.attempts(second)
			case tt.lost:
				b.attempts(first)
			case tt.left:
				if b.chosen(h) != second {
					t.Error("the next waiter is not chosen")
				}
			default:
				b.granted(first, h)
				b.rests(second)
			}
		})
	}
}

// A new holder whose command was sent after a run began replaces the holder of the run, even if the last
// caller of the run got the lock later. The replaced holder is Gone.
func TestQueues_CompletePass_ReplacedLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h, w := b.holds(), b.joined()
	b.rests(w)
	b.chosen(h)
	b.pass(2 * ms)
	b.CompletePass(w, h, b.now)
	b.granted(w, h)
	_, replaced := b.takes(nil, sent(b.now.Add(-ms)))
	if len(replaced) != 1 || replaced[0].Holder != h || !replaced[0].Gone {
		t.Errorf("replaced %+v", replaced)
	}
}
