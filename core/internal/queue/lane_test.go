package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

func inLane(name string) func(*queue.Wish) { return func(w *queue.Wish) { w.Lane = name } }

// Who waits in Redis attempts at once, whoever of this process came before or has the lock.
func TestLane_NobodyIsBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	first, second := b.joined(inLane("1")), b.joined(inLane("2"))
	b.refused(first)
	b.refused(second)
	b.Ended("k", h, queue.NoMessage, b.now)
	b.rests(first) // Redis says whose turn it is
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

// However often others have had the lock, it does not stand back from its turn.
func TestLane_NeverStandsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined(inLane("1"))
	for range 50 {
		b.attempts(w)
		b.Refused(w, queue.Refusal{Holder: "stranger"}, queue.Stranger, b.now)
		b.rests(w)
		b.Wake("k", "1")
		b.pass(ms)
	}
	b.attempts(w)
	b.Leave(w, b.now)
	b.wantEmpty()
}

// All who wait for a key count, and are of one kind.
func TestLane_Limits(t *testing.T) {
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
		t.Errorf("the oldest came at %s, want %s", got, one.Since)
	}
	b.Leave(one, b.now)
	b.joined(inLane("3"))
	wantSame(t, "waiters", b.Waiting(), 2)
	b.Leave(two, b.now)
}

// The subscription of a lane is its own, and is given back with it.
func TestLane_Subscription(t *testing.T) {
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
		b.Look("k", name)
		if step := b.Next(w, b.now); !step.Silent {
			t.Errorf("got %+v, want a waiter that gets no messages", step)
		}
		goes(w)
	}
	for name, s := range subs {
		if n := s.releases.Load(); n != 1 {
			t.Errorf("the subscription of lane %s was given back %d times", name, n)
		}
	}
}

// Of several that share the lock each end may make room, not only the last one.
func TestEnded_OfOneThatSharesWakesTheHead(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one, two := b.holds(sharing), b.holds(sharing)
	w := b.joined(shared)
	b.refused(w)
	b.Ended("k", one, queue.NoMessage, b.now)
	b.attempts(w)
	b.Refused(w, queue.Refusal{}, queue.Unseen, b.now)
	b.rests(w)
	alone := b.joined() // is behind
	b.Ended("k", two, queue.NoMessage, b.now)
	b.attempts(w)
	b.Leave(w, b.now)
	b.Leave(alone, b.now)
	b.wantEmpty()
}

// A holder under another one leaves it its lock, and goes on without it.
func TestAcquired_UnderAHolder(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"outer", "inner"} {
		onBench(t, fmt.Sprint(first, " ends first"), queue.Config{}, func(t *testing.T, b *bench) {
			outer := b.holds()
			inner, replaced := b.takes(nil, sharing, func(g *queue.Grant) { g.Under = outer })
			if len(replaced) != 0 {
				t.Errorf("got %v replaced", replaced)
			}
			reader := b.joined(shared)
			if first == "inner" {
				b.Ended("k", inner, queue.Unpublished, b.now)
				b.rests(reader)
				b.Ended("k", outer, queue.NoMessage, b.now)
			} else {
				b.Ended("k", outer, queue.NoMessage, b.now)
				b.attempts(reader) // the inner one shares it
				b.Ended("k", inner, queue.NoMessage, b.now)
			}
			b.Leave(reader, b.now)
			b.wantEmpty()
		})
	}
}

// After an end without a message the next message is not ours.
func TestEnded_UnpublishedIsNoEcho(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		notified int
		echo     bool
	}{{0, true}, {queue.Unpublished, false}} {
		b := newBench(t, queue.Config{})
		one, two := b.holds(sharing), b.holds(sharing)
		w := b.joined(shared)
		b.attempts(w)
		heard := &subscription{}
		heard.confirmed.Store(true)
		b.Subscribe(w, heard)
		b.ExpectEcho("k", b.now)
		b.Ended("k", one, tt.notified, b.now)
		if doubted := b.Message("k", b.now); (len(doubted) == 0) != tt.echo {
			t.Errorf("notified %d: the message puts %v in doubt", tt.notified, doubted)
		}
		b.Ended("k", two, queue.NoMessage, b.now)
		b.Leave(w, b.now)
	}
}
