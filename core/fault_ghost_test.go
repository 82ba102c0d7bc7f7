package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// abandoned starts an acquire that is kept from Redis until its caller gives up.
func abandoned(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *faultproxy.Rule {
	t.Helper()
	rule := proxy.HoldRequest(faultproxy.Once(scriptOn(t, "acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	wantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
	<-rule.Hit()
	return rule
}

// TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait has an abandoned acquire land just before another
// call of the client, which does not wait: nobody has the lock, so it is acquired, as soon as the
// ghost is cleared up.
func TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks := r.locks(patient)
	ghost := abandoned(t, locks, r.proxy)
	clearing := r.proxy.HoldRequest(scriptOn(t, "clear", "k"))
	r.land(ghost)
	refusal := r.proxy.HoldReply(faultproxy.Once(scriptOn(t, "acquire", "k")))
	result := acquiring(t.Context(), locks.Lock("k"), core.WaitTime(0))
	<-refusal.Hit()
	r.land(refusal)
	clearing.Release()
	released(t, got(t, result).hold)
	r.freed("k")
}

// TestFault_Ghost_LandsWhenTheConnectionIsGone has the abandoned acquire land long
// after its connection was given up: nobody knows that it did but who asks.
func TestFault_Ghost_LandsWhenTheConnectionIsGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		locks, proxy := b.knowing(core.WithBackendTimeout(100 * time.Millisecond))
		ghost := abandoned(t, locks, proxy)
		other := b.locks()
		for range 15 {
			must(t, other.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
			pass(100 * time.Millisecond)
		}
		ghost.Release()
		pass(0)
		wantSame(t, "abandoned acquires that have landed", ghost.Executed(), 1)
		start := time.Now()
		_, hold := acquired(t, t.Context(), other.Lock("k"))
		wantSoon(t, "acquired after %s", start, time.Second)
		released(t, hold)
		pass(time.Second)
		b.wantGone("k")
	})
}

// leavings are the ways to leave an acquire in the middle, each with the error that says so.
func leavings() map[string]error {
	return map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled, "wait time": core.ErrUnavailable}
}

// leaving is what to call an acquire with that is left in one of these ways after a while.
func leaving(t *testing.T, way string, after time.Duration) (context.Context, []core.AcquireOption) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	switch way {
	case "deadline":
		ctx, cancel = context.WithTimeout(ctx, after)
		t.Cleanup(cancel)
	case "cancel":
		time.AfterFunc(after, cancel)
	case "wait time":
		return ctx, []core.AcquireOption{core.WaitTime(after)}
	default:
		t.Fatalf("no way to leave: %s", way)
	}
	return ctx, nil
}

// TestFault_CancelledAcquire_InAQueue cancels the head of a queue in the middle of
// its attempt: who is behind it goes on.
func TestFault_CancelledAcquire_InAQueue(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		parallel(t, name, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(patient)
			rule := f(r.proxy, faultproxy.Once(scriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithCancel(t.Context())
			head := acquiring(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			<-rule.Hit()
			next := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			waiters(t, locks, 2)
			cancel()
			wantErr(t, (<-head).err, context.Canceled)
			left := time.Now()
			o := r.mustHold(next)
			wantAtMost(t, "the next waiter", time.Since(left), time.Second)
			r.land(rule)
			r.wantHolder("k", o.hold.Field())
			wantAlive(t, o.ctx)
			released(t, o.hold)
			r.freed("k")
		})
	}
}

// TestFault_CancelledReentry cancels a re-entry in the middle: the outer hold keeps
// the lock, and its one release frees it.
func TestFault_CancelledReentry(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		parallel(t, name, func(t *testing.T) {
			r := newRig(t)
			locks := r.locks(patient)
			outerCtx, outer := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			rule := f(r.proxy, faultproxy.Once(scriptOn(t, "sethold", "k")))
			ctx, cancel := context.WithTimeout(outerCtx, 50*time.Millisecond)
			defer cancel()
			o := <-acquiring(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			wantErr(t, o.err, context.DeadlineExceeded, core.ErrNotAcquired)
			wantAtMost(t, "re-entry", o.took, 50*time.Millisecond)
			within(t, "the count is 1 again", func() bool { return r.direct.HGet(t.Context(), "k", outer.Field()).Val() == "1" })
			wantAlive(t, outerCtx)
			released(t, outer)
			r.land(rule)
			r.freed("k")
		})
	}
}

// TestFault_LostReply_OwnGhostIsNotTaken loses the reply of an acquire that does not
// wait. What is in the way then is its own abandoned attempt, not another holder.
func TestFault_LostReply_OwnGhostIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"reply lost": dropReply, "request lost": dropRequest} {
		r := newRig(t)
		locks := r.locks(patient)
		f(r.proxy, faultproxy.Once(scriptOn(t, "acquire", "k")))
		r.proxy.DropRequest(faultproxy.Once(scriptOn(t, "release", "k"))) // so that the ghost is there a little longer
		_, hold, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Minute), core.WaitTime(0))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.wantHolder("k", hold.Field())
		released(t, hold)
		r.freed("k")
	}
}
