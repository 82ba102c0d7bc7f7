package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A release without an answer goes on until the lease is over that Redis may have: the
// longest that was asked for, whatever the holder believes of it.
func TestRelease_Unanswered_GoesOnForTheLongestLease(t *testing.T) {
	t.Parallel()
	for name, unanswered := range map[string]func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold{
		"refresh that was to lower it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
			lost := proxy.DropRequest(scriptOn(t, "refresh", "k"))
			defer lost.Remove()
			wantErr(t, hold.Refresh(t.Context(), 5*time.Second), core.ErrUnavailable)
			return hold
		},
		"re-entry that has raised it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(5*time.Second))
			lost := proxy.DropReply(scriptOn(t, "sethold", "k"))
			defer lost.Remove()
			o := <-acquiring(ctx, locks.Lock("k"), core.WaitTime(100*time.Millisecond), core.LeaseTime(time.Hour))
			wantErr(t, o.err, core.ErrUnavailable)
			return hold
		},
		"re-entry of several that has raised it": func(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *core.Hold {
			t.Helper()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(5*time.Second))
			lost := proxy.DropReply(scriptOn(t, "sethold", "k"))
			defer lost.Remove()
			o := <-acquiring(ctx, locks.MultiLock("k", "other"), core.WaitTime(100*time.Millisecond), core.LeaseTime(time.Hour))
			wantErr(t, o.err, core.ErrUnavailable)
			return hold
		},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(core.WithBackendTimeout(300 * time.Millisecond))
			hold := unanswered(t, locks, proxy)
			b.wantTTL("k", 59*time.Minute, time.Hour)
			proxy.BlackHole(true)
			wantErr(t, hold.Release(context.Background()), core.ErrUnavailable)
			pass(10 * time.Minute)
			b.wantTTL("k", 49*time.Minute, time.Hour)
			proxy.BlackHole(false)
			pass(time.Minute)
			b.wantGone("k")
		})
	}
}
