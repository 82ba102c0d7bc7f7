package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// TestFault_Release_SecondExecutionIsOurs loses the reply of a release, and has
// somebody else take the lock before it is sent again: "not mine" then means that
// the first one did it.
func TestFault_Release_SecondExecutionIsOurs(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		r := newRig(t)
		locks := r.locks(patient)
		_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
		release := scriptOn(t, "release", "k")
		r.proxy.DropReply(faultproxy.Nth(1, release))
		second := r.proxy.HoldRequest(faultproxy.Once(release)) // the first rule has the first one
		done := releasing(hold)
		<-second.Hit()
		r.freed("k")
		if taken {
			r.steal("k")
		}
		second.Release()
		if err := <-done; err != nil {
			t.Errorf("taken %v: %v", taken, err)
		}
		if taken {
			r.wantHolder("k", stranger)
		}
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
	}
}

// TestFault_Release_FirstExecutionIsLost is the other side: "not mine" on the first
// execution is a loss, however long the reply takes.
func TestFault_Release_FirstExecutionIsLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks := r.locks(patient)
	_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
	r.steal("k")
	r.proxy.DelayReply(faultproxy.Once(scriptOn(t, "release", "k")), 30*time.Millisecond)
	wantErr(t, hold.Release(t.Context()), core.ErrLost, core.ErrNotHeld)
	r.wantHolder("k", stranger)
}

// TestFault_Release_Cancelled releases with a context that has ended, and with one
// that ends in the middle: the lock is free all the same.
func TestFault_Release_Cancelled(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"before": nil, "not executed": holdRequest, "executed": holdReply, "reply lost": dropReply} {
		parallel(t, name, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(patient)
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if f == nil {
				cancel()
			} else {
				rule := f(r.proxy, faultproxy.Once(scriptOn(t, "release", "k")))
				go func() {
					<-rule.Hit()
					cancel()
					rule.Release()
				}()
			}
			must(t, hold.Release(ctx))
			if r.exists("k") {
				t.Error("released, but still there")
			}
		})
	}
}

// TestFault_Release_Unanswered has no release be answered: it says so within the
// backend timeout and goes on in the background, so that the lock is free soon. What
// lands late frees nobody else's lock.
func TestFault_Release_Unanswered(t *testing.T) {
	t.Parallel()
	timeout := unhurried(300 * time.Millisecond)
	for name, f := range map[string]fault{"late": holdRequest, "executed": holdReply, "lost": dropRequest, "reply lost": dropReply} {
		for _, stolen := range []bool{true, false} {
			parallel(t, name+map[bool]string{true: "/stolen", false: "/free"}[stolen], func(t *testing.T) {
				r := newRig(t)
				locks, other := r.locks(core.WithBackendTimeout(timeout)), r.beside()
				_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
				rule := f(r.proxy, scriptOn(t, "release", "k"))
				start := time.Now()
				wantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				wantAtMost(t, "the release", time.Since(start), timeout)
				wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
				if stolen {
					r.steal("k")
				}
				if name == "late" || name == "executed" {
					r.land(rule)
				}
				rule.Remove()
				if stolen {
					r.wantHolder("k", stranger)
					return
				}
				start = time.Now()
				_, next := acquired(t, t.Context(), other.Lock("k"), core.WaitTime(20*time.Second))
				wantAtMost(t, "the next acquire", time.Since(start), time.Second)
				released(t, next)
			})
		}
	}
}

// TestFault_SlowReplies_StateAndForceReleaseHaveTheirTime asks once over a way that is
// slower than what a call that is alone is given first: nobody asks again.
func TestFault_SlowReplies_StateAndForceReleaseHaveTheirTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks, other := r.locks(), r.beside()
	_, hold := acquired(t, t.Context(), other.Lock("k"), core.LeaseTime(time.Hour))
	r.proxy.DelayReply(faultproxy.Any(), 150*time.Millisecond)
	state, err := locks.Lock("k").State(t.Context())
	if err != nil || len(state.Holders) != 1 {
		t.Errorf("State: got %+v, %v", state, err)
	}
	wantGot(t, "ForceRelease", true)(locks.Lock("k").ForceRelease(t.Context()))
	wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
}

// TestFault_Release_OthersMayListen loses the reply of a release, and with it how many others listen: the
// lock is left to them for a while, as it is when one is known to listen.
func TestFault_Release_OthersMayListen(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		const wakingUp = 6 * time.Millisecond // of a thread of Redisson: after the resend, before the patience is over
		locks, proxy := b.knowing()
		_, hold := acquired(t, t.Context(), locks.Lock("k"))
		messages := b.Subscribe(t.Context(), "redisson_lock__channel:{k}")
		defer func() { _ = messages.Close() }()
		_, err := messages.Receive(t.Context())
		must(t, err)
		other := make(chan error, 1)
		go func() {
			_, err := messages.ReceiveMessage(t.Context())
			must(t, err)
			time.Sleep(wakingUp) // in the time of the bubble
			_, hold, err := b.locks().Lock("k").Acquire(t.Context(), core.WaitTime(0))
			other <- errors.Join(err, hold.Release(t.Context())) // the bubble ends with its goroutines
		}()
		waiting := acquiring(t.Context(), locks.Lock("k"))
		pass(100 * time.Millisecond) // the run of turns in this process is over
		lost := proxy.DropReply(faultproxy.Once(scriptOn(t, "release", "k")))
		released(t, hold)
		if err := <-other; err != nil || lost.Hits() != 1 {
			t.Errorf("%d replies were lost, and a listening waiter has missed its turn: %v", lost.Hits(), err)
		}
		released(t, (<-waiting).hold)
	})
}
