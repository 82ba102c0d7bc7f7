package queue_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

func many(w *queue.Wish) { w.Shared, w.Many = true, true }

// wantAttempts looks at the next steps of waiters, of which only the ones named attempt.
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

// After each one that has got in two more attempt, 8 at most at a time. One that is refused as the
// head is the only one to attempt until it has got in.
func TestAbreast_MoreAfterEachThatGotIn(t *testing.T) {
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
	b.wantAttempts(rest, 0, 1) // beside the head and 5 others

	b.Refused(all[0], queue.Refusal{Holder: "stranger"}, queue.Stranger, b.now)
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

// More comes free while the refusal of the second waiter is on its way, and the first one gets in. The
// second one is the head by then, and what it asked is as of before: once refused, it attempts again.
func TestAbreast_HeadIsRefusedAsOfBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	all := []*queue.Waiter{b.joined(many), b.joined(many), b.joined(many)}
	b.wantAttempts(all, 0)
	b.takes(all[0], sharing)
	all = all[1:]
	b.wantAttempts(all, 0, 1)
	stranger := queue.Refusal{Holder: "stranger"}
	b.Refused(all[0], stranger, queue.Stranger, b.now)
	b.Message("k", b.now)
	b.Message("k", b.now)
	b.wantAttempts(all, 0)
	b.takes(all[0], sharing)
	b.Refused(all[1], stranger, queue.Stranger, b.now)
	b.wantAttempts(all[1:], 0)
	b.Refused(all[1], stranger, queue.Stranger, b.now)
	b.wantAttempts(all[1:])
}
