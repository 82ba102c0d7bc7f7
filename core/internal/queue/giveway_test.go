package queue_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// A process that leaves a lock free for waiters without messages need not subscribe before its next attempt.
func TestPossession_GiveWay_NoSubscribeStep(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.frees(b.holds())
	h := b.holds()
	w := b.joined()
	b.pass(queue.GiveWayAfter + queue.GiveWayEvery)
	b.frees(h)
	if got := b.rests(w); got.Sleep != queue.GiveWay || got.Subscribe {
		t.Errorf("got %+v", got)
	}
}

// busy keeps the lock busy for a time. It takes each turn from Redis and leaves gaps between the turns. It
// maps the times at which the head had to leave the lock free to the durations.
func (b *bench) busy(d, turn, gap time.Duration) (gaps map[time.Time]time.Duration) {
	b.t.Helper()
	return b.busyBeside(d, turn, func() { b.pass(gap) })
}

// busyBeside is like busy, but calls between after each turn instead of leaving a gap.
func (b *bench) busyBeside(d, turn time.Duration, between func()) (gaps map[time.Time]time.Duration) {
	b.t.Helper()
	gaps = make(map[time.Time]time.Duration)
	for end := b.now.Add(d); b.now.Before(end); {
		w := b.joined()
		for {
			s := b.Next(w, b.now)
			if s.Attempt {
				break
			}
			if gaps[b.now] = s.Sleep; s.Sleep <= 0 {
				b.t.Fatalf("got %+v", s)
			}
			b.pass(s.Sleep)
		}
		h, _ := b.takes(w)
		b.pass(turn)
		b.frees(h)
		between()
	}
	return gaps
}

// Time in which other processes held the lock does not count as free. A process that takes turns with other
// processes also gives way, even if a message of theirs arrives while the process has no waiter.
func TestPossession_GiveWay_BesideOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	const windows = 20
	gaps := b.busyBeside(windows*queue.GiveWayEvery, ms, func() {
		b.pass(5 * ms)
		b.RecordMessage("k", b.now)
	})
	if n := len(gaps); n < windows-2 || n > windows+1 {
		t.Errorf("gave way %d times in %d windows", n, windows)
	}
}

// If other processes listen, this process leaves the lock free only until the next poll of a silent waiter.
// Silent waiters poll more often when a window begins. If a turn ends after that time, the process leaves the
// lock free for a whole interval.
func TestPossession_GiveWay_ShortBesideListeners(t *testing.T) {
	t.Parallel()
	for turn, want := range map[time.Duration]time.Duration{ms: queue.GiveWayShort, 130 * ms: queue.GiveWay} {
		b := newBench(t, queue.Config{})
		var longest, all time.Duration
		for range 4 * queue.GiveWayEvery / turn {
			h := b.holds()
			b.pass(turn)
			b.RecordMessage("k", b.now.Add(-ms)) // other processes were noticed, so that this process owes them no turns
			b.RemoveHolder("k", h, 1, b.now)
			w := b.joined()
			s := b.Next(w, b.now)
			longest, all = max(longest, s.Sleep), all+1
			b.Leave(w, b.now)
		}
		if longest != want {
			t.Errorf("turns of %s: the lock was left free for up to %s, want %s", turn, longest, want)
		}
	}
}

// While another process holds the lock, this process does not give way. The process of the holder gives way
// after it has freed the lock.
func TestPossession_GiveWay_BeginsWhenFreed(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.frees(b.holds())
	b.frees(b.holds())
	b.pass(queue.GiveWayAfter + 2*queue.GiveWayEvery)
	w := b.joined()
	b.refused(w) // the lock was freed before the window began and may be taken
	b.pass(queue.GiveWayEvery)
	b.Poll(w)
	b.refused(w)
	b.RecordMessage("k", b.now)
	if got := b.Next(w, b.now); got.Sleep != queue.GiveWay {
		t.Errorf("got %+v, want the process to give way", got)
	}
}

// A waiter that gets no messages polls more often when a window begins, and finds a lock that other processes
// leave free only for a short time.
func TestQueues_Next_SilentLooks(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	b.subscribed(w).confirmed.Store(false)
	looks, often := 0, 0
	for end := b.now.Add(10 * queue.GiveWayEvery); b.now.Before(end); looks++ {
		s := b.rests(w)
		if !s.NoMessages || s.Sleep <= 0 {
			t.Fatalf("got %+v", s)
		}
		if s.Sleep <= queue.SilentLook {
			often++
		}
		b.pass(min(s.Sleep, queue.SilentPoll))
	}
	if most := 10 * int(queue.GiveWayEvery/queue.SilentPoll); looks < most || looks > most*5/4 {
		t.Errorf("%d looks", looks)
	}
	if want := 10 * int(queue.SilentLooks/queue.SilentLook); often < want || often > want*3/2 {
		t.Errorf("%d looks soon after each other", often)
	}
}

// A process that keeps a lock busy regularly leaves it free for the interval of silent polls, even if its
// queue is removed after each turn.
func TestPossession_GiveWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		turn, gap time.Duration
		every     bool
	}{
		{"turn by turn", ms, 0, true},
		{"long turns", 100 * ms, 0, true},
		{"with moments between them", 10 * ms, ms, true},
		{"free for a third of the time", 10 * ms, 5 * ms, false},
		{"free for long enough each time", 10 * ms, queue.GiveWay, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			const windows = 20
			gaps := b.busy(windows*queue.GiveWayEvery, tt.turn, tt.gap)
			if !tt.every {
				if len(gaps) != 0 {
					t.Errorf("gave way %d times", len(gaps))
				}
				return
			}
			if n := len(gaps); n < windows-2 || n > windows+1 {
				t.Errorf("gave way %d times in %d windows", n, windows)
			}
			for at, d := range gaps {
				if d != queue.GiveWay-tt.gap {
					t.Errorf("at %s for %s, want %s", at, d, queue.GiveWay-tt.gap)
				}
			}
			b.wantEmpty()
		})
	}
}

// All processes give way at the same time.
func TestPossession_GiveWay_AtTheSameTime(t *testing.T) {
	t.Parallel()
	one, other := newBench(t, queue.Config{}), newBench(t, queue.Config{})
	other.pass(777 * ms)
	starts := func(b *bench) (phases []time.Duration) {
		for at := range b.busy(10*queue.GiveWayEvery, ms, 0) {
			phases = append(phases, time.Duration(at.UnixNano())%queue.GiveWayEvery)
		}
		return phases
	}
	phases := append(starts(one), starts(other)...)
	for _, p := range phases {
		if d := (p - phases[0]).Abs(); d > 2*ms && d < queue.GiveWayEvery-2*ms {
			t.Errorf("at %s and at %s of the interval", p, phases[0])
		}
	}
}

// A run ends when it is time to give way. A single long turn is not a reason to give way.
func TestPossession_MustGiveWay_EndsARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{Run: queue.RunLimits{Alone: time.Hour, Shared: time.Hour}})
	h := b.holds()
	b.joined()
	b.joined()
	b.pass(time.Minute)
	if h, _ = b.hands(h); b.TakeNext("k", h, b.now) == nil {
		t.Error("one long turn ended the run")
	}
	b = newBench(t, queue.Config{Run: queue.RunLimits{Alone: time.Hour, Shared: time.Hour}})
	b.frees(b.holds())
	h = b.holds() // again without a gap
	w := b.joined()
	b.pass(queue.GiveWayAfter + queue.GiveWayEvery)
	if b.TakeNext("k", h, b.now) != nil {
		t.Error("the run went on")
	}
	b.RemoveHolder("k", h, queue.NoMessage, b.now)
	wantSame(t, "left free for", b.rests(w).Sleep, queue.GiveWay)
}

// A head that gets no messages does not give way to other silent waiters, unless its own process
// keeps the lock busy.
func TestPossession_GiveWay_SilentHead(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		b := newBench(t, queue.Config{})
		b.frees(b.holds())
		h := b.holds()
		w := b.joined()
		b.rests(w)
		b.pass(queue.GiveWayAfter + queue.GiveWayEvery)
		b.RemoveHolder("k", h, queue.NoMessage, b.now)
		if others {
			b.Poll(w)
			b.RecordRefusal(w, queue.Refusal{}, queue.Stranger, b.now)
		}
		s := b.subscribed(w)
		s.confirmed.Store(false)
		b.Wake("k", "")
		if got := b.Next(w, b.now).Attempt; got != others {
			t.Errorf("others hold the lock %v: attempts %v", others, got)
		}
	}
}
