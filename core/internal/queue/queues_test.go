package queue_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

func atMost(n int) func(*queue.Wish) { return func(w *queue.Wish) { w.MaxWaiters = n } }

func admitted(w *queue.Wish) { w.Admitted = true }

func TestQueues_Join_Limits(t *testing.T) {
	t.Parallel()
	nothing := func(*queue.Wish) {}
	for _, tt := range []struct {
		name   string
		cfg    queue.Config
		before int // waiters of "k"
		change func(*queue.Wish)
		full   bool
	}{
		{"one below the limit of the key", queue.Config{PerKey: 3}, 2, nothing, false},
		{"at the limit of the key", queue.Config{PerKey: 3}, 3, nothing, true},
		{"at its own limit", queue.Config{PerKey: 3}, 2, atMost(2), true},
		{"its own limit is higher", queue.Config{PerKey: 3}, 3, atMost(9), true},
		{"below both", queue.Config{PerKey: 3}, 1, atMost(2), false},
		{"at the limit in all", queue.Config{InAll: 3}, 3, nothing, true},
		{"one below the limit in all", queue.Config{InAll: 3}, 2, nothing, false},
	} {
		onBench(t, tt.name, tt.cfg, func(t *testing.T, b *bench) {
			for range tt.before {
				b.joined()
			}
			w := b.waiter(tt.change)
			if err := b.Join("k", w, b.now); errors.Is(err, queue.ErrFull) != tt.full {
				t.Errorf("got %v", err)
			}
			want := tt.before
			if !tt.full {
				want++
			}
			if got := b.Waiting(); got != want || len(b.Order("k")) != want {
				t.Errorf("got %d waiters, %d in the queue, want %d", got, len(b.Order("k")), want)
			}
			again := b.waiter(tt.change, admitted)
			if err := b.Join("k", again, b.now); err != nil {
				t.Errorf("an admitted waiter: %v", err)
			}
		})
	}
}

// The total limit counts the waiters for every key. A queue that no waiter could join is removed.
func TestQueues_Join_LimitInAll(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{InAll: 2})
	first := b.joined()
	second := b.waiter()
	if err := b.Join("other", second, b.now); err != nil || !b.Full() {
		t.Fatalf("got %v, full %v", err, b.Full())
	}
	if err := b.Join("third", b.waiter(), b.now); !errors.Is(err, queue.ErrFull) {
		t.Errorf("got %v", err)
	}
	wantSame(t, "queues", b.Live(), 2)
	b.Leave(first, b.now)
	if b.Full() {
		t.Error("full with one waiter")
	}
	b.Leave(second, b.now)
	b.wantEmpty()
}

// A waiter no longer counts after it has left, in whatever way it left.
func TestQueues_Waiting_EachWayOut(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(b *bench, h *holder, w *queue.Waiter){
		"leaves": func(b *bench, h *holder, w *queue.Waiter) { b.Leave(w, b.now); b.frees(h) },
		"is handed the lock": func(b *bench, h *holder, _ *queue.Waiter) {
			next, _ := b.hands(h)
			b.frees(next)
		},
		"acquires": func(b *bench, h *holder, w *queue.Waiter) {
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
			b.attempts(w)
			next, _ := b.takes(w)
			b.frees(next)
		},
		"leaves as it is chosen": func(b *bench, h *holder, w *queue.Waiter) {
			b.chosen(h)
			b.Leave(w, b.now)
			b.CompleteHandOff(w, h, h, b.now)
			b.frees(h)
		},
		"leaves with a grant": func(b *bench, h *holder, w *queue.Waiter) {
			b.chosen(h)
			b.CompleteHandOff(w, h, h, b.now)
			if got := b.Leave(w, b.now); got != queue.Holder(h) {
				b.t.Errorf("got the grant %v", got)
			}
			b.frees(h)
		},
		"acquires as it is chosen": func(b *bench, h *holder, w *queue.Waiter) {
			b.chosen(h)
			next, _ := b.takes(w)
			b.CancelHandOff(w, b.now)
			b.frees(next)
		},
	} {
		onBench(t, name, queue.Config{}, func(t *testing.T, b *bench) {
			h, w := b.holds(), b.joined()
			wantSame(t, "waiters", b.Waiting(), 1)
			goes(b, h, w)
			b.wantEmpty()
		})
	}
}

func TestQueues_Oldest(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	if got := b.Oldest(); !got.IsZero() {
		t.Errorf("got %s without a waiter", got)
	}
	b.holds()
	b.pass(ms)
	first := b.now
	old := b.joined()
	b.pass(ms)
	other := b.waiter()
	if err := b.Join("other", other, b.now); err != nil {
		t.Fatal(err)
	}
	if got := b.Oldest(); !got.Equal(first) {
		t.Errorf("got %s, want %s", got, first)
	}
	b.Leave(old, b.now)
	if got := b.Oldest(); !got.Equal(b.now) {
		t.Errorf("got %s, want %s", got, b.now)
	}
}

func TestQueues_FirstInUse(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	keys := []string{"a", "b", "k"}
	want := func(what string, want int, wanted bool) {
		t.Helper()
		if got := b.FirstInUse(keys); got != want || b.InUse("k") != wanted {
			t.Errorf("%s: got %d, wanted %v", what, got, b.InUse("k"))
		}
	}
	want("no caller", 0, false)
	h := b.holds()
	want("a holder", 2, true)
	w := b.joined()
	want("a holder and a waiter", 2, true)
	b.chosen(h)
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	want("a hand-off", 2, true)
	b.CancelHandOff(w, b.now)
	want("a waiter", 2, true)
	b.Leave(w, b.now)
	want("no caller any more", 0, false)
}
