package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// endlessEntry begins a re-entry without a wait time while Redis refuses all: it has the
// turn of the holder for as long as that lasts, or until cancel, at most a minute.
func endlessEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) (refused *faultproxy.Rule, got <-chan outcome, cancel func()) {
	t.Helper()
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	refused = proxy.AnswerError(scripts, passes[0])
	got = acquiring(ctx, lock)
	pass(10 * time.Millisecond)
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(core.WithBackendTimeout(timeout))
			l := locks.Lock("k")
			ctx, outer := acquired(t, t.Context(), l, core.LeaseTime(time.Hour))
			_, inner := acquired(t, ctx, l, core.LeaseTime(time.Hour))
			refused, got, cancel := endlessEntry(t, ctx, proxy, l)
			defer cancel()
			for _, hold := range []*core.Hold{inner, outer} {
				start := time.Now()
				wantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				wantSame(t, "took", time.Since(start), timeout)
				wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			}
			b.wantCount(outer, "2")
			if !enters {
				cancel()
				wantErr(t, (<-got).err, core.ErrNotAcquired)
			}
			refused.Remove()
			if enters {
				o := <-got
				must(t, o.err)
				pass(time.Second)
				b.wantCount(outer, "1")
				released(t, o.hold)
			}
			pass(time.Second)
			b.wantGone("k")
		})
	}
}

// The count of an inner release that Redis has not confirmed is put right.
func TestRelease_InnerUnansweredIsPutRight(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		l := locks.Lock("k")
		ctx, outer := acquired(t, t.Context(), l, core.LeaseTime(time.Hour))
		_, inner := acquired(t, ctx, l, core.LeaseTime(time.Hour))
		refused := proxy.AnswerError(scripts, passes[0])
		wantErr(t, inner.Release(t.Context()), core.ErrUnavailable)
		b.wantCount(outer, "2")
		refused.Remove()
		pass(time.Second)
		b.wantCount(outer, "1")
		released(t, outer)
		b.wantGone("k")
	})
}

// entered enters a lock n times more.
func entered(t *testing.T, ctx context.Context, lock core.Lock, n int) (inner []*core.Hold) {
	t.Helper()
	for range n {
		_, hold := acquired(t, ctx, lock)
		inner = append(inner, hold)
	}
	return inner
}

// slowly has releases of inner holds, one after the other, have the turn of the holder for 700 ms.
// Each is answered in time. Then it calls over.
func slowly(t *testing.T, proxy *faultproxy.Proxy, inner []*core.Hold, over func()) {
	t.Helper()
	slow := proxy.DelayReply(scriptOn(t, "sethold", "k"), 150*time.Millisecond)
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing() // with a backend timeout of a second
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
			inner := entered(t, ctx, locks.Lock("k"), 5)
			start := time.Now()
			slowly(t, proxy, inner, func() {
				time.AfterFunc(busy, proxy.AnswerError(scripts, passes[0]).Remove)
			})
			must(t, do(hold))
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
	inBubble(t, func(t *testing.T, b *bed) {
		const lease = 800 * time.Millisecond
		locks, proxy := b.knowing()
		core.LetRunsLast(locks)
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(2*time.Minute))
		inner := entered(t, ctx, locks.Lock("k"), 5)
		next := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(lease))
		waiters(t, locks, 1)
		slowly(t, proxy, inner, func() {})
		released(t, hold)
		o := <-next
		must(t, o.err)
		b.wantCount(o.hold, "1")
		if left := o.hold.Remaining(); left < lease*9/10 {
			t.Errorf("%s are left of a lease of %s", left, lease)
		}
		released(t, o.hold)
	})
}
