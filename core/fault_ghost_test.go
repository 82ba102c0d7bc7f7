package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// abandoned starts an acquire that is kept from Redis until its caller gives up.
func abandoned(t *testing.T, locks *core.Client, proxy *faultproxy.Proxy) *faultproxy.Rule {
	t.Helper()
	rule := proxy.HoldRequest(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	locktest.WantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
	<-rule.Hit()
	return rule
}

// TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait has an abandoned acquire land just before another
// call of the client, which does not wait: nobody has the lock, so it is acquired, as soon as the
// ghost is cleared up.
func TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	locks := r.Behind(locktest.Patient)
	ghost := abandoned(t, locks, r.Proxy)
	clearing := r.Proxy.HoldRequest(locktest.ScriptOn(t, "clear", "k"))
	locktest.Land(r.T, ghost)
	refusal := r.Proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
	result := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.WaitTime(0))
	<-refusal.Hit()
	locktest.Land(r.T, refusal)
	clearing.Release()
	locktest.MustRelease(t, locktest.Got(t, result).Hold)
	r.WantFreed("k")
}

// TestFault_Ghost_LandsWhenTheConnectionIsGone has the abandoned acquire land long
// after its connection was given up: nobody knows that it did but who asks.
func TestFault_Ghost_LandsWhenTheConnectionIsGone(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		locks, proxy := b.BehindAProxy(core.WithBackendTimeout(100 * time.Millisecond))
		ghost := abandoned(t, locks, proxy)
		other := b.Locks()
		for range 15 {
			locktest.Must(t, other.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
			locktest.Pass(100 * time.Millisecond)
		}
		ghost.Release()
		locktest.Pass(0)
		locktest.WantSame(t, "abandoned acquires that have landed", ghost.Executed(), 1)
		start := time.Now()
		_, hold := locktest.MustAcquire(t, t.Context(), other.Lock("k"))
		locktest.WantSoon(t, "acquired after %s", start, time.Second)
		locktest.MustRelease(t, hold)
		locktest.Pass(time.Second)
		b.WantGone("k")
	})
}

// TestFault_CancelledAcquire_InAQueue cancels the head of a queue in the middle of
// its attempt: who is behind it goes on.
func TestFault_CancelledAcquire_InAQueue(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		locktest.Parallel(t, f.Name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			rule := f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
			ctx, cancel := context.WithCancel(t.Context())
			head := locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			<-rule.Hit()
			next := locktest.GoAcquire(t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			locktest.AwaitWaiters(t, locks, 2)
			cancel()
			locktest.WantErr(t, (<-head).Err, context.Canceled)
			left := time.Now()
			o := locktest.Got(r.T, next)
			locktest.WantAtMost(t, "the next waiter", time.Since(left), time.Second)
			locktest.Land(r.T, rule)
			r.WantHolder("k", o.Hold.Field())
			locktest.WantAlive(t, o.Ctx)
			locktest.MustRelease(t, o.Hold)
			r.WantFreed("k")
		})
	}
}

// TestFault_CancelledReentry cancels a re-entry in the middle: the outer hold keeps
// the lock, and its one release frees it.
func TestFault_CancelledReentry(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		locktest.Parallel(t, f.Name, func(t *testing.T) {
			r := locktest.NewProxied(t)
			locks := r.Behind(locktest.Patient)
			outerCtx, outer := locktest.MustAcquire(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			rule := f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "sethold", "k")))
			ctx, cancel := context.WithTimeout(outerCtx, 50*time.Millisecond)
			defer cancel()
			o := <-locktest.GoAcquire(ctx, locks.Lock("k"), core.LeaseTime(time.Minute))
			locktest.WantErr(t, o.Err, context.DeadlineExceeded, core.ErrNotAcquired)
			locktest.WantAtMost(t, "re-entry", o.Took, 50*time.Millisecond)
			locktest.WithinASecond(t, "the count is 1 again", func() bool { return r.Client.HGet(t.Context(), "k", outer.Field()).Val() == "1" })
			locktest.WantAlive(t, outerCtx)
			locktest.MustRelease(t, outer)
			locktest.Land(r.T, rule)
			r.WantFreed("k")
		})
	}
}

// TestFault_LostReply_OwnGhostIsNotTaken loses the reply of an acquire that does not
// wait. What is in the way then is its own abandoned attempt, not another holder.
func TestFault_LostReply_OwnGhostIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.DropReply, locktest.DropRequest} {
		r := locktest.NewProxied(t)
		locks := r.Behind(locktest.Patient)
		f.Inject(r.Proxy, faultproxy.Once(locktest.ScriptOn(t, "acquire", "k")))
		r.Proxy.DropRequest(faultproxy.Once(locktest.ScriptOn(t, "release", "k"))) // so that the ghost is there a little longer
		_, hold, err := locks.Lock("k").Acquire(t.Context(), core.LeaseTime(time.Minute), core.WaitTime(0))
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		r.WantHolder("k", hold.Field())
		locktest.MustRelease(t, hold)
		r.WantFreed("k")
	}
}
