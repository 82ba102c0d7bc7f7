package queue_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// misfit requires that w must leave, because the key is in use as another kind.
func (b *bench) misfit(w *queue.Waiter, inUseAs string) {
	b.t.Helper()
	var kind *queue.KindError
	if s := b.Next(w, b.now); s.Attempt || s.Grant != nil || !errors.As(s.Err, &kind) || kind.Kind != inUseAs {
		b.t.Errorf("got %+v, want that the key is in use as %s", s, inUseAs)
	}
}

// other changes the waiter to another kind of lock.
func other(w *queue.Wish) { w.Kind = "other" }

func ofOther(g *queue.Grant) { g.Kind = "other" }

// A grant that arrives outside the queue determines the kind of the key. A waiter for another kind is woken
// so that it leaves. It never gets the lock and blocks no other waiter.
func TestQueues_Kind_WaitersOfAnotherLeave(t *testing.T) {
	t.Parallel()
	for _, leave := range []string{"before", "after"} {
		onBench(t, leave, queue.Config{}, func(t *testing.T, b *bench) {
			first, second := b.joined(), b.joined()
			b.refused(first)
			b.rests(second)
			h, _ := b.takes(nil, ofOther)
			if !woken(first) || !woken(second) {
				t.Error("a waiter of another kind was not woken")
			}
			next := b.joined(other)
			leaves := func() {
				for _, w := range []*queue.Waiter{first, second} {
					b.misfit(w, "other")
					b.Leave(w, b.now)
				}
			}
			if leave == "before" {
				leaves()
			}
			h, w := b.hands(h)
			if w != next {
				t.Error("a waiter of another kind got the lock")
			}
			b.frees(h)
			if leave == "after" {
				leaves()
			}
			b.wantEmpty()
		})
	}
}

// If all waiters want another kind, the lock is not handed off.
func TestQueues_Kind_NoHandOffToAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	h, _ := b.takes(nil, ofOther)
	b.frees(h)
	b.misfit(w, "other") // the waiter has not made a step yet
	b.Leave(w, b.now)
	b.wantEmpty()
}

// The kind may change after a waiter was chosen. If the hand-off fails, the waiter leaves. If the hand-off
// succeeds, the waiter has the lock.
func TestQueues_Kind_ChangesDuringAHandOff(t *testing.T) {
	t.Parallel()
	for _, handed := range []bool{true, false} {
		b := newBench(t, queue.Config{})
		h := b.holds()
		w := b.joined()
		b.rests(w)
		b.chosen(h)
		stolen, _ := b.takes(nil, ofOther)
		if to := (&holder{field: "to"}); handed {
			b.CompleteHandOff(w, h, to, b.now)
			b.granted(w, to)
		} else {
			b.CancelHandOff(w, b.now)
			if !woken(w) {
				t.Error("the waiter was not woken")
			}
			b.misfit(w, "other")
			b.Leave(w, b.now)
		}
		b.frees(stolen)
		b.wantEmpty()
	}
}

// A later grant to a waiter determines the kind again.
func TestQueues_Kind_LaterGrantDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	first, _ := b.takes(nil, ofOther)
	late := b.joined(other)
	b.rests(late)
	b.RemoveHolder("k", first, 0, b.now)
	h, _ := b.takes(w)
	b.misfit(late, "plain")
	b.Leave(late, b.now)
	b.frees(h)
	b.wantEmpty()
}

// A hand-off also determines the kind again if a lock of another kind was held and released in between.
func TestQueues_Kind_LaterHandOffDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	stolen, _ := b.takes(nil, ofOther)
	late := b.joined(other)
	b.rests(late)
	b.RemoveHolder("k", stolen, 0, b.now)
	woken(late)
	to := &holder{field: "to"}
	b.CompleteHandOff(w, h, to, b.now)
	b.granted(w, to)
	if !woken(late) {
		t.Error("a waiter of another kind was not woken")
	}
	b.frees(to)
	b.misfit(late, "plain")
	b.Leave(late, b.now)
	b.wantEmpty()
}

// A key has only one kind while callers hold it or wait for it.
func TestQueues_Kind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(b *bench)
		inUse  bool
	}{
		{"no caller", func(*bench) {}, false},
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
			wantKindError(t, b.CheckKind("k", "other"), tt.inUse)
			wantKindError(t, b.CheckKind("k", "plain"), false)
			wantKindError(t, b.CheckKind("free", "other"), false)
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

// A grant of Redis determines the kind, whatever this process assumed.
func TestQueues_Kind_GrantDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	b.holds()
	b.pass(ms)
	b.takes(nil, func(g *queue.Grant) { g.Kind = "other" })
	wantKindError(t, b.CheckKind("k", "other"), false)
	var kind *queue.KindError
	if err := b.CheckKind("k", "plain"); !errors.As(err, &kind) || kind.Kind != "other" {
		t.Errorf("got %v", err)
	}
}
