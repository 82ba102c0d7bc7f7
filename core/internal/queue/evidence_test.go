package queue_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// A refusal of any waiter in the queue, or a holder of this process, shows that the lock was taken while
// another waiter waited.
func TestQueues_TakenSince(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		before  func(b *bench) // runs before the waiter arrives
		after   func(b *bench)
		taken   bool
		refusal bool
	}{
		{"nothing is known", nothing, nothing, false, false},
		{"another was refused before", refusesFirst, nothing, false, false},
		{"another was refused since", func(b *bench) { b.joined() }, refusesFirst, true, true},
		{"a holder is there", func(b *bench) { b.holds() }, nothing, true, false},
		{"a holder has come since", nothing, func(b *bench) { b.holds() }, true, false},
		{"a holder has ended before", func(b *bench) { b.frees(b.holds()) }, nothing, false, false},
		{"a holder has ended since", nothing, func(b *bench) { b.RemoveHolder("k", b.holds(), queue.NoMessage, b.now) }, true, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			tt.before(b)
			b.pass(ms)
			w := b.waiter()
			if _, _, taken := b.TakenSince(w); taken {
				t.Error("taken before the waiter waits")
			}
			if err := b.Join("k", w, b.now); err != nil {
				t.Fatal(err)
			}
			b.pass(ms)
			tt.after(b)
			r, at, taken := b.TakenSince(w)
			if taken != tt.taken || (r != nil) != tt.refusal {
				t.Errorf("got %v, %v", r, taken)
			}
			if r != nil && (r.Holder != "stranger" || !at.Equal(b.now)) {
				t.Errorf("got %v at %s", *r, at)
			}
		})
	}
}

// A holder with which a waiter would share the lock does not show that the lock is taken. Neither does the
// release of such a holder.
func TestQueues_TakenSince_Shared(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h, _ := b.takes(nil, sharing)
	sharer, other := b.joined(shared), b.joined()
	_, _, taken := b.TakenSince(sharer)
	if _, _, known := b.TakenSince(other); taken || !known {
		t.Errorf("taken for a sharer: %v, for another waiter: %v", taken, known)
	}
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	if _, _, taken := b.TakenSince(sharer); taken {
		t.Error("taken because a sharer has ended")
	}
	if b.NoAnswerSince(sharer) {
		t.Error("unanswered, although no waiter has asked")
	}
	b.Leave(sharer, b.now)
	b.Leave(other, b.now)
	b.wantEmpty()
}

func nothing(*bench) {}

// refusesFirst records that Redis refused the head. If the queue is empty, a waiter joins it first.
func refusesFirst(b *bench) {
	if len(b.Order("k")) == 0 {
		b.joined()
	}
	b.refused(b.Order("k")[0])
}

// Until the attempt of the head is answered, the waiters after the head do not know whether the lock is taken.
func TestQueues_NoAnswerSince(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	head := b.joined()
	b.attempts(head)
	second := b.joined()
	b.pass(ms)
	third := b.joined()
	want := func(what string, want bool) {
		t.Helper()
		if b.NoAnswerSince(second) != want || b.NoAnswerSince(third) != want {
			t.Errorf("%s: got %v, %v, want %v", what, b.NoAnswerSince(second), b.NoAnswerSince(third), want)
		}
	}
	want("the head has no answer", true)
	b.Poll(head)
	b.attempts(head)
	want("nor a second time", true)
	h := b.holds()
	want("a holder of this process has it", false)
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	want("a holder of this process has had it", false)
	b.attempts(head)
	if b.NoAnswerSince(second) {
		t.Error("the head attempted after the waiter arrived")
	}
	b.RecordRefusal(head, queue.Refusal{}, queue.Stranger, b.now)
	want("the head was refused", false)
}

// A waiter that moves to another key has received an answer.
func TestQueues_NoAnswerSince_AfterAMove(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	head := b.joined(several)
	b.attempts(head)
	second := b.joined()
	if !b.NoAnswerSince(second) {
		t.Error("the attempt counts as answered before the move")
	}
	if err := b.Move(head, "other", b.now); err != nil {
		t.Fatal(err)
	}
	if b.NoAnswerSince(second) {
		t.Error("the attempt counts as unanswered after the move")
	}
}

// An abandoned attempt does not count while the next waiter leaves the lock to others.
func TestQueues_NoAnswerSince_HeadStandsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	hasty := b.joined(func(w *queue.Wish) { w.Until = b.now.Add(2 * ms) })
	b.RemoveHolder("k", h, 1, b.now)
	b.pass(b.rests(hasty).Sleep)
	b.attempts(hasty)
	second := b.joined()
	b.pass(ms / 10)
	third := b.joined()
	b.Leave(hasty, b.now)
	if !b.NoAnswerSince(third) {
		t.Error("the attempt has an answer, so the test proves nothing")
	}
	b.rests(second)
	if b.NoAnswerSince(third) {
		t.Error("the abandoned attempt counts")
	}
}
