package queue_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// One that wants several keys goes to the queue of the one in the way, keeps its place,
// and holds up neither queue.
func TestMove(t *testing.T) {
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
		t.Error("the head of the queue that it left was not woken")
	}
	b.attempts(behind)
	b.attempts(w)
	wantSame(t, "waiters", b.Waiting(), 3)
	for _, w := range []*queue.Waiter{w, behind, there} {
		b.Leave(w, b.now)
	}
	b.wantEmpty()
}

// It sleeps where the lock is known to be taken.
func TestMove_BehindAHolder(t *testing.T) {
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

// It knows how often others came first since it has moved: by hand-offs past it, and by
// refusals.
func TestRefused_CountsWhoWasPassedOver(t *testing.T) {
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
		if got := b.Refused(w, queue.Refusal{}, queue.Stranger, b.now); got != want {
			t.Errorf("passed over %d times, want %d", got, want)
		}
	}
	fresh := b.joined(several)
	if got := b.Refused(fresh, queue.Refusal{}, queue.Stranger, b.now); got != 0 {
		t.Errorf("one that has not moved was passed over %d times", got)
	}
}

func TestBusiest(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	keys := []string{"a", "b", "k"}
	want := func(what string, want int, wanted bool) {
		t.Helper()
		if got := b.Busiest(keys); got != want || b.Wanted("k") != wanted {
			t.Errorf("%s: got %d, wanted %v", what, got, b.Wanted("k"))
		}
	}
	want("nobody", 0, false)
	h := b.holds()
	want("a holder", 2, true)
	w := b.joined()
	want("a holder and a waiter", 2, true)
	b.chosen(h)
	b.Ended("k", h, queue.NoMessage, b.now)
	want("a hand-off", 2, true)
	b.NotHanded(w, b.now)
	want("a waiter", 2, true)
	b.Leave(w, b.now)
	want("nobody any more", 0, false)
}
