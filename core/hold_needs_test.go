package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			told := newRecorder()
			locks := b.locks(core.WithObserver(told.observer()))
			ctx, hold := acquired(t, t.Context(), locks.MultiLock("a", "b", "c"), core.LeaseTime(30*time.Second))
			core.NeedsOnly(hold, c.needs)
			core.EndLeaseEarlier(hold, 0, 20*time.Second)
			core.EndLeaseEarlier(hold, 1, 10*time.Second)
			if left := hold.Remaining(); left > c.lasts || left < c.lasts-time.Second {
				t.Errorf("remaining: got %s, want about %s", left, c.lasts)
			}
			wantAlive(t, ctx)
			pass(c.lasts - time.Second)
			wantAlive(t, ctx)
			if n := told.count("loss"); n > 0 || hold.Remaining() <= 0 {
				t.Errorf("told of %d losses; %s remain", n, hold.Remaining())
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
				t.Error("not lost")
			}
			wantErr(t, context.Cause(ctx), core.ErrLost)
			eventually(t, "told of the loss", func() bool { return told.count("loss") > 0 }) // after the context has ended
			if n := told.count("loss"); n != 1 || hold.Remaining() != 0 {
				t.Errorf("told of %d losses; %s remain", n, hold.Remaining())
			}
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
		})
	}
}
