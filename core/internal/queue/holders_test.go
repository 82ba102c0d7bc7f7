package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// If a holder was known before another client sent its command, that holder is gone. Otherwise the answers
// may have overtaken each other.
func TestQueues_RecordGrant_ReplacesTheHolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sent time.Duration // when the second command was sent, relative to when the first holder became known
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
			b.RemoveHolder("k", first, queue.NoMessage, b.now)
			if got := b.Holders("k"); !slices.Equal(got, []queue.Holder{second}) {
				t.Errorf("got the holders %v", got)
			}
			b.frees(second)
			b.wantEmpty()
		})
	}
}

// A holder that got the lock by a hand-off is known from the time of the hand-off.
func TestQueues_RecordGrant_ReplacesAfterAHandOff(t *testing.T) {
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

func together(w *queue.Wish) { w.Shared, w.Together = true, true }

// A writer that also holds the read lock hands the lock to no waiter.
func TestQueues_TakeNext_BesideAnInnerHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	outer := b.holds()
	inner, _ := b.takes(nil, sharing, func(g *queue.Grant) { g.Under = outer })
	w := b.joined()
	if b.TakeNext("k", outer, b.now) != nil {
		t.Error("the writer handed the lock on although its reader remains")
	}
	b.RemoveHolder("k", inner, queue.Unpublished, b.now)
	if b.TakeNext("k", outer, b.now) != w {
		t.Error("the writer did not hand the lock on after its reader had left")
	}
}

// The answer to a writer's release may be late. A reader that acquires the lock after the release replaces
// the writer, but not the writer's read hold.
func TestQueues_RecordGrant_AfterAWriterThatReads(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	outer := b.holds()
	inner, _ := b.takes(nil, sharing, func(g *queue.Grant) { g.Under = outer })
	reader, replaced := b.takes(nil, sharing)
	if len(replaced) != 1 || replaced[0].Holder != queue.Holder(outer) {
		t.Errorf("replaced: got %v, want the writer only", replaced)
	}
	b.RemoveHolder("k", outer, queue.NoMessage, b.now)
	b.RemoveHolder("k", inner, queue.NoMessage, b.now)
	b.RemoveHolder("k", reader, queue.NoMessage, b.now)
	b.wantEmpty()
}

func TestQueues_Held(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	if b.Held("k", b.now) || b.Holders("k") != nil {
		t.Error("held by no caller")
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

func wantKindError(t *testing.T, err error, want bool) {
	t.Helper()
	var kind *queue.KindError
	if got := errors.As(err, &kind); got != want {
		t.Errorf("got %v", err)
	} else if want && (*kind != queue.KindError{Key: "k", Kind: "plain"} || kind.Error() != "queue: k is in use as plain") {
		t.Errorf("got %+v", *kind)
	}
}

// Each release of a sharer wakes the head, because the head may now be able to get the lock.
func TestQueues_RemoveHolder_SharerWakesTheHead(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	one, two := b.holds(sharing), b.holds(sharing)
	w := b.joined(shared)
	b.refused(w)
	b.RemoveHolder("k", one, queue.NoMessage, b.now)
	b.attempts(w)
	b.RecordRefusal(w, queue.Refusal{}, queue.Unseen, b.now)
	b.rests(w)
	alone := b.joined() // waits behind the head
	b.RemoveHolder("k", two, queue.NoMessage, b.now)
	b.attempts(w)
	b.Leave(w, b.now)
	b.Leave(alone, b.now)
	b.wantEmpty()
}

// A holder inside another holder does not replace the outer one, and outlives the outer one.
func TestQueues_RecordGrant_UnderAHolder(t *testing.T) {
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
				b.RemoveHolder("k", inner, queue.Unpublished, b.now)
				b.rests(reader)
				b.RemoveHolder("k", outer, queue.NoMessage, b.now)
			} else {
				b.RemoveHolder("k", outer, queue.NoMessage, b.now)
				b.attempts(reader) // the inner holder shares the lock
				b.RemoveHolder("k", inner, queue.NoMessage, b.now)
			}
			b.Leave(reader, b.now)
			b.wantEmpty()
		})
	}
}
