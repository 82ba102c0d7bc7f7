package core_test

import (
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// The callers of a run have one field. Evict takes the lock from the caller that has it at that time. Earlier callers
// are not notified.
func TestEvict_HolderOfARun(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		locks, operator := b.Locks(), b.Locks()
		core.LetRunsLast(locks)
		ctx, first := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"))
		locktest.AwaitWaiters(t, locks, 1)
		seen, err := operator.Inspect(t.Context(), "k")
		locktest.Must(t, err)
		locktest.MustRelease(t, first)
		o := <-next
		locktest.Must(t, o.Err)
		lost, err := operator.Evict(t.Context(), "k", seen.Holders[0].Field)
		locktest.Must(t, err)
		if len(lost.Holders) != 1 || lost.Holders[0].Field != o.Hold.Field() {
			t.Errorf("lost by %+v, want %s", lost.Holders, o.Hold.Field())
		}
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.WantErr(t, o.Hold.Release(t.Context()), core.ErrLost)
	})
}
