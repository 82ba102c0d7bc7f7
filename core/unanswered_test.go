package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Work under a hold must not outlive the lock: it is notified before the release is sent.
func TestRelease_EndsTheContextBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		names  []string
		script string
		inner  bool // the release is that of an inner hold
		wanted bool // somebody waits
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
				next = locktest.GoAcquire(t.Context(), lock, core.LeaseTime(time.Minute)) // longer than the lease that is there
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

// A command may be on its way for long after its connection has gone. Up to two
// minutes after the lease that it asked for, it is cleared up when it lands.
func TestAcquire_AbandonedIsClearedUpHoweverLateItLands(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{1500 * time.Millisecond, 2 * time.Minute} {
		locktest.ParallelBubble(t, after.String(), func(t *testing.T, b *locktest.Redis) {
			const lease = 10 * time.Second
			locks, proxy := b.BehindAProxy()
			stuck := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(lease))
			locktest.WantErr(t, err, context.DeadlineExceeded)
			locktest.Pass(after)
			behind := proxy.DropRequest(faultproxy.Once(locktest.Scripts)) // which would clear it up at once
			stuck.Release()
			synctest.Wait()
			behind.Remove()
			if b.Exists(t.Context(), "k").Val() != 1 {
				t.Fatal("it has not landed: nothing is tested")
			}
			locktest.Pass(1100 * time.Millisecond) // a question every second
			b.WantGone("k")
		})
	}
}

// The caller gives up while nothing can interrupt the command, and the grant comes
// after that: nobody would ever release it.
func TestAcquire_GrantedAfterACancelIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"k"}, {"k", "l"}} {
		for _, wait := range []time.Duration{0, time.Minute} {
			locktest.ParallelBubble(t, fmt.Sprint(names, wait), func(t *testing.T, b *locktest.Redis) {
				locks, proxy := b.BehindAProxy()
				acquires := faultproxy.All(locktest.Scripts, faultproxy.Containing("k"))
				proxy.DelayReply(faultproxy.Once(acquires), 30*time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Millisecond, cancel)
				o := <-locktest.GoAcquire(ctx, locks.MultiLock(names...), core.LeaseTime(time.Hour), core.WaitTime(wait))
				locktest.WantErr(t, o.Err, context.Canceled, core.ErrNotAcquired)
				if o.Hold != nil {
					t.Error("a hold with an error")
				}
				locktest.Pass(100 * time.Millisecond)
				b.WantGone(names...)
				if s := locks.Stats(); s.Holds != 0 {
					t.Errorf("%d holds", s.Holds)
				}
			})
		}
	}
}

// A waiter finds the lock taken by what an abandoned attempt of its own client has
// left there. It is notified as soon as that is cleared up, also without a subscription.
func TestQueue_WokenWhenAnAbandonedAttemptIsClearedUp(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy()
		proxy.HoldRequest(faultproxy.Command("subscribe")) // no message wakes anybody
		proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Hour))
		locktest.WantErr(t, err, context.DeadlineExceeded)
		proxy.DelayRequest(faultproxy.Once(locktest.ScriptOn(t, "release", "k")), 40*time.Millisecond)
		refused := proxy.Watch(locktest.ScriptOn(t, "acquire", "k"))
		o := <-locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		locktest.Must(t, o.Err)
		if refused.Hits() < 2 {
			t.Fatal("it has not found the lock taken: nothing is tested")
		}
		if o.Took > 100*time.Millisecond {
			t.Errorf("woken after %s", o.Took)
		}
		locktest.MustRelease(t, o.Hold)
	})
}
