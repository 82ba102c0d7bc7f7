package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// subscribed adds a confirmed subscription to the queue of w.
func (b *bench) subscribed(w *queue.Waiter) *subscription {
	b.t.Helper()
	if !b.NeedsSubscription(w) {
		b.t.Fatal("no subscription is needed")
	}
	s := &subscription{released: func() { b.WakeToCheck("k", "") }} // without a mutex
	s.confirmed.Store(true)
	b.Subscribe(w, s)
	return s
}

func wantReleases(t *testing.T, s *subscription, want int32) {
	t.Helper()
	wantSame(t, "releases", s.releases.Load(), want)
}

// A subscription is kept while a caller waits, and it is unsubscribed once.
func TestQueues_Subscription_ReleasedAfterTheLastWaiter(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(b *bench, w *queue.Waiter){
		"acquires": func(b *bench, w *queue.Waiter) { b.takes(w) },
		"leaves":   func(b *bench, w *queue.Waiter) { b.Leave(w, b.now) },
		"moves": func(b *bench, w *queue.Waiter) {
			if err := b.Move(w, "other", b.now); err != nil {
				b.t.Error(err)
			}
		},
		"accepts a grant": func(b *bench, _ *queue.Waiter) { b.hands(b.holds()) },
		"leaves as it is chosen": func(b *bench, w *queue.Waiter) {
			h := b.holds()
			b.chosen(h)
			b.Leave(w, b.now)
			b.CancelHandOff(w, b.now)
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
		},
		"leaves as it is chosen, and then the holder ends": func(b *bench, w *queue.Waiter) {
			h := b.holds()
			b.chosen(h)
			b.Leave(w, b.now)
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
			b.CancelHandOff(w, b.now)
		},
	} {
		onBench(t, name, queue.Config{}, func(t *testing.T, b *bench) {
			first, last := b.joined(), b.joined(several)
			b.refused(first)
			s := b.subscribed(first)
			b.Leave(first, b.now)
			wantReleases(t, s, 0)
			b.attempts(last)
			if b.NeedsSubscription(last) {
				t.Error("the next head needs another subscription")
			}
			if name == "accepts a grant" || name == "leaves as it is chosen" || name == "leaves as it is chosen, and then the holder ends" {
				alone := b.joined() // the waiter that gets the lock
				b.Leave(last, b.now)
				last = alone
			}
			goes(b, last)
			wantReleases(t, s, 1)
		})
	}
}

// A subscription that is no longer needed is unsubscribed at once.
func TestQueues_Subscribe_TooLate(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(b *bench, w *queue.Waiter){
		"another head has subscribed": func(b *bench, w *queue.Waiter) { b.subscribed(w) },
		"the waiter has left":         func(b *bench, w *queue.Waiter) { b.Leave(w, b.now) },
		"the waiter is chosen":        func(b *bench, _ *queue.Waiter) { b.chosen(b.holds()) },
		"the waiter was handed the lock": func(b *bench, w *queue.Waiter) {
			h := b.holds()
			b.chosen(h)
			b.CompleteHandOff(w, h, h, b.now)
		},
	} {
		onBench(t, name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined()
			b.refused(w)
			if !b.NeedsSubscription(w) {
				t.Fatal("a subscription is needed")
			}
			before(b, w)
			late := &subscription{released: func() { b.WakeToCheck("k", "") }}
			b.Subscribe(w, late)
			wantReleases(t, late, 1)
		})
	}
}

// A dead subscription is unsubscribed, and another one is needed.
func TestQueues_NeedsSubscription_Dead(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	s := b.subscribed(w)
	if b.NeedsSubscription(w) {
		t.Error("another one is needed")
	}
	s.confirmed.Store(false)
	if b.NeedsSubscription(w) {
		t.Error("another subscription is needed while this one may still be confirmed")
	}
	s.dead.Store(true)
	next := b.subscribed(w)
	wantReleases(t, s, 1)
	wantReleases(t, next, 0)
	b.Leave(w, b.now)
	wantReleases(t, s, 1)
	wantReleases(t, next, 1)
	b.wantEmpty()
}

// The head is notified that no messages arrive, unless a holder of this process explains the silence.
func TestQueues_Next_NoMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w, second := b.joined(), b.joined()
	b.refused(w)
	if b.rests(w).NoMessages || b.Listens("k") {
		t.Error("reported without a subscription")
	}
	s := b.subscribed(w)
	if b.rests(w).NoMessages || !b.Listens("k") || b.Listens("other") {
		t.Error("not listening with a subscription")
	}
	s.confirmed.Store(false)
	if !b.rests(w).NoMessages || b.Listens("k") {
		t.Error("not reported without a confirmation")
	}
	if b.rests(second).NoMessages {
		t.Error("the second waiter is notified")
	}
	b.holds()
	if b.rests(w).NoMessages {
		t.Error("reported while this process has a holder")
	}
}

// RecordMessage returns the holders to verify, whether or not a caller waits.
func TestQueues_RecordMessage_ReturnsTheHolders(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	if got := b.RecordMessage("k", b.now); got != nil {
		t.Errorf("got %v without a holder", got)
	}
	h := b.holds()
	if got := b.RecordMessage("k", b.now); !slices.Equal(got, []queue.Holder{h}) {
		t.Errorf("got %v", got)
	}
	w := b.joined()
	b.rests(w)
	if got := b.RecordMessage("k", b.now); !slices.Equal(got, []queue.Holder{h}) {
		t.Errorf("got %v", got)
	}
	b.attempts(w)
}

// An endless stream of messages causes a burst of attempts and then one attempt in each interval.
func TestQueues_RecordMessage_Pace(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	flood := func(d time.Duration) (attempts int) {
		for end := b.now.Add(d); b.now.Before(end); b.pass(ms) {
			for range 10 {
				b.RecordMessage("k", b.now)
				if s := b.Next(w, b.now); s.Attempt {
					attempts++
				} else if s.Sleep < 0 || s.Sleep > queue.PaceInterval {
					t.Fatalf("got %+v, want a sleep of at most an interval", s)
				}
			}
		}
		return attempts
	}
	want := queue.PaceBurst + int(time.Second/queue.PaceInterval)
	if got := flood(time.Second); got < want-1 || got > want+1 {
		t.Errorf("got %d attempts in a second, want %d", got, want)
	}
	if got, want := flood(time.Second), int(time.Second/queue.PaceInterval); got < want-1 || got > want+1 {
		t.Errorf("got %d attempts in the next second, want %d", got, want)
	}
	b.pass(queue.PaceInterval)
	for b.Next(w, b.now).Attempt {
		// of the last message
	}
	b.Poll(w)
	b.attempts(w)
	b.frees(first(b.takes(w)))
	again := b.joined()
	b.pass(queue.GiveWay)
	b.attempts(again)
	for i := range queue.PaceBurst {
		b.RecordMessage("k", b.now)
		if !b.Next(again, b.now).Attempt && i < queue.PaceBurst-1 {
			t.Fatalf("attempt %d of a new burst waits: an acquisition resets the count", i)
		}
	}
}

func first(h *holder, _ []queue.Replaced) *holder { return h }

// The echo of a release of this process is ignored. The next message is not.
func TestQueues_RecordMessage_Echo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		silent   bool // the subscription is not confirmed
		late     time.Duration
		notified []bool // by the first message and by the second
	}{
		{"at once", false, 0, []bool{false, true}},
		{"just in time", false, queue.EchoWindow - 1, []bool{false, true}},
		{"too late", false, queue.EchoWindow, []bool{true, true}},
		{"when nothing is listened to", true, 0, []bool{true, true}},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined(several)
			b.refused(w)
			s := b.subscribed(w)
			s.confirmed.Store(!tt.silent)
			b.frees(b.holds())
			b.refused(w)
			woken(w)
			b.pass(tt.late)
			for i, want := range tt.notified {
				b.RecordMessage("k", b.now)
				if got := woken(w); got != want {
					t.Errorf("message %d: notified %v", i, got)
				}
				b.Next(w, b.now)
			}
		})
	}
}

// The message of a release may arrive before the answer to the release.
func TestQueues_RecordMessage_EchoBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		late     time.Duration
		notified bool
	}{
		{"soon", ms, false},
		{"after all that time", queue.EchoWait, true},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined(several)
			b.refused(w)
			b.subscribed(w)
			h := b.holds()
			if b.TakeNext("k", h, b.now) != nil {
				t.Fatal("a waiter was chosen")
			}
			b.pass(tt.late)
			b.RecordMessage("k", b.now)
			wantSame(t, "notified", woken(w), tt.notified)
			b.RemoveHolder("k", h, queue.NoMessage, b.now)
			woken(w)
			b.Next(w, b.now)
			b.RecordMessage("k", b.now)
			if !woken(w) {
				t.Error("the next message counts as the echo")
			}
		})
	}
}

// A command that shortens the lease may or may not send a message.
func TestQueues_ResolveEcho(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{true, false} {
		b := newBench(t, queue.Config{})
		b.ExpectEcho("k", b.now) // no subscription gets the message
		b.ResolveEcho("k", true, b.now)
		w := b.joined()
		b.refused(w)
		b.subscribed(w)
		b.holds()
		b.ResolveEcho("k", true, b.now) // a command without ExpectEcho
		b.ExpectEcho("k", b.now)
		b.ResolveEcho("k", sent, b.now)
		b.RecordMessage("k", b.now)
		if got := woken(w); got == sent {
			t.Errorf("sent %v: notified %v", sent, got)
		}
	}
}

// If a hold ends without a message, the next message is not an echo.
func TestQueues_RemoveHolder_Unpublished(t *testing.T) {
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
		b.RemoveHolder("k", one, tt.notified, b.now)
		if doubted := b.RecordMessage("k", b.now); (len(doubted) == 0) != tt.echo {
			t.Errorf("notified %d: the message puts %v in doubt", tt.notified, doubted)
		}
		b.RemoveHolder("k", two, queue.NoMessage, b.now)
		b.Leave(w, b.now)
	}
}
