package holding_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A release without an answer goes on until the end of the longest lease that the client has asked for, because Redis
// may have this lease.
func TestRelease_UnansweredAfterALongerLease(t *testing.T) {
	t.Parallel()
	for name, unanswered := range map[string]func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold{
		"refresh that was to lower it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
			lost := proxy.DropRequest(locktest.ScriptOn(t, "refresh", "k"))
			defer lost.Remove()
			locktest.WantErr(t, hold.Refresh(t.Context(), 5*time.Second), core.ErrUnavailable)
			return hold
		},
		"re-entry that has raised it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(5*time.Second))
			lost := proxy.DropReply(locktest.ScriptOn(t, "sethold", "k"))
			defer lost.Remove()
			o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.WaitTime(100*time.Millisecond), core.LeaseTime(time.Hour))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			return hold
		},
		"re-entry of several that has raised it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(5*time.Second))
			lost := proxy.DropReply(locktest.ScriptOn(t, "sethold", "k"))
			defer lost.Remove()
			o := <-locktest.GoAcquire(ctx, locks.MultiLock("k", "other"), core.WaitTime(100*time.Millisecond), core.LeaseTime(time.Hour))
			locktest.WantErr(t, o.Err, core.ErrUnavailable)
			return hold
		},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(300 * time.Millisecond))
			hold := unanswered(t, locks, proxy)
			b.WantTTL("k", 59*time.Minute, time.Hour)
			proxy.BlackHole(true)
			locktest.WantErr(t, hold.Release(context.Background()), core.ErrUnavailable)
			locktest.Pass(10 * time.Minute)
			b.WantTTL("k", 49*time.Minute, time.Hour)
			proxy.BlackHole(false)
			locktest.Pass(time.Minute)
			b.WantGone("k")
		})
	}
}

func TestRelease_EndsTheContextWithErrReleased(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		ctx, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		locktest.WantAlive(t, child)
		locktest.MustRelease(t, hold)
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.WantEnded(t, child, core.ErrReleased)
		if hold.Remaining() != 0 {
			t.Errorf("remaining: got %s, want 0", hold.Remaining())
		}
	})
}

func TestRelease_ConcurrentCallsReleaseOnce(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"))
		var group sync.WaitGroup
		results := make(chan error, 10)
		for range 10 {
			group.Go(func() { results <- hold.Release(t.Context()) })
		}
		group.Wait()
		close(results)
		fine := 0
		for err := range results {
			if err == nil {
				fine++
			} else {
				locktest.WantErr(t, err, core.ErrNotHeld)
			}
		}
		if fine != 1 {
			t.Errorf("%d of 10 releases succeeded, want 1", fine)
		}
	})
}

// Work under a hold must not outlive the lock: its context ends before the client sends the release.
func TestRelease_EndsTheContextBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		names  []string
		script string
		inner  bool // an inner hold is released
		wanted bool // another caller waits
	}{
		"the last one":    {[]string{"k"}, "release", false, false},
		"handing over":    {[]string{"k"}, "handoff", false, true},
		"an inner one":    {[]string{"k"}, "sethold", true, false},
		"of several keys": {[]string{"k", "l"}, "release", false, false},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(locktest.Patient)
			lock := locks.MultiLock(tt.names...)
			ctx, hold := locktest.MustAcquire(t, t.Context(), lock)
			if tt.inner {
				ctx, hold = locktest.MustAcquire(t, ctx, lock)
			}
			var next <-chan locktest.Outcome
			if tt.wanted {
				next = locktest.GoAcquire(t.Context(), lock, core.LeaseTime(time.Minute)) // longer than the lease of the hold
				locktest.AwaitWaiters(t, locks, 1)
			}
			sent := proxy.HoldRequest(locktest.ScriptOn(t, tt.script, "k"))
			done := locktest.GoRelease(hold)
			<-sent.Hit()
			synctest.Wait()
			select {
			case <-ctx.Done():
				locktest.WantErr(t, context.Cause(ctx), core.ErrReleased)
			default:
				t.Error("the release is on its way, and the context has not ended")
			}
			sent.Release()
			locktest.Must(t, <-done)
			if next != nil {
				locktest.MustRelease(t, (<-next).Hold)
			}
		})
	}
}
