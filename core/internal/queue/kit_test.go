package queue_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

const ms = time.Millisecond

// holder is a holder with a name.
type holder struct {
	field string
	dead  bool
}

func (h *holder) Field() string        { return h.field }
func (h *holder) Lasts(time.Time) bool { return !h.dead }

// subscription is a subscription whose state the test sets. Unsubscribe calls released.
type subscription struct {
	confirmed, dead atomic.Bool
	releases        atomic.Int32
	released        func()
}

func (s *subscription) Confirmed() bool { return s.confirmed.Load() }
func (s *subscription) Dead() bool      { return s.dead.Load() }
func (s *subscription) Unsubscribe() {
	s.releases.Add(1)
	if s.released != nil {
		s.released()
	}
}

// bench contains queues for the key "k" and a clock that the test sets.
type bench struct {
	*queue.Queues

	t   *testing.T
	now time.Time
	n   int
}

func newBench(t *testing.T, cfg queue.Config) *bench {
	t.Helper()
	if cfg.PerKey == 0 {
		cfg.PerKey = 1000
	}
	if cfg.InAll == 0 {
		cfg.InAll = 1000
	}
	return &bench{Queues: queue.New(cfg), t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// onBench runs a parallel subtest with a new bench.
func onBench(t *testing.T, name string, cfg queue.Config, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t, newBench(t, cfg))
	})
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// waiter returns a waiter that arrives now.
func (b *bench) waiter(change ...func(w *queue.Wish)) *queue.Waiter {
	w := &queue.Waiter{Wish: queue.Wish{Kind: "plain", Since: b.now}}
	for _, c := range change {
		c(&w.Wish)
	}
	return w
}

func several(w *queue.Wish) { w.Several = true }
func shared(w *queue.Wish)  { w.Shared = true }

func until(t time.Time) func(*queue.Wish) { return func(w *queue.Wish) { w.Until = t } }

// joined returns a waiter that joined the queue of "k".
func (b *bench) joined(change ...func(w *queue.Wish)) *queue.Waiter {
	b.t.Helper()
	w := b.waiter(change...)
	if err := b.Join("k", w, b.now); err != nil {
		b.t.Fatal(err)
	}
	return w
}

// holds returns a new holder of "k" without a waiter.
func (b *bench) holds(change ...func(g *queue.Grant)) *holder {
	b.t.Helper()
	h, _ := b.takes(nil, change...)
	return h
}

// takes completes the attempt of a waiter, or of a caller that does not wait, successfully.
func (b *bench) takes(w *queue.Waiter, change ...func(g *queue.Grant)) (*holder, []queue.Replaced) {
	b.t.Helper()
	b.n++
	h := &holder{field: fmt.Sprint("f", b.n)}
	g := queue.Grant{Holder: h, Kind: "plain", Sent: b.now}
	for _, c := range change {
		c(&g)
	}
	return h, b.RecordGrant("k", w, g, b.now)
}

func sharing(g *queue.Grant) { g.Shared = true }

func sent(at time.Time) func(*queue.Grant) { return func(g *queue.Grant) { g.Sent = at } }

// attempts requires that w attempts next.
func (b *bench) attempts(w *queue.Waiter) {
	b.t.Helper()
	if s := b.Next(w, b.now); !s.Attempt {
		b.t.Errorf("got %+v, want an attempt", s)
	}
}

// rests requires that w has nothing to do. It returns the step.
func (b *bench) rests(w *queue.Waiter) queue.Step {
	b.t.Helper()
	s := b.Next(w, b.now)
	if s.Attempt || s.Grant != nil {
		b.t.Errorf("got %+v, want a rest", s)
	}
	return s
}

// refused makes an attempt of w that Redis refuses.
func (b *bench) refused(w *queue.Waiter) {
	b.t.Helper()
	b.attempts(w)
	b.RecordRefusal(w, queue.Refusal{Holder: "stranger", TTL: time.Second}, queue.Stranger, b.now)
	b.rests(w)
}

// hands passes the lock from h to the next waiter and returns the new holder.
func (b *bench) hands(h *holder) (to *holder, w *queue.Waiter) {
	b.t.Helper()
	w = b.chosen(h)
	b.n++
	to = &holder{field: fmt.Sprint("f", b.n)}
	if !b.CompleteHandOff(w, h, to, b.now) {
		b.t.Error("the chosen waiter had left")
	}
	b.granted(w, to)
	return to, w
}

// chosen returns the waiter to which h hands the lock.
func (b *bench) chosen(h *holder) *queue.Waiter {
	b.t.Helper()
	w := b.TakeNext("k", h, b.now)
	if w == nil {
		b.t.Fatal("no waiter was chosen")
	}
	return w
}

// granted requires that w got the lock and accepts it.
func (b *bench) granted(w *queue.Waiter, to *holder) {
	b.t.Helper()
	if s := b.Next(w, b.now); s.Grant != queue.Holder(to) {
		b.t.Errorf("got %+v, want the grant of %s", s, to.field)
	}
	b.Accept(w)
}

// frees releases the lock without notifying another process.
func (b *bench) frees(h *holder) {
	b.t.Helper()
	if w := b.TakeNext("k", h, b.now); w != nil {
		b.t.Fatal("a waiter was chosen")
	}
	b.RemoveHolder("k", h, 0, b.now)
}

// woken reports whether a waiter was woken since the last call.
func woken(w *queue.Waiter) bool {
	select {
	case <-w.Signal():
		return true
	default:
		return false
	}
}

func (b *bench) wantOrder(key string, want ...*queue.Waiter) {
	b.t.Helper()
	if got := b.Order(key); !slices.Equal(got, want) {
		b.t.Errorf("%s: got the waiters %p, want %p", key, got, want)
	}
}

// wantEmpty requires that no waiter and no queue is left.
func (b *bench) wantEmpty() {
	b.t.Helper()
	if n, live := b.Waiting(), b.Live(); n != 0 || live != 0 {
		b.t.Errorf("got %d waiters and %d queues, want none", n, live)
	}
}

func wantSame[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
