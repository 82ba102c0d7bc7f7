package turns_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Redis has executed a hand-off, but the waiter has left, and its short lease has expired when the reply arrives. The
// release has succeeded nevertheless.
func TestRelease_HandedToAWaiterThatHasLeft(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"in time": 30 * time.Millisecond, "sent again": 300 * time.Millisecond} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			obs := &locktest.Recorder{}
			locks, proxy := b.BehindAProxy(core.WithObserver(obs.Observer()))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			got := locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(10*time.Millisecond))
			locktest.AwaitWaiters(t, locks, 1)
			handoff := proxy.DelayReply(faultproxy.Once(locktest.ScriptOn(t, "handoff", "k")), delay)
			done := locktest.GoRelease(hold)
			<-handoff.Hit()
			cancel()
			locktest.WantErr(t, (<-got).Err, context.Canceled)
			locktest.WantOK(t, <-done)
			locktest.WantSame(t, "losses", obs.Count("loss"), 0)
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}
