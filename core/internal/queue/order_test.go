package queue_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// Whoever came first is first, wherever it stood before.
func TestOrder_ByAge(t *testing.T) {
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
		{"behind one of its age", []time.Duration{0, 2, 4, 2}, []int{0, 1, 3, 2}},
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

// One that leaves, from whatever place, leaves the others as they were; what a head was
// notified of is passed on.
func TestOrder_Leave(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		gone  int
		woken bool // the one that is the head then
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

// A new head attempts before it sleeps, unless the lock is known to be taken here.
func TestNext_OfANewWaiter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(b *bench)
		want   queue.Step
	}{
		{"free", func(*bench) {}, queue.Step{Attempt: true}},
		{"behind another one", func(b *bench) { b.joined() }, queue.Step{}},
		{"behind a holder", func(b *bench) { b.holds() }, queue.Step{Head: true, Behind: "f1"}},
		{"behind both", func(b *bench) { b.holds(); b.joined() }, queue.Step{Behind: "f1"}},
		{"as another one is handed the lock", func(b *bench) {
			h := b.holds()
			b.joined()
			b.chosen(h)
		}, queue.Step{Head: true, Behind: "f1"}},
		{"as another one has it that was handed to it", func(b *bench) {
			h := b.holds()
			b.joined()
			b.hands(h)
		}, queue.Step{Head: true, Behind: "f2"}},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			tt.before(b)
			wantSame(t, "step", b.Next(b.joined(), b.now), tt.want)
		})
	}
}

// An attempt is made once. What comes meanwhile leads to another one.
func TestNext_AttemptsOnceForEachReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		event  func(b *bench, w *queue.Waiter)
		again  bool
		signal bool
	}{
		{"nothing", func(*bench, *queue.Waiter) {}, false, false},
		{"a poll", func(b *bench, w *queue.Waiter) { b.Poll(w) }, true, false},
		{"a message", func(b *bench, _ *queue.Waiter) { b.Message("k", b.now) }, true, true},
		{"a message about another key", func(b *bench, _ *queue.Waiter) { b.Message("other", b.now) }, false, false},
		{"a wake-up", func(b *bench, _ *queue.Waiter) { b.Wake("k", "") }, true, true},
		{"a wake-up of another key", func(b *bench, _ *queue.Waiter) { b.Wake("other", "") }, false, false},
		{"a look", func(b *bench, _ *queue.Waiter) { b.Look("k", ""); b.Look("other", "") }, false, true},
		{"a holder that ends", func(b *bench, _ *queue.Waiter) {
			h := b.holds()
			b.Ended("k", h, queue.NoMessage, b.now)
		}, true, true},
		{"one behind it that leaves", func(b *bench, _ *queue.Waiter) { b.Leave(b.joined(), b.now) }, false, false},
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

// Only the head attempts: a poll of another one is none.
func TestPoll_IsForTheHead(t *testing.T) {
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

// An older one that comes while the head was notified goes first, and what the head was notified
// is not lost.
func TestNext_OlderOneComesBeforeTheHeadThatIsDue(t *testing.T) {
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

// Ten messages are one reason to look: the signal does not pile up, and is not lost.
func TestSignal_DoesNotPileUp(t *testing.T) {
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
