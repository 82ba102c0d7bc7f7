package queue_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// Whether the lock was taken while a waiter waited is known from any waiter of its queue,
// and from the holders of this process.
func TestTakenSince(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		before  func(b *bench) // the waiter comes
		after   func(b *bench)
		taken   bool
		refusal bool
	}{
		{"nothing is known", nothing, nothing, false, false},
		{"another was refused before", refusesFirst, nothing, false, false},
		{"another was refused since", func(b *bench) { b.joined() }, refusesFirst, true, true},
		{"a holder is there", func(b *bench) { b.holds() }, nothing, true, false},
		{"a holder has come since", nothing, func(b *bench) { b.holds() }, true, false},
		{"a holder has ended before", func(b *bench) { b.frees(b.holds()) }, nothing, false, false},
		{"a holder has ended since", nothing, func(b *bench) { b.Ended("k", b.holds(), queue.NoMessage, b.now) }, true, false},
	} {
		onBench(t, tt.name, queue.Config{}, func(t *testing.T, b *bench) {
			tt.before(b)
			b.pass(ms)
			w := b.waiter()
			if _, _, taken := b.TakenSince(w); taken {
				t.Error("known before it waits")
			}
			if err := b.Join("k", w, b.now); err != nil {
				t.Fatal(err)
			}
			b.pass(ms)
			tt.after(b)
			r, at, taken := b.TakenSince(w)
			if taken != tt.taken || (r != nil) != tt.refusal {
				t.Errorf("got %v, %v", r, taken)
			}
			if r != nil && (r.Holder != "stranger" || !at.Equal(b.now)) {
				t.Errorf("got %v at %s", *r, at)
			}
		})
	}
}

// Holders with whom a waiter would share the lock do not say that it is taken; nor does their end.
func TestTakenSince_Shared(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h, _ := b.takes(nil, sharing)
	sharer, other := b.joined(shared), b.joined()
	_, _, taken := b.TakenSince(sharer)
	if _, _, known := b.TakenSince(other); taken || !known {
		t.Errorf("taken for one who shares it: %v, for another: %v", taken, known)
	}
	b.Ended("k", h, queue.NoMessage, b.now)
	if _, _, taken := b.TakenSince(sharer); taken {
		t.Error("taken since a holder has ended that shared it")
	}
	if b.Unanswered(sharer) {
		t.Error("unanswered, although nobody has asked")
	}
	b.Leave(sharer, b.now)
	b.Leave(other, b.now)
	b.wantEmpty()
}

// What nobody holds passes from waiter to waiter, and nothing is left of them. Who waits in lanes
// does not wait for another one.
func TestPassed(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	first, second, third := b.joined(shared), b.joined(shared), b.joined(shared)
	b.refused(first)
	b.rests(second)
	b.Wake("k", "")
	for _, w := range []*queue.Waiter{first, second, third} {
		b.attempts(w)
		if !b.Waited("k") {
			t.Error("nobody waits")
		}
		b.Served(w, b.now)
	}
	b.wantEmpty()
	var lanes []*queue.Waiter
	for _, name := range []string{"a", "b"} {
		w := b.joined(shared, func(w *queue.Wish) { w.Lane = name })
		b.refused(w)
		lanes = append(lanes, w)
	}
	b.WakeLanes("k")
	for _, w := range lanes {
		b.attempts(w)
	}
	for _, w := range lanes {
		b.Served(w, b.now)
	}
	b.wantEmpty()
	if b.Waited("k") {
		t.Error("somebody waits")
	}
}

func nothing(*bench) {}

// refusesFirst has the head refused, which joins if nobody is there.
func refusesFirst(b *bench) {
	if len(b.Order("k")) == 0 {
		b.joined()
	}
	b.refused(b.Order("k")[0])
}

// A waiter behind a head without an answer knows nothing about the lock.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	head := b.joined()
	b.attempts(head)
	second := b.joined()
	b.pass(ms)
	third := b.joined()
	want := func(what string, want bool) {
		t.Helper()
		if b.Unanswered(second) != want || b.Unanswered(third) != want {
			t.Errorf("%s: got %v, %v, want %v", what, b.Unanswered(second), b.Unanswered(third), want)
		}
	}
	want("the head has no answer", true)
	b.Poll(head)
	b.attempts(head)
	want("nor a second time", true)
	h := b.holds()
	want("somebody here has it", false)
	b.Ended("k", h, queue.NoMessage, b.now)
	want("somebody here has had it", false)
	b.attempts(head)
	if b.Unanswered(second) {
		t.Error("the attempt was sent after it came")
	}
	b.Refused(head, queue.Refusal{}, queue.Stranger, b.now)
	want("the head was refused", false)
}

// One that moves away has had an answer.
func TestUnanswered_AfterAMove(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	head := b.joined(several)
	b.attempts(head)
	second := b.joined()
	if !b.Unanswered(second) {
		t.Error("answered before the answer")
	}
	if err := b.Move(head, "other", b.now); err != nil {
		t.Fatal(err)
	}
	if b.Unanswered(second) {
		t.Error("not answered after it")
	}
}

// An attempt that its caller gave up says nothing about a lock that the next waiter leaves to others.
func TestUnanswered_WhileTheHeadStandsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	h := b.holds()
	hasty := b.joined(func(w *queue.Wish) { w.Until = b.now.Add(2 * ms) })
	b.Ended("k", h, 1, b.now)
	b.pass(b.rests(hasty).Sleep)
	b.attempts(hasty)
	second := b.joined()
	b.pass(ms / 10)
	third := b.joined()
	b.Leave(hasty, b.now)
	if !b.Unanswered(third) {
		t.Error("nothing is tested: the attempt has an answer")
	}
	b.rests(second)
	if b.Unanswered(third) {
		t.Error("the attempt counts, though no attempt is under way")
	}
}

// A look for a grant is no attempt: one that is due stays so, and nobody has been asked.
func TestGranted_OnlyLooks(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	w := b.joined()
	b.pass(ms)
	if grant, _ := b.Granted(w); grant != nil {
		t.Errorf("got the grant %v", grant)
	}
	if !b.Due(w) {
		t.Error("the waiter is not due any more")
	}
	b.pass(ms)
	if later := b.joined(); b.Unanswered(later) {
		t.Error("an attempt is believed to be on its way")
	}
	b.refused(w)
	h, _ := b.takes(nil)
	to := &holder{field: "to"}
	b.Handed(b.chosen(h), h, to, b.now)
	if grant, from := b.Granted(w); grant != queue.Holder(to) || from != h.field {
		t.Errorf("got the grant %v from %q, want %v from %q", grant, from, to, h.field)
	}
	b.granted(w, to)
}
