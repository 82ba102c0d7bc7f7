package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// entered re-enters a lock n times.
func entered(t *testing.T, ctx context.Context, lock core.Lock, n int) (inner []*core.Hold) {
	t.Helper()
	for range n {
		_, hold := locktest.MustAcquire(t, ctx, lock)
		inner = append(inner, hold)
	}
	return inner
}

// slowly releases inner holds one after the other, which keeps other operations on the hold waiting for 700 ms. Each
// release is answered in time. Then it calls over.
func slowly(t *testing.T, proxy *faultproxy.Proxy, inner []*core.Hold, over func()) {
	t.Helper()
	slow := proxy.DelayReply(locktest.ScriptOn(t, "sethold", "k"), 150*time.Millisecond)
	for _, hold := range inner {
		go func() { _ = hold.Release(context.Background()) }()
	}
	synctest.Wait() // all releases wait in order
	time.AfterFunc(700*time.Millisecond, func() { over(); slow.Remove() })
}

// An operation that has waited behind slow operations has its full time limit.
func TestRelease_AndOthersBehindASlowCommandHaveTheirTime(t *testing.T) {
	t.Parallel()
	const slow, busy = 700 * time.Millisecond, 500 * time.Millisecond
	for name, do := range map[string]func(h *core.Hold) error{
		"release": func(h *core.Hold) error { return h.Release(context.Background()) },
		"refresh": func(h *core.Hold) error { return h.Refresh(context.Background(), time.Minute) },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy() // with a backend timeout of a second
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
			inner := entered(t, ctx, locks.Lock("k"), 5)
			start := time.Now()
			slowly(t, proxy, inner, func() {
				time.AfterFunc(busy, proxy.AnswerError(locktest.Scripts, locktest.Passing()[0]).Remove)
			})
			locktest.Must(t, do(hold))
			if took := time.Since(start); took < slow+busy {
				t.Errorf("took %s: nothing is tested", took)
			}
		})
	}
}

// The lease of the next holder counts from the hand-off, however long the release has waited for its turn.
func TestRelease_BehindASlowOneGivesTheWholeLease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const lease = 800 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		core.LetRunsLast(locks)
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
		inner := entered(t, ctx, locks.Lock("k"), 5)
		next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		locktest.AwaitWaiters(t, locks, 1)
		slowly(t, proxy, inner, func() {})
		locktest.MustRelease(t, hold)
		o := <-next
		locktest.Must(t, o.Err)
		b.WantCount(o.Hold, "1")
		if left := o.Hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s are left of a lease of %s", left, lease)
		}
		locktest.MustRelease(t, o.Hold)
	})
}
