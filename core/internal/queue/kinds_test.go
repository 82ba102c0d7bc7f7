package queue_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// misfit wants the next step of w to be to leave, because the key is in use as another kind.
func (b *bench) misfit(w *queue.Waiter, inUseAs string) {
	b.t.Helper()
	var kind *queue.KindError
	if s := b.Next(w, b.now); s.Attempt || s.Grant != nil || !errors.As(s.Err, &kind) || kind.Kind != inUseAs {
		b.t.Errorf("got %+v, want that the key is in use as %s", s, inUseAs)
	}
}

// other wants another kind of lock.
func other(w *queue.Wish) { w.Kind = "other" }

func ofOther(g *queue.Grant) { g.Kind = "other" }

// A grant that arrives beside the queue decides of what kind it is. Who waits for another one
// is woken to leave, is never handed the lock, and stands in nobody's way.
func TestKinds_WaitersOfAnotherLeave(t *testing.T) {
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
				t.Error("the lock was handed to a waiter of another kind")
			}
			b.frees(h)
			if leave == "after" {
				leaves()
			}
			b.wantEmpty()
		})
	}
}

// Alone they do not keep the lock in this process.
func TestKinds_NobodyIsChosenAmongWaitersOfAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.refused(w)
	h, _ := b.takes(nil, ofOther)
	b.frees(h)
	b.misfit(w, "other") // it has not looked up to now
	b.Leave(w, b.now)
	b.wantEmpty()
}

// One that was chosen before finds out when it was not handed the lock; one that was has it.
func TestKinds_ChosenBeforeTheOtherKindCame(t *testing.T) {
	t.Parallel()
	for _, handed := range []bool{true, false} {
		b := newBench(t, queue.Config{})
		h := b.holds()
		w := b.joined()
		b.rests(w)
		b.chosen(h)
		stolen, _ := b.takes(nil, ofOther)
		if to := (&holder{field: "to"}); handed {
			b.Handed(w, h, to, b.now)
			b.granted(w, to)
		} else {
			b.NotHanded(w, b.now)
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

// A waiter whose own attempt was granted after that decides again.
func TestKinds_LaterGrantDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.attempts(w)
	first, _ := b.takes(nil, ofOther)
	late := b.joined(other)
	b.rests(late)
	b.Ended("k", first, 0, b.now)
	h, _ := b.takes(w)
	b.misfit(late, "plain")
	b.Leave(late, b.now)
	b.frees(h)
	b.wantEmpty()
}

// A hand-off that arrives after a lock of another kind has come and gone decides again, too.
func TestKinds_HandOffThatArrivesLaterDecides(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	w := b.joined()
	b.chosen(h)
	stolen, _ := b.takes(nil, ofOther)
	late := b.joined(other)
	b.rests(late)
	b.Ended("k", stolen, 0, b.now)
	woken(late)
	to := &holder{field: "to"}
	b.Handed(w, h, to, b.now)
	b.granted(w, to)
	if !woken(late) {
		t.Error("a waiter of another kind was not woken")
	}
	b.frees(to)
	b.misfit(late, "plain")
	b.Leave(late, b.now)
	b.wantEmpty()
}
