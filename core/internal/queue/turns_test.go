package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// After a run the head leaves the lock to those that were notified, for a moment, or until
// they have released it.
func TestStandBack(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		notified int
		after    func(b *bench)
		want     time.Duration
	}{
		{"others were notified", 1, nothing, queue.StandBack},
		{"nobody was", 0, nothing, 0},
		{"a little later", 1, func(b *bench) { b.pass(ms) }, queue.StandBack - ms},
		{"afterwards", 1, func(b *bench) { b.pass(queue.StandBack) }, 0},
		{"others have released it", 1, func(b *bench) { b.Message("k", b.now) }, 0},
		{"another one here has had it", 1, func(b *bench) { b.Ended("k", b.holds(), queue.NoMessage, b.now) }, 0},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			w := b.joined()
			b.rests(w)
			b.Ended("k", h, tt.notified, b.now)
			tt.after(b)
			if tt.want == 0 {
				b.attempts(w)
				return
			}
			if got := b.rests(w); got.Sleep != tt.want || !got.Head {
				t.Errorf("got %+v, want a sleep of %s", got, tt.want)
			}
			b.pass(tt.want)
			b.attempts(w)
		})
	}
}

// A caller that comes back at once leaves the lock to others, too, and listens to them.
func TestStandBack_WhoComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.Ended("k", b.holds(), 1, b.now)
	b.wantEmpty()
	w := b.joined()
	if got := b.rests(w); got.Sleep != queue.StandBack || !got.Deaf || !got.Head {
		t.Errorf("got %+v, want a sleep of %s, without a subscription", got, queue.StandBack)
	}
	b.subscribed(w)
	if got := b.rests(w); got.Sleep != queue.StandBack || got.Deaf {
		t.Errorf("got %+v, want a sleep of %s, with a subscription", got, queue.StandBack)
	}
	b.Confirmed("k", b.now)
	if got := b.rests(w).Sleep; got != queue.StandBack || !woken(w) {
		t.Errorf("got %s, want a confirmation to be no release", got)
	}
	b.Message("k", b.now)
	b.attempts(w)
}

// A message about a key without a queue is heard by its next caller, unless it is the echo
// of our own release.
func TestStandBack_MessageBeforeSomebodyComes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		messages int
		want     time.Duration
	}{
		{"none", 0, queue.StandBack},
		{"the echo", 1, queue.StandBack},
		{"those of two other releases", 3, 0}, // a stranger is owed two turns for one
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			w := b.joined()
			b.refused(w)
			b.subscribed(w)
			h, _ := b.takes(w)
			if !b.Listens("k") {
				t.Error("a subscription that was given back is not remembered")
			}
			if b.Choose("k", h, b.now) != nil {
				t.Error("somebody was chosen")
			}
			b.Ended("k", h, 1, b.now)
			b.wantEmpty()
			if !b.Listens("k") {
				t.Error("a subscription is not remembered without a queue")
			}
			for range tt.messages {
				if got := b.Message("k", b.now); got != nil {
					t.Errorf("got the holders %v", got)
				}
			}
			next := b.joined()
			if tt.want == 0 {
				b.attempts(next)
			} else if got := b.rests(next).Sleep; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Between fellows who has waited longest is first, and the others are later by a step for
// each that is before them.
func TestRanks(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	b.Refused(w, queue.Refusal{}, queue.Fellow, b.now)
	b.subscribed(w)
	b.Message("k", b.now)
	b.attempts(w)
	h, _ := b.takes(w)
	next := b.joined()
	b.Ended("k", h, 3, b.now)
	for before := 3; before > 0; before-- {
		if got := b.rests(next).Sleep; got != time.Duration(before)*queue.RankStep {
			t.Errorf("got %s with %d before it", got, before)
		}
		b.Message("k", b.now)
	}
	b.attempts(next)
}

// Who joins holders of this process that share the lock has not taken a turn of its own.
func TestRanks_SharersJoinATurn(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	b.Refused(w, queue.Refusal{}, queue.Fellow, b.now)
	h, _ := b.takes(w)
	b.Ended("k", h, 3, b.now)
	for range 3 {
		b.Message("k", b.now)
	}
	all := []*holder{b.holds(sharing), b.holds(sharing), b.holds(sharing), b.holds(sharing), b.holds(sharing)}
	for _, h := range all {
		b.Ended("k", h, 3, b.now)
	}
	wantSame(t, "rest", b.rests(b.joined()).Sleep, 3*queue.RankStep)
}

// A caller whose wait ends soon keeps enough of it for an attempt.
func TestStandBack_KeepsAReserve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left, want time.Duration
	}{
		{ms, ms / 2},
		{2 * ms, ms},
		{3 * ms, 3 * ms / 2},
		{4 * ms, 2 * ms},
		{6 * ms, queue.StandBack},
		{queue.Reserve * 3, queue.StandBack},
	} {
		onBench(t, fmt.Sprint(tt.left), queue.Config{}, func(t *testing.T, b *bench) {
			h := b.holds()
			w := b.joined(until(b.now.Add(tt.left)))
			b.rests(w)
			b.Ended("k", h, 1, b.now)
			wantSame(t, "rest", b.rests(w).Sleep, tt.want)
			b.pass(tt.want)
			b.attempts(w)
		})
	}
}

// What is remembered of keys without a queue is bounded, and makes room for others when it
// says nothing any more.
func TestRecent_IsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	use := func(n int) {
		for i := range n {
			key := fmt.Sprint(i, b.now)
			h := &holder{field: "f"}
			b.Acquired(key, nil, queue.Grant{Holder: h, Kind: "plain", Sent: b.now}, b.now)
			b.Ended(key, h, queue.NoMessage, b.now)
		}
	}
	most, _ := b.Recent()
	use(20 * most)
	if _, got := b.Recent(); got != most {
		t.Errorf("remembers %d, want %d", got, most)
	}
	b.pass(queue.GiveWay)
	use(20 * most)
	b.pass(queue.GiveWay)
	use(1)
	if _, got := b.Recent(); got > most-40 && got != most {
		t.Errorf("remembers %d, want those of one shard to have made room", got)
	}
}
