package queue_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// The waiter that arrived first is first, whatever queue it was in before.
func TestQueues_Join_OrdersByAge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		came []time.Duration // in the order in which they join
		want []int
	}{
		{"one after the other", []time.Duration{0, 1, 2}, []int{0, 1, 2}},
		{"of the same age", []time.Duration{0, 0, 0}, []int{0, 1, 2}},
		{"the last one is the oldest", []time.Duration{3, 2, 1}, []int{2, 1, 0}},
		{"into the middle", []time.Duration{0, 4, 2}, []int{0, 2, 1}},
		{"behind another of its age", []time.Duration{0, 2, 4, 2}, []int{0, 1, 3, 2}},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			var all, want []*queue.Waiter
			for _, d := range tt.came {
				all = append(all, b.joined(func(w *queue.Wish) { w.Since = b.now.Add(d) }))
			}
			for _, i := range tt.want {
				want = append(want, all[i])
			}
			b.wantOrder("k", want...)
			for _, w := range want {
				var got *queue.Waiter
				if h, got = b.hands(h); got != w {
					t.Errorf("handed to %p, want %p", got, w)
				}
			}
			b.frees(h)
			b.wantEmpty()
		})
	}
}

// If a waiter leaves from any place, the order of the others does not change. If a woken head leaves, its
// successor is woken.
func TestQueues_Leave_KeepsTheOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		gone  int
		woken bool // the new head
	}{
		{"the head", 0, true},
		{"one in the middle", 1, false},
		{"the last", 2, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			var all []*queue.Waiter
			for range 3 {
				all = append(all, b.joined())
			}
			b.refused(all[0])
			b.rests(all[1])
			b.rests(all[2])
			if grant := b.Leave(all[tt.gone], b.now); grant != nil {
				t.Errorf("got the grant %v", grant)
			}
			left := append(append([]*queue.Waiter(nil), all[:tt.gone]...), all[tt.gone+1:]...)
			b.wantOrder("k", left...)
			wantSame(t, "the head was woken", woken(left[0]), tt.woken)
			for _, w := range left {
				b.Leave(w, b.now)
			}
			b.wantEmpty()
		})
	}
}

// A new head attempts before it sleeps, unless this process knows that the lock is held.
func TestQueues_Next_NewWaiter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(b *bench)
		want   queue.Step
	}{
		{"free", func(*bench) {}, queue.Step{Attempt: true}},
		{"behind another waiter", func(b *bench) { b.joined() }, queue.Step{}},
		{"behind a holder", func(b *bench) { b.holds() }, queue.Step{Head: true, BlockedBy: "f1"}},
		{"behind both", func(b *bench) { b.holds(); b.joined() }, queue.Step{BlockedBy: "f1"}},
		{"while another waiter is handed the lock", func(b *bench) {
			h := b.holds()
			b.joined()
			b.chosen(h)
		}, queue.Step{Head: true, BlockedBy: "f1"}},
		{"after another waiter was handed the lock", func(b *bench) {
			h := b.holds()
			b.joined()
			b.hands(h)
		}, queue.Step{Head: true, BlockedBy: "f2"}},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			tt.before(b)
			wantSame(t, "step", b.Next(b.joined(), b.now), tt.want)
		})
	}
}

// Each reason to attempt leads to one attempt.
func TestQueues_Next_OneAttemptForEachReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		event  func(b *bench, w *queue.Waiter)
		again  bool
		signal bool
	}{
		{"nothing", func(*bench, *queue.Waiter) {}, false, false},
		{"a poll", func(b *bench, w *queue.Waiter) { b.Poll(w) }, true, false},
		{"a message", func(b *bench, _ *queue.Waiter) { b.RecordMessage("k", b.now) }, true, true},
		{"a message about another key", func(b *bench, _ *queue.Waiter) { b.RecordMessage("other", b.now) }, false, false},
		{"a wake-up", func(b *bench, _ *queue.Waiter) { b.Wake("k", "") }, true, true},
		{"a wake-up of another key", func(b *bench, _ *queue.Waiter) { b.Wake("other", "") }, false, false},
		{"a look", func(b *bench, _ *queue.Waiter) { b.WakeToCheck("k", ""); b.WakeToCheck("other", "") }, false, true},
		{"a holder that ends", func(b *bench, _ *queue.Waiter) {
			h := b.holds()
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
		}, true, true},
		{"a waiter behind it that leaves", func(b *bench, _ *queue.Waiter) { b.Leave(b.joined(), b.now) }, false, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined()
			b.refused(w)
			tt.event(b, w)
			wantSame(t, "woken", woken(w), tt.signal)
			wantSame(t, "another attempt", b.Next(w, b.now).Attempt, tt.again)
			b.rests(w)
		})
	}
}

// Only the head attempts. The poll of another waiter has no effect.
func TestQueues_Poll_HeadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	head, second := b.joined(), b.joined()
	b.refused(head)
	b.rests(second)
	b.Poll(second)
	b.rests(second)
	b.Leave(head, b.now)
	b.attempts(second)
	b.rests(second)
}

// If an older waiter arrives while the head is due, the older waiter goes first, and the wake-up of the head
// is not lost.
func TestQueues_Join_OlderThanADueHead(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	young := b.joined()
	old := b.joined(func(w *queue.Wish) { w.Since = b.now.Add(-ms) })
	b.wantOrder("k", old, young)
	b.rests(young)
	b.refused(old)
	b.Leave(old, b.now)
	b.attempts(young)
}

// Ten messages cause one signal, which is not lost.
func TestWaiter_Signal(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	for range 10 {
		b.Wake("k", "")
	}
	if !woken(w) || woken(w) {
		t.Error("got no signal, or two")
	}
}

// A waiter for several keys moves to the queue of the taken key. It keeps its place and blocks neither queue.
func TestQueues_Move(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined(several)
	behind := b.joined()
	b.pass(ms)
	there := b.waiter()
	if err := b.Join("other", there, b.now); err != nil {
		t.Fatal(err)
	}
	b.attempts(w)
	b.rests(behind)
	b.attempts(there)
	b.rests(there)
	if err := b.Move(w, "other", b.now); err != nil || w.Key() != "other" {
		t.Fatalf("got %v, key %s", err, w.Key())
	}
	b.wantOrder("k", behind)
	b.wantOrder("other", w, there)
	if !woken(behind) {
		t.Error("the head of the old queue was not woken")
	}
	b.attempts(behind)
	b.attempts(w)
	wantSame(t, "waiters", b.Waiting(), 3)
	for _, w := range []*queue.Waiter{w, behind, there} {
		b.Leave(w, b.now)
	}
	b.wantEmpty()
}

// After a move to a key that has a holder of this process, the waiter sleeps.
func TestQueues_Move_BehindAHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.waiter(several)
	if err := b.Join("other", w, b.now); err != nil {
		t.Fatal(err)
	}
	b.attempts(w)
	b.holds()
	if err := b.Move(w, "k", b.now); err != nil {
		t.Fatal(err)
	}
	b.rests(w)
	b.wantOrder("other")
}

// RecordRefusal returns how often other callers got the lock first since the move. Hand-offs past the waiter
// and refusals both count.
func TestQueues_RecordRefusal_CountsPassedOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.moved()
	for range 3 {
		b.joined()
		h, _ = b.hands(h)
	}
	b.frees(h)
	b.attempts(w)
	for _, want := range []int{4, 5} {
		if got := b.RecordRefusal(w, queue.Refusal{}, queue.Stranger, b.now); got != want {
			t.Errorf("passed over %d times, want %d", got, want)
		}
	}
	fresh := b.joined(several)
	if got := b.RecordRefusal(fresh, queue.Refusal{}, queue.Stranger, b.now); got != 0 {
		t.Errorf("a waiter that has not moved was passed over %d times", got)
	}
}

// A waiter that succeeds without a holder wakes the next waiter and leaves nothing in the queue. A waiter in a
// lane does not wait for another waiter.
func TestQueues_RecordSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	first, second, third := b.joined(shared), b.joined(shared), b.joined(shared)
	b.refused(first)
	b.rests(second)
	b.Wake("k", "")
	for _, w := range []*queue.Waiter{first, second, third} {
		b.attempts(w)
		if !b.HasWaiters("k") {
			t.Error("got no waiter")
		}
		b.RecordSuccess(w, b.now)
	}
	b.wantEmpty()
	var lanes []*queue.Waiter
	for _, name := range []string{"a", "b"} {
		w := b.joined(shared, func(w *queue.Wish) { w.Lane = name })
		b.refused(w)
		lanes = append(lanes, w)
	}
	b.WakeLanes("k")
	for _, w := range lanes {
		b.attempts(w)
	}
	for _, w := range lanes {
		b.RecordSuccess(w, b.now)
	}
	b.wantEmpty()
	if b.HasWaiters("k") {
		t.Error("a caller waits")
	}
}

// GrantOf only checks for a grant and is not an attempt. A due waiter stays due, and no attempt counts as
// unanswered.
func TestQueues_GrantOf_ChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.pass(ms)
	if grant, _ := b.GrantOf(w); grant != nil {
		t.Errorf("got the grant %v", grant)
	}
	if !b.Due(w) {
		t.Error("the waiter is not due any more")
	}
	b.pass(ms)
	if later := b.joined(); b.NoAnswerSince(later) {
		t.Error("an attempt counts as unanswered")
	}
	b.refused(w)
	h, _ := b.takes(nil)
	to := &holder{field: "to"}
	b.CompleteHandOff(b.chosen(h), h, to, b.now)
	if grant, from := b.GrantOf(w); grant != queue.Holder(to) || from != h.field {
		t.Errorf("got the grant %v from %q, want %v from %q", grant, from, to, h.field)
	}
	b.granted(w, to)
}

// A chosen waiter is not reusable for another call until the hand-off is complete.
func TestWaiter_Reusable(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	if next, _ := b.takes(w); w.Reusable() {
		t.Error("a waiter is reusable during a hand-off")
	} else {
		b.CancelHandOff(w, b.now)
		b.frees(next)
	}
	alone := b.joined()
	b.attempts(alone)
	if b.takes(alone); !alone.Reusable() {
		t.Error("a waiter without a hand-off is not reusable")
	}
}

// A waiter can see which holder it waits for and which holder gave it the lock.
func TestQueues_Next_BlockedBy(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	first, second := b.joined(), b.joined()
	for _, w := range []*queue.Waiter{first, second} {
		wantSame(t, "behind", b.rests(w).BlockedBy, "f1")
	}
	b.chosen(h)
	next := &holder{field: "next"}
	b.CompleteHandOff(first, h, next, b.now)
	if got := b.Next(first, b.now); got.BlockedBy != "f1" {
		t.Errorf("got the lock from %q, want f1", got.BlockedBy)
	}
	b.Accept(first)
	wantSame(t, "behind", b.rests(second).BlockedBy, "next")
	b.RemoveHolder("k", next, queue.NoMessage, b.now)
	b.attempts(second)
	wantSame(t, "behind", b.rests(second).BlockedBy, "next")
}
