package queue_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

func inLane(name string) func(*queue.Wish) { return func(w *queue.Wish) { w.Lane = name } }

// A waiter that queues in Redis attempts at once, even if another caller of this process arrived earlier or
// has the lock.
func TestQueues_Lane_AttemptsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	first, second := b.joined(inLane("1")), b.joined(inLane("2"))
	b.refused(first)
	b.refused(second)
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	b.rests(first) // Redis decides whose turn it is
	b.Wake("k", "2")
	b.attempts(second)
	b.rests(first)
	next, _ := b.takes(second)
	if got := b.Holders("k"); !slices.Equal(got, []queue.Holder{next}) {
		t.Errorf("got the holders %v", got)
	}
	b.WakeLanes("k")
	b.attempts(first)
	b.Leave(first, b.now)
	b.frees(next)
	b.wantEmpty()
}

// A waiter that queues in Redis never stands back, however often other callers have had the lock.
func TestQueues_Lane_NeverStandsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined(inLane("1"))
	for range 50 {
		b.attempts(w)
		b.RecordRefusal(w, queue.Refusal{Holder: "stranger"}, queue.Stranger, b.now)
		b.rests(w)
		b.Wake("k", "1")
		b.pass(ms)
	}
	b.attempts(w)
	b.Leave(w, b.now)
	b.wantEmpty()
}

// All waiters for a key count towards the limits and have one kind.
func TestQueues_Lane_Limits(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{PerKey: 2})
	one, two := b.joined(inLane("1")), b.joined(inLane("2"))
	if err := b.Join("k", b.waiter(inLane("3")), b.now); !errors.Is(err, queue.ErrFull) {
		t.Errorf("the third: %v, want ErrFull", err)
	}
	var kind *queue.KindError
	if err := b.Join("k", b.waiter(other), b.now); !errors.As(err, &kind) {
		t.Errorf("another kind: %v", err)
	}
	if got := b.Oldest(); !got.Equal(one.Since) {
		t.Errorf("the oldest waiter arrived at %s, want %s", got, one.Since)
	}
	b.Leave(one, b.now)
	b.joined(inLane("3"))
	wantSame(t, "waiters", b.Waiting(), 2)
	b.Leave(two, b.now)
}

// A lane has a separate subscription, which ends with the lane.
func TestQueues_Lane_Subscription(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	subs := map[string]*subscription{}
	ways := map[string]func(w *queue.Waiter){
		"1": func(w *queue.Waiter) { b.Leave(w, b.now) },
		"2": func(w *queue.Waiter) { b.takes(w, sharing) },
	}
	for name, goes := range ways {
		w := b.joined(inLane(name), shared)
		b.attempts(w)
		if !b.NeedsSubscription(w) {
			t.Error("no subscription is needed")
		}
		subs[name] = &subscription{}
		b.Subscribe(w, subs[name])
		b.WakeToCheck("k", name)
		if step := b.Next(w, b.now); !step.NoMessages {
			t.Errorf("got %+v, want a waiter that gets no messages", step)
		}
		goes(w)
	}
	for name, s := range subs {
		if n := s.releases.Load(); n != 1 {
			t.Errorf("the subscription of lane %s ended %d times", name, n)
		}
	}
}
