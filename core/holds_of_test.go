package core_test

import (
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A context leads to all holds that it was made under, the innermost first, also to those of
// another client, and to none that is over. Detach hides them.
func TestHoldsOf_ListsWhatTheContextCarries(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, others := b.Locks(), b.Locks()
		if got := core.HoldsOf(t.Context()); got != nil {
			t.Errorf("of a context without a lock: got %v, want none", got)
		}
		ctx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("outer"), core.Label("pay"))
		ctx, again := locktest.MustAcquire(t, ctx, locks.Lock("outer"))
		ctx, inner := locktest.MustAcquire(t, ctx, others.Lock("inner"))

		got := core.HoldsOf(ctx)
		want := []*core.Hold{inner, again, outer}
		if len(got) != len(want) {
			t.Fatalf("got %d holds, want %d: %+v", len(got), len(want), got)
		}
		for i, hold := range want {
			if got[i].Key != hold.Key() || got[i].Field != hold.Field() {
				t.Errorf("hold %d: got %s of %s, want %s of %s", i, got[i].Field, got[i].Key, hold.Field(), hold.Key())
			}
		}
		if !got[1].Reentrant || got[2].Reentrant || got[2].Label != "pay" {
			t.Errorf("got %+v, want the second one as a re-entry and the label of the last one", got)
		}
		if hidden := core.HoldsOf(core.Detach(ctx)); hidden != nil {
			t.Errorf("of a detached context: got %v, want none", hidden)
		}
		locktest.MustRelease(t, inner)
		if left := core.HoldsOf(ctx); len(left) != 2 || left[0].Key != again.Key() {
			t.Errorf("after the release of the inner one: got %+v, want the two of the outer lock", left)
		}
		locktest.MustRelease(t, again)
		locktest.MustRelease(t, outer)
		if left := core.HoldsOf(ctx); left != nil {
			t.Errorf("after all releases: got %+v, want none", left)
		}
	})
}
