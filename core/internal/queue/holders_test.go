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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, queue.Config{})
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
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, queue.Config{})
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
			if got := b.Waiting(); got != before {
				t.Errorf("got %d waiters, want %d", got, before)
			}
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
