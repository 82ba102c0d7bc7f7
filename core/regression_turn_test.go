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

// endlessEntry begins a re-entry without a wait time while Redis refuses all: it has the
// turn of the holder for as long as that lasts, or until cancel, at most a minute.
func endlessEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) (refused *faultproxy.Rule, got <-chan locktest.Outcome, cancel func()) {
	t.Helper()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	refused = proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
	got = locktest.GoAcquire(ctx, lock)
	locktest.Pass(10 * time.Millisecond)
	if refused.Hits() == 0 {
		t.Fatal("no re-entry has begun")
	}
	return refused, got, cancel
}

// A release waits for its turn as long as it would wait for an answer. It is put right in
// the background, whatever becomes of the re-entry in front of it.
func TestRelease_BehindAnEndlessReentry(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	for name, enters := range map[string]bool{"that enters": true, "that is given up": false} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(timeout))
			l := locks.Lock("k")
			ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
			_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
			refused, got, cancel := endlessEntry(t, ctx, proxy, l)
			defer cancel()
			for _, hold := range []*core.Hold{inner, outer} {
				start := time.Now()
				locktest.WantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				locktest.WantSame(t, "took", time.Since(start), timeout)
				locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			}
			b.WantCount(outer, "2")
			if !enters {
				cancel()
				locktest.WantErr(t, (<-got).Err, core.ErrNotAcquired)
			}
			refused.Remove()
			if enters {
				o := <-got
				locktest.Must(t, o.Err)
				locktest.Pass(time.Second)
				b.WantCount(outer, "1")
				locktest.MustRelease(t, o.Hold)
			}
			locktest.Pass(time.Second)
			b.WantGone("k")
		})
	}
}

// The count of an inner release that Redis has not confirmed is put right.
func TestRelease_InnerUnansweredIsPutRight(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := locktest.MustAcquire(t, ctx, l, core.LeaseTime(time.Hour))
		refused := proxy.AnswerError(locktest.Scripts, locktest.Passing()[0])
		locktest.WantErr(t, inner.Release(t.Context()), core.ErrUnavailable)
		b.WantCount(outer, "2")
		refused.Remove()
		locktest.Pass(time.Second)
		b.WantCount(outer, "1")
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}

// entered enters a lock n times more.
func entered(t *testing.T, ctx context.Context, lock core.Lock, n int) (inner []*core.Hold) {
	t.Helper()
	for range n {
		_, hold := locktest.MustAcquire(t, ctx, lock)
		inner = append(inner, hold)
	}
	return inner
}

// slowly has releases of inner holds, one after the other, have the turn of the holder for 700 ms.
// Each is answered in time. Then it calls over.
func slowly(t *testing.T, proxy *faultproxy.Proxy, inner []*core.Hold, over func()) {
	t.Helper()
	slow := proxy.DelayReply(locktest.ScriptOn(t, "sethold", "k"), 150*time.Millisecond)
	for _, hold := range inner {
		go func() { _ = hold.Release(context.Background()) }()
	}
	synctest.Wait() // all are in line
	time.AfterFunc(700*time.Millisecond, func() { over(); slow.Remove() })
}

// An operation that was behind one that was answered has as much time for its own as
// another one.
func TestOperations_BehindASlowOneHaveTheirTime(t *testing.T) {
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

// The lease of the next holder counts from the hand-off, however long the release waited
// for its turn.
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
