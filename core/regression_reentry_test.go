package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A refresh that shortens the lease and is not answered ends the hold in time, also
// when the watchdog has another hold to look at first.
func TestRefresh_UnansweredEndsInTime(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		_, _ = locktest.MustAcquire(t, t.Context(), locks.Lock("other"), core.LeaseTime(30*time.Second))
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Refresh(t.Context(), 2*time.Second), core.ErrUnavailable)
		<-ctx.Done()
		locktest.WantSoon(t, "ended after %s", start, 2*time.Second)
		locktest.WantErr(t, context.Cause(ctx), core.ErrLost)
	})
}

// stuckEntry begins a re-entry whose command does not reach Redis, up to the backend
// timeout: it has the turn of the holder.
func stuckEntry(t *testing.T, ctx context.Context, proxy *faultproxy.Proxy, lock core.Lock) *faultproxy.Rule {
	t.Helper()
	stuck := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
	go func() { _, _, _ = lock.Acquire(ctx) }()
	<-stuck.Hit()
	return stuck
}

// Re-entries end with their wait time, side by side, when Redis is silent.
func TestReenter_SilentRedis_WaitTimeIsKept(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const wait = 100 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		proxy.BlackHole(true)
		var all []<-chan locktest.Outcome
		for range 5 {
			all = append(all, locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(wait)))
		}
		for _, got := range all {
			o := <-got
			locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
			if o.Took > wait {
				t.Errorf("took %s, want %s at most", o.Took, wait)
			}
		}
	})
}

// A silent Redis costs a re-entry the backend timeout, whatever failed before it, and
// those that come after it nothing. When Redis is back, so are re-entries.
func TestReenter_SilentRedis_OnePaysForAll(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const long = 3 * time.Second
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		proxy.BlackHole(true)
		for range 5 {
			o := <-locktest.GoAcquire(ctx, l, core.WaitTime(20*time.Millisecond))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}
		start := time.Now()
		first, second := locktest.GoAcquire(ctx, l, core.WaitTime(long)), locktest.GoAcquire(ctx, l)
		for _, got := range []<-chan locktest.Outcome{first, second} {
			locktest.WantOnly(t, (<-got).Err, core.ErrUnavailable, core.ErrNotAcquired)
			locktest.WantSoon(t, "took %s", start, core.DefaultBackendTimeout)
		}
		for _, parent := range []context.Context{ctx, t.Context()} {
			o := <-locktest.GoAcquire(parent, l, core.WaitTime(long))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			if o.Took != 0 {
				t.Errorf("the next one took %s, want an error at once", o.Took)
			}
		}
		proxy.BlackHole(false)
		locktest.Pass(time.Second)
		_, inner := locktest.MustAcquire(t, ctx, l, core.WaitTime(long))
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, hold)
		b.WantGone("k")
	})
}

// A re-entry that Redis has executed, and whose replies are lost, does not stay in the
// count.
func TestReenter_UnansweredIsTakenBack(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		lost := proxy.DropReply(locktest.ScriptOn(t, "sethold", "k"))
		o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(100*time.Millisecond))
		locktest.WantErr(t, o.Err, core.ErrUnavailable)
		locktest.Pass(time.Second)
		lost.Remove()
		b.HSet(t.Context(), "k", hold.Field(), "2") // whatever was executed last
		locktest.Pass(time.Second)
		b.WantCount(hold, "1")
		locktest.MustRelease(t, hold)
	})
}

// Who waits for its turn behind a command without an answer waits no longer than asked
// for, and says for how long it did.
func TestReenter_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	const wait = 100 * time.Millisecond
	for name, cancelled := range map[string]bool{"wait time": false, "context": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			l := locks.Lock("k")
			ctx, _ := locktest.MustAcquire(t, t.Context(), l)
			stuckEntry(t, ctx, proxy, l)
			opts := []core.AcquireOption{core.WaitTime(wait)}
			if cancelled {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, wait)
				defer cancel()
				opts = nil
			}
			o := <-locktest.GoAcquire(ctx, l, opts...)
			if o.Took != wait {
				t.Errorf("took %s, want %s", o.Took, wait)
			}
			if !cancelled {
				locktest.WantOnly(t, o.Err, core.ErrUnavailable, core.ErrNotAcquired)
				return
			}
			locktest.WantErr(t, o.Err, core.ErrNotAcquired, context.DeadlineExceeded)
			if e := locktest.NotAcquired(t, o.Err); e.Waited != wait {
				t.Errorf("Waited: got %s, want %s", e.Waited, wait)
			}
		})
	}
}

func TestReenter_WaitedOfALostLock(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		const slow = 30 * time.Millisecond
		locks, proxy := b.BehindAProxy()
		ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		b.Del(t.Context(), "k")
		proxy.DelayReply(locktest.ScriptOn(t, "sethold", "k"), slow)
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(ctx)
		locktest.WantOnly(t, err, core.ErrLost, core.ErrNotAcquired)
		locktest.WantSame(t, "waited", time.Since(start), slow)
	})
}

// An answer that makes no sense is no silence: nobody else fails for it.
func TestReenter_RefusalIsNoSilence(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	locks := b.Locks()
	ctx, _ := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
	locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "-hexists").Err())
	_, _, err := locks.Lock("k").Acquire(ctx)
	locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
	locktest.Must(t, b.Do(t.Context(), "acl", "setuser", "default", "+hexists").Err())
	_, inner := locktest.MustAcquire(t, ctx, locks.Lock("k"), core.WaitTime(0))
	locktest.MustRelease(t, inner)
}

// A refresh behind a command without an answer takes the backend timeout in all.
func TestRefresh_BehindAStuckCommand(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		stuckEntry(t, ctx, proxy, locks.Lock("k"))
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		locktest.WantErr(t, hold.Refresh(short, time.Hour), core.ErrUnavailable, context.DeadlineExceeded)
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrUnavailable)
		locktest.WantSoon(t, "took %s", start, core.DefaultBackendTimeout)
		locktest.WantAlive(t, ctx)
	})
}

// However many re-entries have failed, one writer puts the count right, and a release
// does not wait for it.
func TestReenter_FailedOnesDelayNoRelease(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		l := locks.Lock("k")
		ctx, hold := locktest.MustAcquire(t, t.Context(), l)
		stuck := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
		for range 20 {
			o := <-locktest.GoAcquire(ctx, l, core.WaitTime(10*time.Millisecond))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
		}
		sent := stuck.Hits()
		locktest.Pass(500 * time.Millisecond)
		if n := stuck.Hits() - sent; n > 10 {
			t.Errorf("%d writes in half a second", n)
		}
		start := time.Now()
		locktest.MustRelease(t, hold)
		locktest.WantSoon(t, "the release took %s", start, 50*time.Millisecond)
		b.WantGone("k")
		stuck.Release()
		locktest.Pass(2 * time.Second)
		b.WantGone("k")
	})
}

// The entry of one key is taken back when that of another key fails. If it was the last
// hold by then, the key is freed.
func TestMultiLock_TakesItsEntriesBack(t *testing.T) {
	t.Parallel()
	for name, outerReleased := range map[string]bool{"outer held": false, "outer released": true} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, first := locktest.MustAcquire(t, t.Context(), locks.Lock("a"))
			ctx, second := locktest.MustAcquire(t, ctx, locks.Lock("b"))
			lost := proxy.DropRequest(locktest.ScriptOn(t, "sethold", "b"))
			got := locktest.GoAcquire(context.WithoutCancel(ctx), locks.MultiLock("a", "b"), core.WaitTime(100*time.Millisecond))
			<-lost.Hit()
			b.WantCount(first, "2")
			if outerReleased {
				locktest.MustRelease(t, first)
				b.WantCount(first, "1")
			}
			locktest.WantErr(t, (<-got).Err, core.ErrUnavailable)
			locktest.Pass(100 * time.Millisecond)
			if outerReleased {
				b.WantGone("a")
			} else {
				b.WantCount(first, "1")
				locktest.MustRelease(t, first)
			}
			lost.Remove()
			locktest.Pass(time.Second)
			b.WantCount(second, "1")
			locktest.MustRelease(t, second)
			b.WantGone("a", "b")
		})
	}
}
