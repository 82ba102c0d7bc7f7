package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A refresh that Redis refuses sends no message. The next message is from another client, and the holder asks Redis
// about it.
func TestRefresh_RefusedExpectsNoMessage(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		waiting, cancel := context.WithCancel(t.Context())
		next := locktest.GoAcquire(waiting, locks.Lock("k"))
		b.AwaitListeners("k", 1)
		proxy.AnswerError(locktest.ScriptOn(t, "acquire", "k"), locktest.Passing()[0]) // the waiter does not ask instead
		proxy.AnswerError(locktest.ScriptOn(t, "refresh", "k"), "NOPERM no")
		locktest.WantErr(t, hold.Refresh(t.Context(), 30*time.Second), core.ErrUnavailable)
		_, err := b.Locks().Lock("k").ForceRelease(t.Context())
		locktest.Must(t, err)
		locktest.Pass(50 * time.Millisecond) // the holder asks every 20 ms at most
		locktest.WantEnded(t, ctx, core.ErrLost)
		cancel()
		<-next
	})
}
