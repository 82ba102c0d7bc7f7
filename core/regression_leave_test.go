package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A re-entry comes while Leave waits for an earlier command of its holder: one of the
// two is refused, and nothing stays behind.
func TestLeave_WhileAReentryComes(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one key": {"k"}, "several": {"a", "k"}} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, hold := acquired(t, t.Context(), locks.MultiLock(names...), core.LeaseTime(time.Hour))
			stuck := proxy.HoldRequest(scriptOn(t, "refresh", "k"))
			refreshed := make(chan error, 1)
			go func() { refreshed <- hold.Refresh(t.Context(), time.Hour) }()
			<-stuck.Hit()
			entered := acquiring(context.WithoutCancel(ctx), locks.Lock("k"))
			pass(time.Millisecond)
			left := make(chan error, 1)
			go func() { left <- hold.Leave(t.Context(), 5*time.Second) }()
			pass(time.Millisecond)
			stuck.Release()
			must(t, <-refreshed)
			must(t, <-left)
			wantEnded(t, ctx, core.ErrReleased)
			wantOnly(t, (<-entered).err, core.ErrNotHeld, core.ErrNotAcquired)
			wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			wantSame(t, "holds left", locks.Stats().Holds, 0)
			for _, name := range names {
				b.wantTTL(name, 4*time.Second, 5*time.Second)
			}
			pass(5 * time.Second)
			b.wantGone(names...)
		})
	}
}

// While a re-entry is under way, Leave is refused and the hold goes on.
func TestLeave_DuringAReentryIsInvalid(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.MultiLock("a", "k"))
		stuck := proxy.HoldRequest(scriptOn(t, "sethold", "k"))
		entered := acquiring(ctx, locks.Lock("k"))
		<-stuck.Hit()
		wantErr(t, hold.Leave(t.Context(), 5*time.Second), core.ErrInvalid)
		wantAlive(t, ctx)
		stuck.Release()
		o := <-entered
		must(t, o.err)
		released(t, o.hold)
		must(t, hold.Leave(t.Context(), 5*time.Second))
		pass(5 * time.Second)
		b.wantGone("a", "k")
	})
}

// What the holder has sent and Redis has not answered does not prolong the marker,
// whenever it lands.
func TestLeave_LateRenewalDoesNotProlongTheMarker(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"on its way": 0, "given up": 6 * time.Second} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			ctx, hold := acquired(t, t.Context(), locks.Lock("k"))
			renewal := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "renew", "k")))
			<-renewal.Hit()
			if after > 0 {
				pass(after)
			}
			start := time.Now()
			must(t, hold.Leave(t.Context(), 5*time.Second))
			if took := time.Since(start); took > 150*time.Millisecond { // the hang of a connection, which is replaced
				t.Errorf("took %s", took)
			}
			wantEnded(t, ctx, core.ErrReleased)
			pass(time.Second)
			renewal.Release()
			pass(time.Millisecond)
			b.wantTTL("k", 3*time.Second, 4*time.Second)
			pass(4 * time.Second)
			b.wantGone("k")
		})
	}
}

// The reply of Leave is not heard. It is asked again, and has left all the same.
func TestLeave_ReplyLost(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]time.Duration{"marker there": 5 * time.Second, "marker over": 10 * time.Millisecond} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing()
			_, hold := acquired(t, t.Context(), locks.Lock("k"))
			left := proxy.HoldReply(faultproxy.Once(scriptOn(t, "handoff", "k")))
			must(t, hold.Leave(t.Context(), d))
			if left.Executed() != 1 {
				t.Fatal("no reply was lost")
			}
			pass(d)
			b.wantGone("k")
		})
	}
}

// The lease ends while Leave has no answer. Leave returns nil if the marker was set, even if the marker has expired.
func TestLeave_LeaseEndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const long, short = time.Hour, 10 * time.Millisecond
	for name, tt := range map[string]struct {
		lose     func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule
		lease, d time.Duration
		want     error
	}{
		"executed":                                 {(*faultproxy.Proxy).DropReply, 2 * time.Second, long, nil},
		"not executed":                             {(*faultproxy.Proxy).DropRequest, 2 * time.Second, long, core.ErrLost},
		"executed, the marker is over too":         {(*faultproxy.Proxy).DropReply, 2 * time.Second, short, core.ErrUnavailable},
		"not executed, the marker would be over":   {(*faultproxy.Proxy).DropRequest, 2 * time.Second, short, core.ErrUnavailable},
		"executed, only the marker is over":        {(*faultproxy.Proxy).DropReply, time.Minute, short, nil},
		"not executed, the lease lasts":            {(*faultproxy.Proxy).DropRequest, time.Minute, long, nil},
		"not executed, the lease lasts, no marker": {(*faultproxy.Proxy).DropRequest, time.Minute, short, nil},
	} {
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(core.WithBackendTimeout(5 * time.Second))
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(tt.lease))
			pass(1500 * time.Millisecond)
			rule := tt.lose(proxy, scriptOn(t, "handoff", "k"))
			left := make(chan error, 1)
			go func() { left <- hold.Leave(t.Context(), tt.d) }()
			pass(1500 * time.Millisecond) // the answers are missing beyond the end of the short lease
			rule.Remove()
			err := <-left
			if tt.want == nil {
				must(t, err)
			} else {
				wantErr(t, err, tt.want)
			}
			if tt.want == nil && tt.d == long {
				b.wantTTL("k", tt.d-2*time.Second, tt.d)
			}
		})
	}
}

// Without an answer the hold has ended all the same, within the backend timeout.
func TestLeave_Unanswered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		ctx, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(10*time.Second))
		proxy.BlackHole(true)
		start := time.Now()
		wantErr(t, hold.Leave(t.Context(), time.Minute), core.ErrUnavailable)
		wantSoon(t, "took %s", start, core.DefaultBackendTimeout)
		wantEnded(t, ctx, core.ErrReleased)
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		wantSame(t, "holds left", locks.Stats().Holds, 0)
		b.wantTTL("k", 0, 10*time.Second)
	})
}

// Redis without memory takes no new field; the marker is made of the old one.
func TestLeave_OutOfMemory(t *testing.T) {
	t.Parallel()
	b := serverBed(t)
	_, hold := acquired(t, t.Context(), b.locks().Lock("k"), core.LeaseTime(time.Hour))
	must(t, b.ConfigSet(t.Context(), "maxmemory", "1").Err())
	must(t, hold.Leave(t.Context(), time.Minute))
	b.wantTTL("k", 50*time.Second, time.Minute)
}

// Leave and a re-entry come at the same time: the one that is second is refused, and
// either way everything can be ended.
func TestLeave_RacesAReentry(t *testing.T) {
	t.Parallel()
	eachBed(t, func(t *testing.T, b *bed) {
		l := b.locks(patient).Lock("k")
		for range 100 {
			ctx, hold := acquired(t, t.Context(), l)
			entered := acquiring(context.WithoutCancel(ctx), l, core.WaitTime(10*time.Second))
			err := hold.Leave(t.Context(), time.Millisecond)
			o := <-entered
			switch {
			case err != nil:
				wantErr(t, err, core.ErrInvalid)
				must(t, o.err)
				b.wantCount(hold, "2")
				released(t, o.hold)
				released(t, hold)
			case o.err != nil:
				wantOnly(t, o.err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
			default:
				if o.hold.Field() == hold.Field() {
					t.Error("a hold that was left was entered again")
				}
				released(t, o.hold)
			}
		}
		eventually(t, "the last marker is over", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
	})
}
