package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
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
		parallelBubble(t, name, func(t *testing.T, b *bed) {
			locks, proxy := b.knowing(patient)
			lock := locks.MultiLock(tt.names...)
			ctx, hold := acquired(t, t.Context(), lock)
			if tt.inner {
				ctx, hold = acquired(t, ctx, lock)
			}
			var next <-chan outcome
			if tt.wanted {
				next = acquiring(t.Context(), lock, core.LeaseTime(time.Minute)) // longer than the lease that is there
				waiters(t, locks, 1)
			}
			sent := proxy.HoldRequest(scriptOn(t, tt.script, "k"))
			done := releasing(hold)
			<-sent.Hit()
			synctest.Wait()
			select {
			case <-ctx.Done():
				wantErr(t, context.Cause(ctx), core.ErrReleased)
			default:
				t.Error("the release is on its way, and the context has not ended")
			}
			sent.Release()
			must(t, <-done)
			if next != nil {
				released(t, (<-next).hold)
			}
		})
	}
}

// A command may be on its way for long after its connection has gone. Up to two
// minutes after the lease that it asked for, it is cleared up when it lands.
func TestAcquire_AbandonedIsClearedUpHoweverLateItLands(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{1500 * time.Millisecond, 2 * time.Minute} {
		parallelBubble(t, after.String(), func(t *testing.T, b *bed) {
			const lease = 10 * time.Second
			locks, proxy := b.knowing()
			stuck := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(lease))
			wantErr(t, err, context.DeadlineExceeded)
			pass(after)
			behind := proxy.DropRequest(faultproxy.Once(scripts)) // which would clear it up at once
			stuck.Release()
			synctest.Wait()
			behind.Remove()
			if b.Exists(t.Context(), "k").Val() != 1 {
				t.Fatal("it has not landed: nothing is tested")
			}
			pass(1100 * time.Millisecond) // a question every second
			b.wantGone("k")
		})
	}
}

// The caller gives up while nothing can interrupt the command, and the grant comes
// after that: nobody would ever release it.
func TestAcquire_GrantedAfterACancelIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"k"}, {"k", "l"}} {
		for _, wait := range []time.Duration{0, time.Minute} {
			parallelBubble(t, fmt.Sprint(names, wait), func(t *testing.T, b *bed) {
				locks, proxy := b.knowing()
				acquires := faultproxy.All(scripts, faultproxy.Containing("k"))
				proxy.DelayReply(faultproxy.Once(acquires), 30*time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(5*time.Millisecond, cancel)
				o := <-acquiring(ctx, locks.MultiLock(names...), core.LeaseTime(time.Hour), core.WaitTime(wait))
				wantErr(t, o.err, context.Canceled, core.ErrNotAcquired)
				if o.hold != nil {
					t.Error("a hold with an error")
				}
				pass(100 * time.Millisecond)
				b.wantGone(names...)
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
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing()
		proxy.HoldRequest(faultproxy.Command("subscribe")) // no message wakes anybody
		proxy.HoldReply(faultproxy.Once(scriptOn(t, "acquire", "k")))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Hour))
		wantErr(t, err, context.DeadlineExceeded)
		proxy.DelayRequest(faultproxy.Once(scriptOn(t, "release", "k")), 40*time.Millisecond)
		refused := proxy.Watch(scriptOn(t, "acquire", "k"))
		o := <-acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(time.Hour))
		must(t, o.err)
		if refused.Hits() < 2 {
			t.Fatal("it has not found the lock taken: nothing is tested")
		}
		if o.took > 100*time.Millisecond {
			t.Errorf("woken after %s", o.took)
		}
		released(t, o.hold)
	})
}
