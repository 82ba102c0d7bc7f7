package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// A re-entry comes while Leave waits for an earlier command of its holder. One of the two is refused, and nothing is
// left.
func TestLeave_WhileAReentryComes(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"one key": {"k"}, "several": {"a", "k"}} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock(names...), core.LeaseTime(time.Hour))
			stuck := proxy.HoldRequest(locktest.ScriptOn(t, "refresh", "k"))
			refreshed := locktest.Go(func() error { return hold.Refresh(t.Context(), time.Hour) })
			<-stuck.Hit()
			entered := locktest.GoAcquire(context.WithoutCancel(ctx), locks.Lock("k"))
			locktest.Pass(time.Millisecond)
			left := locktest.Go(func() error { return hold.Leave(t.Context(), 5*time.Second) })
			locktest.Pass(time.Millisecond)
			stuck.Release()
			locktest.Must(t, <-refreshed)
			locktest.Must(t, <-left)
			locktest.WantEnded(t, ctx, core.ErrReleased)
			locktest.WantOnly(t, (<-entered).Err, core.ErrNotHeld, core.ErrNotAcquired)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
			locktest.WantSame(t, "holds left", locks.Stats().Holds, 0)
			for _, name := range names {
				b.WantTTL(name, 4*time.Second, 5*time.Second)
			}
			locktest.Pass(5 * time.Second)
			b.WantGone(names...)
		})
	}
}

// While a re-entry is under way, Leave is refused and the hold goes on.
func TestLeave_DuringAReentryIsInvalid(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.MultiLock("a", "k"))
		stuck := proxy.HoldRequest(locktest.ScriptOn(t, "sethold", "k"))
		entered := locktest.GoAcquire(ctx, locks.Lock("k"))
		<-stuck.Hit()
		locktest.WantErr(t, hold.Leave(t.Context(), 5*time.Second), core.ErrInvalid)
		locktest.WantAlive(t, ctx)
		stuck.Release()
		locktest.MustRelease(t, locktest.Got(t, entered).Hold)
		locktest.Must(t, hold.Leave(t.Context(), 5*time.Second))
		locktest.Pass(5 * time.Second)
		b.WantGone("a", "k")
	})
}

// A renewal that Redis has not answered does not prolong the marker, whenever it lands.
func TestLeave_LateRenewal(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"on its way": 0, "given up": 6 * time.Second} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy()
			ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
			renewal := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "renew", "k")))
			<-renewal.Hit()
			if after > 0 {
				locktest.Pass(after)
			}
			start := time.Now()
			locktest.Must(t, hold.Leave(t.Context(), 5*time.Second))
			if took := time.Since(start); took > 150*time.Millisecond { // the time until a silent connection is replaced
				t.Errorf("Leave took %s, want at most 150ms", took)
			}
			locktest.WantEnded(t, ctx, core.ErrReleased)
			locktest.Pass(time.Second)
			renewal.Release()
			locktest.Pass(time.Millisecond)
			b.WantTTL("k", 3*time.Second, 4*time.Second)
			locktest.Pass(4 * time.Second)
			b.WantGone("k")
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
		"executed":                             {(*faultproxy.Proxy).DropReply, 2 * time.Second, long, nil},
		"not executed":                         {(*faultproxy.Proxy).DropRequest, 2 * time.Second, long, core.ErrLost},
		"executed, the marker has expired too": {(*faultproxy.Proxy).DropReply, 2 * time.Second, short, core.ErrUnavailable},
		"not executed, the marker would have expired": {(*faultproxy.Proxy).DropRequest, 2 * time.Second, short, core.ErrUnavailable},
		"executed, only the marker has expired":       {(*faultproxy.Proxy).DropReply, time.Minute, short, nil},
		"not executed, the lease lasts":               {(*faultproxy.Proxy).DropRequest, time.Minute, long, nil},
		"not executed, the lease lasts, no marker":    {(*faultproxy.Proxy).DropRequest, time.Minute, short, nil},
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			locks, proxy := b.BehindAProxy(core.WithBackendTimeout(5 * time.Second))
			_, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(tt.lease))
			locktest.Pass(1500 * time.Millisecond)
			rule := tt.lose(proxy, locktest.ScriptOn(t, "handoff", "k"))
			left := locktest.Go(func() error { return hold.Leave(t.Context(), tt.d) })
			locktest.Pass(1500 * time.Millisecond) // no answer arrives before the end of the short lease
			rule.Remove()
			err := <-left
			if tt.want == nil {
				locktest.Must(t, err)
			} else {
				locktest.WantErr(t, err, tt.want)
			}
			if tt.want == nil && tt.d == long {
				b.WantTTL("k", tt.d-2*time.Second, tt.d)
			}
		})
	}
}

// If Leave has no answer, the hold ends within the backend timeout.
func TestLeave_Unanswered(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(10*time.Second))
		proxy.BlackHole(true)
		start := time.Now()
		locktest.WantErr(t, hold.Leave(t.Context(), time.Minute), core.ErrUnavailable)
		locktest.WantSoon(t, "Leave took %s", start, core.DefaultBackendTimeout)
		locktest.WantEnded(t, ctx, core.ErrReleased)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		locktest.WantSame(t, "holds left", locks.Stats().Holds, 0)
		b.WantTTL("k", 0, 10*time.Second)
	})
}

// A Redis without memory accepts no new field. The client turns the old field into the marker.
func TestLeave_OutOfMemory(t *testing.T) {
	t.Parallel()
	b := locktest.Real(t)
	_, hold := locktest.MustAcquire(t, t.Context(), b.Locks().Lock("k"), core.LeaseTime(time.Hour))
	locktest.Must(t, b.ConfigSet(t.Context(), "maxmemory", "1").Err())
	locktest.Must(t, hold.Leave(t.Context(), time.Minute))
	b.WantTTL("k", 50*time.Second, time.Minute)
}

// Leave and a re-entry come at the same time. The second of them is refused, and all holds can be released in either
// case.
func TestLeave_RacesAReentry(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks(locktest.Patient).Lock("k")
		for range 100 {
			ctx, hold := locktest.MustAcquire(t, t.Context(), l)
			entered := locktest.GoAcquire(context.WithoutCancel(ctx), l, core.WaitTime(10*time.Second))
			err := hold.Leave(t.Context(), time.Millisecond)
			o := <-entered
			switch {
			case err != nil:
				locktest.WantErr(t, err, core.ErrInvalid)
				locktest.Must(t, o.Err)
				b.WantCount(hold, "2")
				locktest.MustRelease(t, o.Hold)
				locktest.MustRelease(t, hold)
			case o.Err != nil:
				locktest.WantOnly(t, o.Err, core.ErrNotHeld, core.ErrLost, core.ErrNotAcquired)
			default:
				if o.Hold.Field() == hold.Field() {
					t.Error("a re-entry has entered a hold that was left")
				}
				locktest.MustRelease(t, o.Hold)
			}
		}
		locktest.Eventually(t, "the last marker has expired", func() bool { return b.Exists(t.Context(), "k").Val() == 0 })
	})
}

func TestLeave_KeepsTheKeyForAWhile(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks := b.Locks()
		ctx, hold := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		locktest.Must(t, hold.Leave(t.Context(), 5*time.Second))
		locktest.WantEnded(t, ctx, core.ErrReleased)
		b.WantTTL("k", 4*time.Second, 5*time.Second)
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		if e := locktest.NotAcquired(t, err); e.RetryAfter <= 4*time.Second {
			t.Errorf("got %+v", e)
		}
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		start := time.Now()
		_, next := locktest.MustAcquire(t, t.Context(), locks.Lock("k"))
		if took := time.Since(start); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the next caller got the lock after %s, want 4s to 6s", took)
		}
		locktest.MustRelease(t, next)
	})
}

func TestLeave_OfAnInnerHoldIsInvalid(t *testing.T) {
	t.Parallel()
	locktest.EachRedis(t, func(t *testing.T, b *locktest.Redis) {
		l := b.Locks().Lock("k")
		ctx, outer := locktest.MustAcquire(t, t.Context(), l)
		innerCtx, inner := locktest.MustAcquire(t, ctx, l)
		locktest.WantErr(t, inner.Leave(t.Context(), time.Second), core.ErrInvalid)
		locktest.WantAlive(t, innerCtx)
		locktest.MustRelease(t, inner)
		locktest.MustRelease(t, outer)
		b.WantGone("k")
	})
}
