package queue_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

func many(w *queue.Wish) { w.Shared, w.Many = true, true }

// wantAttempts requires that the waiters at the given indexes attempt, and no others.
func (b *bench) wantAttempts(from []*queue.Waiter, which ...int) {
	b.t.Helper()
	for i, w := range from {
		want := false
		for _, at := range which {
			want = want || at == i
		}
		if got := b.Next(w, b.now).Attempt; got != want {
			b.t.Errorf("waiter %d attempts: %t, want %t", i, got, want)
		}
	}
}

// When a waiter gets the lock, two more waiters attempt, at most 8 at the same time. A refused head attempts
// alone until it gets the lock.
func TestQueues_Many(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	var all []*queue.Waiter
	for range 24 {
		all = append(all, b.joined(many))
	}
	var holders []*holder
	gotIn := func(w *queue.Waiter) {
		h, _ := b.takes(w, sharing)
		holders = append(holders, h)
	}
	b.wantAttempts(all, 0)
	gotIn(all[0])
	all = all[1:]
	b.wantAttempts(all, 0, 1)
	gotIn(all[0])
	gotIn(all[1])
	all = all[2:]
	b.wantAttempts(all, 0, 1, 2, 3)
	gotIn(all[1])
	gotIn(all[2])
	gotIn(all[3])
	b.wantAttempts(all[4:], 0, 1, 2, 3, 4, 5)
	gotIn(all[4])
	rest := all[10:]
	b.wantAttempts(rest, 0, 1) // in addition to the head and 5 others

	b.RecordRefusal(all[0], queue.Refusal{Holder: "stranger"}, queue.Stranger, b.now)
	gotIn(all[5])
	b.wantAttempts(rest)
	b.wantAttempts(all[:1], 0)
	gotIn(all[0])
	b.wantAttempts(rest, 2, 3)

	for _, w := range append(all[6:10], rest...) {
		b.Leave(w, b.now)
	}
	for _, h := range holders {
		b.frees(h)
	}
	b.wantEmpty()
}

// A place becomes free while the refusal of the second waiter is on its way, and the first waiter takes it.
// The second waiter is now the head, and its refusal is older than the free place. So it attempts again.
func TestQueues_Many_OldRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	all := []*queue.Waiter{b.joined(many), b.joined(many), b.joined(many)}
	b.wantAttempts(all, 0)
	b.takes(all[0], sharing)
	all = all[1:]
	b.wantAttempts(all, 0, 1)
	stranger := queue.Refusal{Holder: "stranger"}
	b.RecordRefusal(all[0], stranger, queue.Stranger, b.now)
	b.RecordMessage("k", b.now)
	b.RecordMessage("k", b.now)
	b.wantAttempts(all, 0)
	b.takes(all[0], sharing)
	b.RecordRefusal(all[1], stranger, queue.Stranger, b.now)
	b.wantAttempts(all[1:], 0)
	b.RecordRefusal(all[1], stranger, queue.Stranger, b.now)
	b.wantAttempts(all[1:])
}

// Sharers hold a lock together. A holder that does not share replaces all others.
func TestQueues_RecordGrant_Shared(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one, two := b.holds(sharing), b.holds(sharing)
	if got := b.Holders("k"); !slices.Equal(got, []queue.Holder{one, two}) {
		t.Errorf("got the holders %v", got)
	}
	b.pass(ms)
	writer, replaced := b.takes(nil)
	if want := []queue.Replaced{{one, true}, {two, true}}; !slices.Equal(replaced, want) {
		t.Errorf("got %v, want %v", replaced, want)
	}
	b.pass(ms)
	reader, replaced := b.takes(nil, sharing)
	if want := []queue.Replaced{{writer, true}}; !slices.Equal(replaced, want) {
		t.Errorf("got %v, want %v", replaced, want)
	}
	b.frees(reader)
	b.wantEmpty()
}

// A waiter that shares the lock does not wait for other sharers. A waiter that does not share it waits for
// all holders, and the waiters behind it wait for their turns.
func TestQueues_Shared_BesideExclusive(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one := b.holds(sharing)
	first, second := b.joined(shared), b.joined(shared)
	writer, last := b.joined(), b.joined(shared)
	b.attempts(first)
	b.rests(second)
	two, _ := b.takes(first, sharing)
	if !woken(second) {
		t.Error("the next sharer was not woken")
	}
	b.attempts(second)
	three, _ := b.takes(second, sharing)
	b.rests(writer)
	b.rests(last)
	for _, h := range []*holder{one, two, three} {
		if woken(writer) {
			t.Error("woken while holders remain")
		}
		if w := b.TakeNext("k", h, b.now); w != nil {
			t.Error("a shared lock was handed on")
		}
		b.RemoveHolder("k", h, queue.NoMessage, b.now)
	}
	b.attempts(writer)
	alone, _ := b.takes(writer)
	b.frees(alone)
	b.attempts(last)
	end, _ := b.takes(last, sharing)
	b.frees(end)
	b.wantEmpty()
}

// If any number of sharers is allowed, the sharers next to each other in the queue attempt together when the
// first one gets the lock. After a refusal they attempt one by one, so that one refusal counts for all of
// them.
func TestQueues_Together(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	alone := b.holds()
	first, second, third := b.joined(together), b.joined(together), b.joined(together)
	writer, last := b.joined(), b.joined(together)
	for _, w := range []*queue.Waiter{first, second, third, writer, last} {
		b.rests(w)
	}
	b.frees(alone)
	b.attempts(first)
	b.rests(second)
	one, _ := b.takes(first, sharing)
	if !woken(second) || !woken(third) || woken(writer) || woken(last) {
		t.Error("got other waiters woken than the sharers next to the first one")
	}
	b.attempts(third)
	b.attempts(second)
	b.RecordRefusal(third, queue.Refusal{}, queue.Unseen, b.now)
	two, _ := b.takes(second, sharing)
	b.attempts(third)
	b.Leave(third, b.now)
	b.rests(writer)
	b.rests(last)
	b.RemoveHolder("k", one, queue.NoMessage, b.now)
	b.RemoveHolder("k", two, queue.NoMessage, b.now)
	b.attempts(writer)
	b.Leave(writer, b.now)
	b.Leave(last, b.now)
	b.wantEmpty()
}

// A waiter whose attempt stops further sharers attempts as soon as it is the head.
func TestQueues_Announces(t *testing.T) {
	t.Parallel()
	announces := func(w *queue.Wish) { w.Announces = true }
	b := newBench(t, queue.Config{})
	one := b.holds(sharing)
	w, next := b.joined(announces), b.joined(announces)
	b.refused(w)
	b.rests(next)
	two, _ := b.takes(nil, sharing)
	b.attempts(w)
	b.RecordRefusal(w, queue.Refusal{}, queue.Unseen, b.now)
	b.RemoveHolder("k", one, queue.Unpublished, b.now)
	b.rests(w)
	b.Leave(w, b.now)
	b.attempts(next)
	b.RemoveHolder("k", two, queue.Unpublished, b.now)
	b.Leave(next, b.now)
	alone := b.holds()
	b.rests(b.joined(announces))
	b.RemoveHolder("k", alone, queue.NoMessage, b.now)
}
