package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/redis/go-redis/v9"
)

// abandoned starts an acquire that is kept from Redis until its caller gives up.
func (r *rig) abandoned(locks *core.Client) *faultproxy.Rule {
	r.t.Helper()
	rule := r.proxy.HoldRequest(faultproxy.Once(scriptOn(r.t, "acquire", "k")))
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Millisecond)
	defer cancel()
	_, _, err := locks.Lock("k").Acquire(ctx, core.LeaseTime(time.Minute))
	wantErr(r.t, err, context.DeadlineExceeded, core.ErrNotAcquired)
	<-rule.Hit()
	return rule
}

// TestFault_Ghost has an abandoned acquire land late, in every order with a newer
// acquisition by another client or by the same: the lock does not rise from the
// dead, and nobody who has it loses it.
func TestFault_Ghost(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{false, true} {
		for name, order := range map[string]func(r *rig, newer core.Lock, ghost *faultproxy.Rule){
			"before the newer": func(r *rig, newer core.Lock, ghost *faultproxy.Rule) {
				r.land(ghost)
				start := time.Now()
				_, hold := acquired(r.t, r.t.Context(), newer)
				wantAtMost(r.t, "the newer acquire", time.Since(start), time.Second)
				released(r.t, hold)
			},
			"under the newer": func(r *rig, newer core.Lock, ghost *faultproxy.Rule) {
				ctx, hold := acquired(r.t, r.t.Context(), newer)
				r.land(ghost)
				wantAlive(r.t, ctx)
				r.wantHolder("k", hold.Field())
				released(r.t, hold)
			},
			"after the newer": func(r *rig, newer core.Lock, ghost *faultproxy.Rule) {
				must(r.t, newer.Do(r.t.Context(), func(context.Context) error { return nil }))
				r.land(ghost)
			},
			"between two newer": func(r *rig, newer core.Lock, ghost *faultproxy.Rule) {
				must(r.t, newer.Do(r.t.Context(), func(context.Context) error { return nil }))
				r.land(ghost)
				start := time.Now()
				must(r.t, newer.Do(r.t.Context(), func(context.Context) error { return nil }))
				wantAtMost(r.t, "the next acquire", time.Since(start), time.Second)
			},
			"alone": func(r *rig, _ core.Lock, ghost *faultproxy.Rule) { r.land(ghost) },
		} {
			t.Run(name+map[bool]string{true: "/of the same client", false: "/of another client"}[same], func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				locks := r.locks(patient)
				newer := locks
				if !same {
					newer = r.beside()
				}
				ghost := r.abandoned(locks)
				order(r, newer.Lock("k"), ghost)
				r.freed("k")
			})
		}
	}
}

// TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait has an abandoned acquire land just before another
// call of the client, which does not wait: nobody has the lock, so it is acquired, as soon as the
// ghost is cleared up.
func TestFault_Ghost_IsNotTakenForOneWhoDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	locks := r.locks(patient)
	ghost := r.abandoned(locks)
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
	r := newRig(t)
	locks := r.locks(core.WithBackendTimeout(100 * time.Millisecond))
	ghost := r.abandoned(locks)
	other := r.beside()
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; {
		must(t, other.Lock("k").Do(t.Context(), func(context.Context) error { return nil }))
	}
	r.land(ghost)
	start := time.Now()
	_, hold := acquired(t, t.Context(), other.Lock("k"))
	wantAtMost(t, "the next acquire", time.Since(start), time.Second)
	released(t, hold)
	r.freed("k")
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

// TestFault_CancelledAcquire ends an acquire in the middle by a deadline, a cancel
// or its wait time, before and after Redis has executed it: it returns in time, and
// no key is left within a second, although the reply never comes.
func TestFault_CancelledAcquire(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Millisecond
	for name, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		for _, timeouts := range []bool{true, false} {
			for end, want := range leavings() {
				t.Run(name+"/"+end+map[bool]string{true: "/ContextTimeoutEnabled"}[timeouts], func(t *testing.T) {
					t.Parallel()
					r := newRig(t)
					locks := r.locksWith(func(o *redis.Options) { o.ContextTimeoutEnabled = timeouts }, patient)
					rule := f(r.proxy, faultproxy.Once(scriptOn(t, "acquire", "k")))
					ctx, opts := leaving(t, end, after)
					opts = append(opts, core.LeaseTime(time.Minute))
					o := <-acquiring(ctx, locks.Lock("k"), opts...)
					wantAtMost(t, "acquire", o.took, after)
					wantErr(t, o.err, want)
					if o.hold != nil {
						t.Error("a hold with an error")
					}
					r.freed("k") // while the reply is still held
					must(t, r.beside().Lock("k").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(5*time.Second)))
					r.land(rule)
					r.freed("k")
				})
			}
		}
	}
}

// TestFault_CancelledAcquire_InAQueue cancels the head of a queue in the middle of
// its attempt: who is behind it goes on.
func TestFault_CancelledAcquire_InAQueue(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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

// TestFault_ReplyAfterTheLease has the reply of an acquire come when the lease has
// run out already: that is no success. The next attempt is.
func TestFault_ReplyAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 5 * time.Second} {
		r := newRig(t)
		locks := r.locks(patient)
		rule := r.proxy.HoldReply(faultproxy.Once(scriptOn(t, "acquire", "k")))
		got := acquiring(t.Context(), locks.Lock("k"), core.LeaseTime(400*time.Millisecond), core.WaitTime(wait))
		<-rule.Hit()
		within(t, "executed", func() bool { return rule.Executed() == 1 })
		late := r.direct.HKeys(t.Context(), "k").Val()
		r.gone("k")
		rule.Release()
		o := <-got
		if errors.Is(o.err, core.ErrUnavailable) { // the second attempt may be as late, on a busy machine
			continue
		}
		must(t, o.err)
		if slices.Contains(late, o.hold.Field()) {
			t.Errorf("wait %s: granted by a reply that came after the lease", wait)
		}
		_ = o.hold.Release(t.Context()) // its lease is short: it may be over
		r.freed("k")
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
