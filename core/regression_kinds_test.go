package core_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A context that holds one of several names as another kind cannot enter that again by a
// MultiLock, which takes nothing then.
func TestKinds_OneForEachNameThatAMultiLockReenters(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, sent := b.counted()
		ctx, hold := acquired(t, t.Context(), locks.FencedLock("b"))
		before := sent.Hits()
		_, _, err := locks.MultiLock("a", "b").Acquire(ctx, core.WaitTime(time.Second))
		wantErr(t, err, core.ErrInvalid)
		wantSame(t, "scripts", sent.Hits()-before, 0)
		b.wantGone("a")
		b.wantCount(hold, "1")
		released(t, hold)
	})
}

// The answer to an attempt beside the queue comes while a caller waits for the same name as
// another kind: it is refused, and not handed a lock of the wrong kind.
func TestKinds_WaiterOfAnotherKindIsRefusedWhenAGrantArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks := r.locks(patient)
	core.LetRunsLast(locks)
	grant := r.proxy.HoldReply(faultproxy.Once(scriptOn(t, "acquire", "k")))
	plain := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(0), core.LeaseTime(time.Minute))
	<-grant.Hit()
	refused := r.proxy.Watch(scriptOn(t, "fenced/acquire", "k"))
	fenced := acquiring(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	behind := acquiring(t.Context(), locks.FencedLock("k"), core.WaitTime(10*time.Second), core.LeaseTime(time.Minute))
	waiters(t, locks, 2)
	eventually(t, "an attempt of the waiters", func() bool { return refused.Hits() > 0 })
	grant.Release()
	hold := r.mustHold(plain).hold
	for _, got := range []<-chan outcome{fenced, behind} {
		wantErr(t, (<-got).err, core.ErrInvalid)
	}
	next := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
	waiters(t, locks, 1)
	released(t, hold)
	released(t, r.mustHold(next).hold)
	if keys := r.direct.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}
