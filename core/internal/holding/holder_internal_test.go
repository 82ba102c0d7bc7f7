package holding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/queue"
)

// When Undo removes the last entry of a holder, it marks the holder as amending in the same step. Otherwise a
// release could pass the holder to a waiter in between, and the amending goroutine would free the lock of
// that waiter.
func TestHolder_Undo(t *testing.T) {
	t.Parallel()
	passable := func(o *Holder) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.count() == 0 && !o.amending
	}
	closed := &Holdings{Config: Config{Spawn: func(func(context.Context)) {}}} // nothing runs in the background
	for range 20_000 {
		o := &Holder{in: closed, entering: 1}
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Undo(false)
		}()
		for open := true; open; {
			if passable(o) {
				t.Fatal("it has no holds, but a release could pass it on")
			}
			select {
			case <-done:
				open = false
			default:
			}
		}
	}
}

// PUBLISH counts the subscribers of its node, including this client. In a Cluster with classic pub/sub,
// subscribers of other nodes do not count.
func TestHoldings_OthersNotified(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		oneNode  bool
		key      string
		notified int
		want     int
	}{
		{"no subscriber", false, "other", 0, 0},
		{"one subscriber", false, "other", 1, 1},
		{"only this client", false, "k", 1, 0},
		{"this client and another", false, "k", 2, 1},
		{"no subscriber on this node of a cluster", true, "k", 0, queue.Uncounted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			queues := queue.New(queue.Config{PerKey: 10, InAll: 10})
			w := &queue.Waiter{Wish: queue.Wish{Since: time.Now()}}
			if err := queues.Join("k", w, time.Now()); err != nil {
				t.Fatal(err)
			}
			if !queues.NeedsSubscription(w) {
				t.Fatal("no subscription is needed")
			}
			queues.Subscribe(w, listening{})
			hs := &Holdings{Config: Config{Queues: queues, Redis: nodes{one: tt.oneNode}}}
			if got := hs.othersNotified(tt.key, tt.notified); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// listening is a subscription whose messages arrive.
type listening struct{}

func (listening) Confirmed() bool { return true }
func (listening) Dead() bool      { return false }
func (listening) Unsubscribe()    {}

// nodes is a Redis that only reports how it counts subscribers.
type nodes struct {
	Redis

	one bool
}

func (n nodes) CountsOneNode() bool { return n.one }

// While the node is known to be silent, a re-entry fails fast with that error, also if its caller has left: the outcome is
// that Redis is unavailable, and not that the caller stopped waiting.
func TestHolder_ReenterSilentNode(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"caller waits": t.Context(), "caller has left": ended} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			silent := func(context.Context, string) error { return failure.Unavailable }
			o := &Holder{in: &Holdings{Config: Config{FailFast: silent}}}
			final, err := o.Reenter(ctx, Entry{})
			if !final || !errors.Is(err, failure.Unavailable) {
				t.Errorf("got final %t and %v, want the outcome %v", final, err, failure.Unavailable)
			}
		})
	}
}
