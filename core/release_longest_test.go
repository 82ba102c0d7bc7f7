package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A release without an answer goes on until the lease is over that Redis may have: the
// longest that was asked for, whatever the holder believes of it.
func TestRelease_Unanswered_GoesOnForTheLongestLease(t *testing.T) {
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
