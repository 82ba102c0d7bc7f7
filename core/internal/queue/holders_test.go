package queue_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// Who was known before the command of another was sent is gone; else the two have
// overtaken each other.
func TestAcquired_ReplacesTheHolderBefore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sent time.Duration // of the second, seen from when the first was known
		gone bool
	}{
		{"sent before", -ms, false},
		{"sent at the same time", 0, false},
		{"sent after", ms, true},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			first, replaced := b.takes(nil)
			if replaced != nil {
				t.Errorf("got %v replaced by the first", replaced)
			}
			known := b.now
			b.pass(2 * ms)
			second, replaced := b.takes(nil, sent(known.Add(tt.sent)))
			if want := []queue.Replaced{{Holder: first, Gone: tt.gone}}; !slices.Equal(replaced, want) {
				t.Errorf("got %v, want %v", replaced, want)
			}
			b.Ended("k", first, queue.NoMessage, b.now)
			if got := b.Holders("k"); !slices.Equal(got, []queue.Holder{second}) {
				t.Errorf("got the holders %v", got)
			}
			b.frees(second)
			b.wantEmpty()
		})
	}
}

// A holder that was handed the lock counts from then.
func TestAcquired_ReplacesOneThatWasHandedTheLock(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	b.joined()
	b.pass(2 * ms)
	next, _ := b.hands(h)
	_, replaced := b.takes(nil, sent(b.now.Add(-ms)))
	if want := []queue.Replaced{{Holder: next}}; !slices.Equal(replaced, want) {
		t.Errorf("got %v, want %v", replaced, want)
	}
}

// Those who share a lock hold it together, and who does not share it has it alone.
func TestAcquired_Shared(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one, two := b.holds(sharing), b.holds(sharing)
	if got := b.Holders("k"); !slices.Equal(got, []queue.Holder{one, two}) {
		t.Errorf("got the holders %v", got)
	}
	b.pass(ms)
	writer, replaced := b.takes(nil)
	if want := []queue.Replaced{{one, true}, {two, true}}; !slices.Equal(replaced, want) {
		t.Errorf("got %v, want %v", replaced, want)
	}
	b.pass(ms)
	reader, replaced := b.takes(nil, sharing)
	if want := []queue.Replaced{{writer, true}}; !slices.Equal(replaced, want) {
		t.Errorf("got %v, want %v", replaced, want)
	}
	b.frees(reader)
	b.wantEmpty()
}

// One that shares the lock does not wait for its other holders; one that wants it alone
// waits for all of them, and those behind it for their turn.
func TestShared_WaitersAndHolders(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one := b.holds(sharing)
	first, second := b.joined(shared), b.joined(shared)
	writer, last := b.joined(), b.joined(shared)
	b.attempts(first)
	b.rests(second)
	two, _ := b.takes(first, sharing)
	if !woken(second) {
		t.Error("the next one that shares was not woken")
	}
	b.attempts(second)
	three, _ := b.takes(second, sharing)
	b.rests(writer)
	b.rests(last)
	for _, h := range []*holder{one, two, three} {
		if woken(writer) {
			t.Error("woken with holders left")
		}
		if w := b.Choose("k", h, b.now); w != nil {
			t.Error("a shared lock was handed on")
		}
		b.Ended("k", h, queue.NoMessage, b.now)
	}
	b.attempts(writer)
	alone, _ := b.takes(writer)
	b.frees(alone)
	b.attempts(last)
	end, _ := b.takes(last, sharing)
	b.frees(end)
	b.wantEmpty()
}

func together(w *queue.Wish) { w.Shared, w.Together = true, true }

// Where any number can share the lock, those next to each other attempt at once when the first
// one has it; the others then one by one, so that a refusal of all is answered by one.
func TestShared_TogetherBehindTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	alone := b.holds()
	first, second, third := b.joined(together), b.joined(together), b.joined(together)
	writer, last := b.joined(), b.joined(together)
	for _, w := range []*queue.Waiter{first, second, third, writer, last} {
		b.rests(w)
	}
	b.frees(alone)
	b.attempts(first)
	b.rests(second)
	one, _ := b.takes(first, sharing)
	if !woken(second) || !woken(third) || woken(writer) || woken(last) {
		t.Error("not exactly those next to the first one were woken")
	}
	b.attempts(third)
	b.attempts(second)
	b.Refused(third, queue.Refusal{}, queue.Unseen, b.now)
	two, _ := b.takes(second, sharing)
	b.attempts(third)
	b.Leave(third, b.now)
	b.rests(writer)
	b.rests(last)
	b.Ended("k", one, queue.NoMessage, b.now)
	b.Ended("k", two, queue.NoMessage, b.now)
	b.attempts(writer)
	b.Leave(writer, b.now)
	b.Leave(last, b.now)
	b.wantEmpty()
}

// One whose attempt keeps more of them out attempts as soon as it is the head.
func TestShared_AnnouncesThatItWaits(t *testing.T) {
	t.Parallel()
	announces := func(w *queue.Wish) { w.Announces = true }
	b := newBench(t, queue.Config{})
	one := b.holds(sharing)
	w, next := b.joined(announces), b.joined(announces)
	b.refused(w)
	b.rests(next)
	two, _ := b.takes(nil, sharing)
	b.attempts(w)
	b.Refused(w, queue.Refusal{}, queue.Unseen, b.now)
	b.Ended("k", one, queue.Unpublished, b.now)
	b.rests(w)
	b.Leave(w, b.now)
	b.attempts(next)
	b.Ended("k", two, queue.Unpublished, b.now)
	b.Leave(next, b.now)
	alone := b.holds()
	b.rests(b.joined(announces))
	b.Ended("k", alone, queue.NoMessage, b.now)
}

// A writer that reads, too, hands the lock to nobody.
func TestChoose_NobodyBesideAnInnerHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	outer := b.holds()
	inner, _ := b.takes(nil, sharing, func(g *queue.Grant) { g.Under = outer })
	w := b.joined()
	if b.Choose("k", outer, b.now) != nil {
		t.Error("handed on beside its reader")
	}
	b.Ended("k", inner, queue.Unpublished, b.now)
	if b.Choose("k", outer, b.now) != w {
		t.Error("not handed on without its reader")
	}
}

// The answer to a writer's release may be late: a reader that was let in by it replaces the writer, and
// not the reader that the writer was, too.
func TestAcquired_BesideTheReaderOfAWriterThatHasLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	outer := b.holds()
	inner, _ := b.takes(nil, sharing, func(g *queue.Grant) { g.Under = outer })
	reader, replaced := b.takes(nil, sharing)
	if len(replaced) != 1 || replaced[0].Holder != queue.Holder(outer) {
		t.Errorf("replaced: got %v, want the writer only", replaced)
	}
	b.Ended("k", outer, queue.NoMessage, b.now)
	b.Ended("k", inner, queue.NoMessage, b.now)
	b.Ended("k", reader, queue.NoMessage, b.now)
	b.wantEmpty()
}

func TestHeld(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	if b.Held("k", b.now) || b.Holders("k") != nil {
		t.Error("held by nobody")
	}
	one, two := b.holds(sharing), b.holds(sharing)
	one.dead = true
	if !b.Held("k", b.now) {
		t.Error("not held with one alive")
	}
	two.dead = true
	if b.Held("k", b.now) {
		t.Error("held with both dead")
	}
}

// As long as a key is held or wanted it is of one kind.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(b *bench)
		inUse  bool
	}{
		{"nobody", func(*bench) {}, false},
		{"a holder", func(b *bench) { b.holds() }, true},
		{"a waiter", func(b *bench) { b.joined() }, true},
		{"a hand-off", func(b *bench) {
			h := b.holds()
			b.joined()
			b.chosen(h)
		}, true},
		{"a holder that has ended", func(b *bench) { b.frees(b.holds()) }, false},
		{"a waiter that has left", func(b *bench) { b.Leave(b.joined(), b.now) }, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			tt.before(b)
			before := b.Waiting()
			wantKindError(t, b.Check("k", "other"), tt.inUse)
			wantKindError(t, b.Check("k", "plain"), false)
			wantKindError(t, b.Check("free", "other"), false)
			moving := b.waiter(other, several)
			if err := b.Join("elsewhere", moving, b.now); err != nil {
				t.Fatal(err)
			}
			wantKindError(t, b.Move(moving, "k", b.now), tt.inUse)
			b.Leave(moving, b.now)
			w := b.waiter(other)
			err := b.Join("k", w, b.now)
			if wantKindError(t, err, tt.inUse); err == nil {
				b.Leave(w, b.now)
			}
			wantSame(t, "waiters", b.Waiting(), before)
		})
	}
}

func wantKindError(t *testing.T, err error, want bool) {
	t.Helper()
	var kind *queue.KindError
	if got := errors.As(err, &kind); got != want {
		t.Errorf("got %v", err)
	} else if want && (*kind != queue.KindError{Key: "k", Kind: "plain"} || kind.Error() != "queue: k is in use as plain") {
		t.Errorf("got %+v", *kind)
	}
}

// What Redis has granted decides the kind, whatever was believed.
func TestKinds_OfTheGrant(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.holds()
	b.pass(ms)
	b.takes(nil, func(g *queue.Grant) { g.Kind = "other" })
	wantKindError(t, b.Check("k", "other"), false)
	var kind *queue.KindError
	if err := b.Check("k", "plain"); !errors.As(err, &kind) || kind.Kind != "other" {
		t.Errorf("got %v", err)
	}
}
