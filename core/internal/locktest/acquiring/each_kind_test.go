package acquiring_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// An Acquire that ends by a deadline, a cancel or its wait time, before or after Redis has executed it, returns at
// once. It leaves nothing in Redis, even after its command has landed.
func TestAcquire_EachKind_LeftBeforeItsEnd(t *testing.T) {
	t.Parallel()
	const after = 50 * time.Millisecond
	for _, f := range []locktest.Fault{locktest.HoldRequest, locktest.HoldReply} {
		for end, want := range locktest.WaysToLeave() {
			locktest.ParallelEachKind(t, f.Name+"/"+end, func(t *testing.T, w *locktest.World) {
				rules := w.Inject(f, w.Op("acquire"))
				ctx, opts := locktest.Leaving(t, end, after)
				opts = append(opts, core.LeaseTime(time.Minute))
				o := <-locktest.GoAcquire(ctx, w.Mine, opts...)
				if locktest.WantErr(t, o.Err, want); o.Took > after+5*time.Millisecond || o.Hold != nil {
					t.Errorf("the call took %s and returned the hold %v", o.Took, o.Hold)
				}
				locktest.Pass(2 * time.Second)
				w.WantNothing("while it is held")
				locktest.LandAll(rules)
				locktest.Pass(time.Second)
				w.WantNothing("after it has landed")
				w.WantFree()
			})
		}
	}
}

// An abandoned acquire lands before, during or after a newer acquisition by the same or another client. It takes
// nothing from the newer holder and leaves nothing behind.
func TestAcquire_EachKind_LandsAfterItsCallerLeft(t *testing.T) {
	t.Parallel()
	soon := func(w *locktest.World, newer core.Lock) {
		start := time.Now()
		_, hold := locktest.MustAcquire(w.T, w.T.Context(), newer)
		locktest.MustRelease(w.T, hold)
		if took := time.Since(start); took > time.Second {
			w.T.Errorf("the next acquisition took %s", took)
		}
	}
	for order, run := range map[string]func(w *locktest.World, newer core.Lock, land func()){
		"before the newer": func(w *locktest.World, newer core.Lock, land func()) { land(); soon(w, newer) },
		"under the newer": func(w *locktest.World, newer core.Lock, land func()) {
			ctx, hold := locktest.MustAcquire(w.T, w.T.Context(), newer)
			land()
			locktest.Pass(20 * time.Second)
			locktest.WantAlive(w.T, ctx)
			locktest.MustRelease(w.T, hold)
		},
		"after the newer":   func(w *locktest.World, newer core.Lock, land func()) { soon(w, newer); land() },
		"between two newer": func(w *locktest.World, newer core.Lock, land func()) { soon(w, newer); land(); soon(w, newer) },
		"alone":             func(_ *locktest.World, _ core.Lock, land func()) { land() },
	} {
		for _, same := range []bool{false, true} {
			locktest.ParallelEachKind(t, order+map[bool]string{true: "/of the same client", false: "/of another client"}[same], func(t *testing.T, w *locktest.World) {
				rules := w.Inject(locktest.HoldRequest, w.Op("acquire"))
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				_, _, err := w.Mine.Acquire(ctx, core.LeaseTime(time.Minute))
				locktest.WantErr(t, err, context.DeadlineExceeded, core.ErrNotAcquired)
				newer := w.Other
				if same {
					newer = w.Rival(w.Clients, locktest.Pool)
				}
				run(w, newer, func() { locktest.LandAll(rules) })
				locktest.Pass(time.Second)
				w.WantNothing("after it has landed")
				w.WantFree()
			})
		}
	}
}

// A reply that arrives after the lease is not a success.
func TestAcquire_EachKind_ReplyAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		locktest.ParallelEachKind(t, wait.String(), func(t *testing.T, w *locktest.World) {
			rules := w.Inject(locktest.HoldReply, w.Op("acquire"))
			const lease = 400 * time.Millisecond
			got := locktest.GoAcquire(t.Context(), w.Mine, core.LeaseTime(lease), core.WaitTime(wait))
			locktest.Pass(2 * lease)
			locktest.LandAll(rules)
			o := <-got
			if errors.Is(o.Err, core.ErrUnavailable) && w.Kind.Nodes > 1 {
				locktest.Pass(time.Second)
				w.WantFree()
				return // a Redlock does not wait that long for its servers
			}
			locktest.Must(t, o.Err)
			locktest.WantAlive(t, o.Ctx)
			if left := o.Hold.Remaining(); left <= 0 || w.HeldOn() < w.Kind.Nodes {
				t.Errorf("%s remain, and the lock is on %d servers", left, w.HeldOn())
			}
			w.WantTaken()
			locktest.MustRelease(t, o.Hold)
			locktest.Pass(time.Second)
			w.WantFree()
		}, locktest.Patient)
	}
}

// Invalid lease and wait times are errors, and no command is sent.
func TestAcquire_EachKind_InvalidTimes(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		sent := w.WatchScripts()
		for _, opt := range []core.AcquireOption{
			core.LeaseTime(-1), core.LeaseTime(time.Microsecond), core.LeaseTime(math.MaxInt64),
			core.WaitTime(-1), core.WaitTime(time.Microsecond), core.WaitTime(math.MaxInt64),
			core.MaxHold(-1), core.MaxHold(time.Microsecond), core.MaxHold(math.MaxInt64),
		} {
			_, _, err := w.Mine.Acquire(t.Context(), opt)
			locktest.WantOnly(t, err, core.ErrInvalid, core.ErrNotAcquired, core.ErrUnavailable)
		}
		for i, s := range sent {
			if s.Hits() > 0 {
				t.Errorf("%d scripts on server %d, want none", s.Hits(), i)
			}
		}
		w.WantNothing("after refusals")
	})
}

// If Redis refuses the command, or the key has another type, the error is ErrUnavailable: the lock is neither taken
// nor acquired. A script that Redis has forgotten is loaded again.
func TestAcquire_EachKind_ErrorReplies(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		for _, says := range locktest.Refusals() {
			rules := w.Inject(locktest.Refuse(says), func() faultproxy.Match { return locktest.Scripts })
			_, _, err := w.Mine.Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
			t.Log(err)
			locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
			locktest.LandAll(rules)
		}
		for _, s := range w.Servers {
			locktest.Must(t, s.LPush(t.Context(), locktest.Pool, "x").Err())
		}
		_, _, err := w.Mine.Acquire(t.Context(), core.WaitTime(300*time.Millisecond))
		locktest.WantOnly(t, err, core.ErrUnavailable, core.ErrNotAcquired)
		w.Flush()
		for _, s := range w.Servers {
			locktest.Must(t, s.ScriptFlush(t.Context()).Err())
		}
		_, hold := locktest.MustAcquire(t, t.Context(), w.Mine, core.WaitTime(0))
		locktest.MustRelease(t, hold)
		locktest.Pass(time.Second)
		w.WantFree()
	})
}
