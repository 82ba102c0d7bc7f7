package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A hold lasts as long as so many of its leases as it needs, and is lost with the one that is
// one too many.
func TestHold_LastsAsLongAsEnoughOfItsLeases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		needs int
		lasts time.Duration // of leases that end after 10, 20 and 30 s
	}{
		"all":      {3, 10 * time.Second},
		"majority": {2, 20 * time.Second},
		"any":      {1, 30 * time.Second},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			told := &locktest.Recorder{}
			locks := b.Locks(core.WithObserver(told.Observer()))
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "b", "c"), core.LeaseTime(30*time.Second))
			core.NeedsOnly(hold, c.needs)
			core.EndLeaseEarlier(hold, 0, 20*time.Second)
			core.EndLeaseEarlier(hold, 1, 10*time.Second)
			if left := hold.Remaining(); left > c.lasts || left < c.lasts-time.Second {
				t.Errorf("remaining: got %s, want about %s", left, c.lasts)
			}
			locktest.WantAlive(t, ctx)
			locktest.Pass(c.lasts - time.Second)
			locktest.WantAlive(t, ctx)
			if n := told.Count("loss"); n > 0 || hold.Remaining() <= 0 {
				t.Errorf("told of %d losses; %s remain", n, hold.Remaining())
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
				t.Error("not lost")
			}
			locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
			locktest.Eventually(t, "told of the loss", func() bool { return told.Count("loss") > 0 }) // after the context has ended
			if n := told.Count("loss"); n != 1 || hold.Remaining() != 0 {
				t.Errorf("told of %d losses; %s remain", n, hold.Remaining())
			}
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
		})
	}
}
