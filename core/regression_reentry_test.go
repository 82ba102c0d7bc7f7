package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A refresh that shortens the lease and is not answered ends the hold in time, also
// when the watchdog has another hold to look at first.
func TestRefresh_UnansweredEndsInTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		_, _ = acquired(t, t.Context(), locks.Lock("other"), core.LeaseTime(30*time.Second))
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		proxy.BlackHole(true)
		start := time.Now()
		wantErr(t, hold.Refresh(t.Context(), 2*time.Second), core.ErrUnavailable)
		<-ctx.Done()
		wantSoon(t, "ended after %s", start, 2*time.Second)
		wantErr(t, context.Cause(ctx), core.ErrLost)
	})
}

// stuckEntry begins a re-entry whose command does not reach Redis, up to the backend
// timeout: it has the turn of the holder.
func stuckEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) *faultproxy.Rule {
	t.Helper()
	stuck := proxy.HoldRequest(scriptOn(t, "sethold", "k"))
	go func() { _, _, _ = lock.Acquire(ctx) }()
	<-stuck.Hit()
	return stuck
}

// Re-entries end with their wait time, side by side, when Redis is silent.
func TestReenter_SilentRedis_WaitTimeIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const wait = 100 * time.Millisecond
		locks, proxy := b.knowing()
		ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
		proxy.BlackHole(true)
		var all []<-chan outcome
		for range 5 {
			all = append(all, acquiring(ctx, locks.Lock("k"), core.WaitTime(wait)))
		}
		for _, got := range all {
			o := <-got
			wantOnly(t, o.err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.took > wait {
				t.Errorf("took %s, want %s at most", o.took, wait)
			}
		}
	})
}

// A silent Redis costs a re-entry the backend timeout, whatever failed before it, and
// those that come after it nothing. When Redis is back, so are re-entries.
func TestReenter_SilentRedis_OnePaysForAll(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const long = 3 * time.Second
		locks, proxy := b.knowing()
		l := locks.Lock("k")
		ctx, hold := acquired(t, t.Context(), l)
		proxy.BlackHole(true)
		for range 5 {
			o := <-acquiring(ctx, l, core.WaitTime(20*time.Millisecond))
			wantErr(t, o.err, core.ErrUnavailable)
		}
		start := time.Now()
		first, second := acquiring(ctx, l, core.WaitTime(long)), acquiring(ctx, l)
		for _, got := range []<-chan outcome{first, second} {
			wantOnly(t, (<-got).err, core.ErrUnavailable, core.ErrNotAcquired)
			wantSoon(t, "took %s", start, core.DefaultBackendTimeout)
		}
		for _, parent := range []context.Context{ctx, t.Context()} {
			o := <-acquiring(parent, l, core.WaitTime(long))
			wantErr(t, o.err, core.ErrUnavailable)
			if o.took != 0 {
				t.Errorf("the next one took %s, want an error at once", o.took)
			}
		}
		proxy.BlackHole(false)
		pass(time.Second)
		_, inner := acquired(t, ctx, l, core.WaitTime(long))
		released(t, inner)
		released(t, hold)
		b.wantGone("k")
	})
}

// A re-entry that Redis has executed, and whose replies are lost, does not stay in the
// count.
func TestReenter_UnansweredIsTakenBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
		lost := proxy.DropReply(scriptOn(t, "sethold", "k"))
		o := <-acquiring(ctx, locks.Lock("k"), core.WaitTime(100*time.Millisecond))
		wantErr(t, o.err, core.ErrUnavailable)
		pass(time.Second)
		lost.Remove()
		b.HSet(t.Context(), "k", hold.Field(), "2") // whatever was executed last
		pass(time.Second)
		b.wantCount(hold, "1")
		released(t, hold)
	})
}

// Who waits for its turn behind a command without an answer waits no longer than asked
// for, and says for how long it did.
func TestReenter_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	const wait = 100 * time.Millisecond
	for name, cancelled := range map[string]bool{"wait time": false, "context": true} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			l := locks.Lock("k")
			ctx, _ := acquired(t, t.Context(), l)
			stuckEntry(t, ctx, proxy, l)
			opts := []core.AcquireOption{core.WaitTime(wait)}
			if cancelled {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
				opts = nil
			}
			o := <-acquiring(ctx, l, opts...)
			if o.took != wait {
				t.Errorf("took %s, want %s", o.took, wait)
			}
			if !cancelled {
				wantOnly(t, o.err, core.ErrUnavailable, core.ErrNotAcquired)
				return
			}
			wantErr(t, o.err, core.ErrNotAcquired, context.DeadlineExceeded)
			if e := notAcquired(t, o.err); e.Waited != wait {
				t.Errorf("Waited: got %s, want %s", e.Waited, wait)
			}
		})
	}
}

func TestReenter_WaitedOfALostLock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const slow = 30 * time.Millisecond
		locks, proxy := b.knowing()
		ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
		b.Del(t.Context(), "k")
		proxy.DelayReply(scriptOn(t, "sethold", "k"), slow)
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(ctx)
		wantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		wantSame(t, "waited", time.Since(start), slow)
	})
}

// An answer that makes no sense is no silence: nobody else fails for it.
func TestReenter_RefusalIsNoSilence(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	locks := b.locks()
	ctx, _ := acquired(t, t.Context(), locks.Lock("k"))
	must(t, b.Do(t.Context(), "acl", "setuser", "default", "-hexists").Err())
	_, _, err := locks.Lock("k").Acquire(ctx)
	wantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	must(t, b.Do(t.Context(), "acl", "setuser", "default", "+hexists").Err())
	_, inner := acquired(t, ctx, locks.Lock("k"), core.WaitTime(0))
	released(t, inner)
}

// A refresh behind a command without an answer takes the backend timeout in all.
func TestRefresh_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		stuckEntry(t, ctx, proxy, locks.Lock("k"))
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		wantErr(t, hold.Refresh(short, time.Hour), core.ErrUnavailable, context.DeadlineExceeded)
		proxy.BlackHole(true)
		start := time.Now()
		wantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrUnavailable)
		wantSoon(t, "took %s", start, core.DefaultBackendTimeout)
		wantAlive(t, ctx)
	})
}

// However many re-entries have failed, one writer puts the count right, and a release
// does not wait for it.
func TestReenter_FailedOnesDelayNoRelease(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		l := locks.Lock("k")
		ctx, hold := acquired(t, t.Context(), l)
		stuck := proxy.HoldRequest(scriptOn(t, "sethold", "k"))
		for range 20 {
			o := <-acquiring(ctx, l, core.WaitTime(10*time.Millisecond))
			wantErr(t, o.err, core.ErrUnavailable)
		}
		sent := stuck.Hits()
		pass(500 * time.Millisecond)
		if n := stuck.Hits() - sent; n > 10 {
			t.Errorf("%d writes in half a second", n)
		}
		start := time.Now()
		released(t, hold)
		wantSoon(t, "the release took %s", start, 50*time.Millisecond)
		b.wantGone("k")
		stuck.Release()
		pass(2 * time.Second)
		b.wantGone("k")
	})
}

// The entry of one key is taken back when that of another key fails. If it was the last
// hold by then, the key is freed.
func TestMultiLock_TakesItsEntriesBack(t *testing.T) {
	t.Parallel()
	for name, outerReleased := range map[string]bool{"outer held": false, "outer released": true} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, first := acquired(t, t.Context(), locks.Lock("a"))
			ctx, second := acquired(t, ctx, locks.Lock("b"))
			lost := proxy.DropRequest(scriptOn(t, "sethold", "b"))
			got := acquiring(context.WithoutCancel(ctx), locks.MultiLock("a", "b"), core.WaitTime(100*time.Millisecond))
			<-lost.Hit()
			b.wantCount(first, "2")
			if outerReleased {
				released(t, first)
				b.wantCount(first, "1")
			}
			wantErr(t, (<-got).err, core.ErrUnavailable)
			pass(100 * time.Millisecond)
			if outerReleased {
				b.wantGone("a")
			} else {
				b.wantCount(first, "1")
				released(t, first)
			}
			lost.Remove()
			pass(time.Second)
			b.wantCount(second, "1")
			released(t, second)
			b.wantGone("a", "b")
		})
	}
}
