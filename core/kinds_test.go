package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

const tokens = "redisson_lock_token:{order:42}"

// The grant of an attempt beside the queue arrives while a caller waits for the same name as another kind. The waiter
// is refused, and not handed a lock of the wrong kind.
func TestKinds_WaiterOfAnotherKindIsRefusedWhenAGrantArrives(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks := r.Behind(locktest.Patient)
	core.LetRunsLast(locks)
	grant := r.Proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
	plain := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0), core.LeaseTime(time.Minute))
	<-grant.Hit()
	refused := r.Proxy.Watch(locktest.ScriptOn(t, "fenced/acquire", "k"))
	fenced := locktest.GoAcquire(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	behind := locktest.GoAcquire(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	locktest.AwaitWaiters(t, locks, 2)
	locktest.Eventually(t, "an attempt of the waiters", func() bool { return refused.Hits() > 0 })
	grant.Release()
	hold := locktest.Got(r.T, plain).Hold
	for _, got := range []<-chan locktest.Outcome{fenced, behind} {
		locktest.WantErr(t, (<-got).Err, core.ErrInvalid)
	}
	next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
	locktest.AwaitWaiters(t, locks, 1)
	locktest.MustRelease(t, hold)
	locktest.MustRelease(t, locktest.Got(r.T, next).Hold)
	if keys := r.Client.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}
