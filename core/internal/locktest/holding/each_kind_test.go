package holding_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

var nineSeconds = core.WithWatchdog(9 * time.Second)

// The network of a holder fails. Its context ends while Redis still has the lock.
func TestHold_EachKind_Partition(t *testing.T) {
	t.Parallel()
	for name, renewed := range map[string]bool{"renewed": true, "fixed lease": false} {
		locktest.ParallelEachKind(t, name, func(t *testing.T, w *locktest.World) {
			var opts []core.AcquireOption
			if !renewed {
				opts = append(opts, core.LeaseTime(7*time.Second))
			}
			ctx, _ := locktest.MustAcquire(t, t.Context(), w.Mine, opts...)
			locktest.Pass(5 * time.Second)
			w.BlackHole(true)
			for ctx.Err() == nil {
				locktest.Pass(time.Millisecond)
			}
			locktest.WantEnded(t, ctx, core.ErrLost)
			if n := w.HeldOn(); n < w.Kind.Nodes/2+1 { // the servers are renewed at different times
				t.Errorf("when the holder learns of the loss, %d of %d servers have the lock, want a majority", n, w.Kind.Nodes)
			}
			w.WantTaken()
			w.BlackHole(false)
		}, nineSeconds)
	}
}

// One renewal is refused or late, or its reply is late. The hold goes on.
func TestWatchdog_EachKind_OneRenewalFails(t *testing.T) {
	t.Parallel()
	for _, f := range []locktest.Fault{locktest.Refuse("OOM"), locktest.HoldRequest, locktest.HoldReply} {
		locktest.ParallelEachKind(t, f.Name, func(t *testing.T, w *locktest.World) {
			rules := w.Inject(f, w.Op("renew"))
			ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine)
			locktest.Pass(40 * time.Second)
			for i, r := range rules {
				if r.Hits() != 1 {
					t.Errorf("server %[2]d: %[1]d renewals failed, want 1", r.Hits(), i)
				}
			}
			locktest.WantAlive(t, ctx)
			w.WantTaken()
			locktest.MustRelease(t, hold)
			locktest.LandAll(rules)
			locktest.Pass(time.Second)
			w.WantFree()
		}, nineSeconds)
	}
}

// A lock is deleted, forced away, or taken by another client. The holder finds the loss at the next renewal. Neither
// the renewal nor the release brings the lock back or touches the lock of the other client.
func TestHold_EachKind_DeletedForcedOrTaken(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"deleted", "forced", "taken by another"} {
		locktest.ParallelEachKind(t, how, func(t *testing.T, w *locktest.World) {
			ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine)
			locktest.Pass(20 * time.Second)
			if how == "forced" && w.Kind.Nodes == 1 { // a Redlock cannot be forced away
				lock := w.Lock(w.Beside, locktest.Pool)
				switch w.Kind.Name { // a lock of several keys is forced away by one of them
				case "multi":
					lock = w.Beside[0].Lock(locktest.Pool)
				case "group":
					lock = w.Beside[0].GroupLock(locktest.Pool, "b")
				}
				freed, err := lock.ForceRelease(t.Context())
				if locktest.Must(t, err); !freed {
					t.Error("the lock was not there")
				}
			} else {
				w.Flush()
			}
			var newer context.Context
			var theirs *core.Hold
			if how == "taken by another" {
				newer, theirs = locktest.MustAcquire(t, t.Context(), w.Other)
			}
			locktest.Pass(4 * time.Second)
			locktest.WantEnded(t, ctx, core.ErrLost)
			locktest.WantErr(t, context.Cause(ctx), core.ErrNotHeld)
			locktest.WantSame(t, "remaining after the loss", hold.Remaining(), 0)
			locktest.Pass(time.Minute)
			locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost)
			if theirs != nil {
				locktest.WantAlive(t, newer)
				locktest.MustRelease(t, theirs)
			}
			locktest.Pass(time.Second)
			w.WantNothing("after the loss")
			w.WantFree()
		}, nineSeconds)
	}
}

// A command of a holder lands when the lock is gone, or when another client has the lock. The lock does not come back,
// and the other client keeps the lock and its lease.
func TestHold_EachKind_OperationLandsLate(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"sethold", "renew", "refresh", "release"} {
		for _, taken := range []bool{true, false} {
			locktest.ParallelEachKind(t, op+map[bool]string{true: "/taken", false: "/free"}[taken], func(t *testing.T, w *locktest.World) { operationLandsLate(t, w, op, taken) }, nineSeconds)
		}
	}
}

func operationLandsLate(t *testing.T, w *locktest.World, op string, taken bool) {
	t.Helper()
	if op == "sethold" && !w.IsReentrant {
		return
	}
	rules := w.Inject(locktest.HoldRequest, w.Op(op))
	ctx, hold := locktest.MustAcquire(t, t.Context(), w.Mine, core.LeaseTime(time.Minute))
	if op == "renew" {
		locktest.MustRelease(t, hold)
		ctx, hold = locktest.MustAcquire(t, t.Context(), w.Mine)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		switch op {
		case "sethold":
			_, _, _ = w.Mine.Acquire(ctx, core.WaitTime(0))
		case "refresh":
			_ = hold.Refresh(ctx, 50*time.Millisecond)
		case "release":
			_ = hold.Release(ctx)
		default:
		}
	}()
	locktest.Pass(4 * time.Second)
	if rules[0].Hits() == 0 {
		t.Error("no command was late")
	}
	w.Flush()
	if !taken {
		locktest.LandAll(rules)
		w.WantNothing("when it has landed")
	} else {
		newer, theirs := locktest.MustAcquire(t, t.Context(), w.Other)
		locktest.LandAll(rules)
		locktest.Pass(20 * time.Second)
		locktest.WantAlive(t, newer)
		locktest.MustRelease(t, theirs)
	}
	<-done
	_ = hold.Release(t.Context())
	locktest.Pass(time.Second)
	w.WantNothing("after everything has landed")
	w.WantFree()
}

// The watchdog renews a hold after its request has ended, until its release. The release works with a context that
// has ended.
func TestHold_EachKind_OutlivesItsRequest(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		ctx, cancel := context.WithCancel(t.Context())
		_, hold := locktest.MustAcquire(t, ctx, w.Mine)
		cancel()
		locktest.Pass(30 * time.Second)
		w.WantTaken()
		locktest.Must(t, hold.Release(ctx))
		sent := w.WatchScripts()
		locktest.Pass(time.Minute)
		for i, s := range sent {
			if n := s.Hits(); n > 0 {
				t.Errorf("server %[2]d: %[1]d scripts after the release, want none", n, i)
			}
		}
		w.WantNothing("after the release")
		w.WantFree()
	}, nineSeconds)
}

// A second release, and a release after another client has got the lock, are errors. They free no lock.
func TestRelease_EachKind_TwiceOrLate(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		_, hold := locktest.MustAcquire(t, t.Context(), w.Mine, core.LeaseTime(time.Second))
		locktest.Pass(2 * time.Second)
		newer, theirs := locktest.MustAcquire(t, t.Context(), w.Other)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrLost, core.ErrNotHeld)
		locktest.WantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		locktest.WantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrNotHeld)
		locktest.Pass(20 * time.Second)
		locktest.WantAlive(t, newer)
		locktest.WantSame(t, "servers that have it", w.HeldOn(), w.Kind.Nodes)
		locktest.MustRelease(t, theirs)
		locktest.WantOnly(t, theirs.Release(t.Context()), core.ErrNotHeld, core.ErrLost)
		locktest.WantErr(t, theirs.Refresh(t.Context(), time.Second), core.ErrNotHeld)
		locktest.WantErr(t, theirs.Leave(t.Context(), time.Second), core.ErrNotHeld)
		locktest.Pass(time.Second)
		w.WantFree()
	}, nineSeconds)
}

// A re-entry with a shorter lease does not shorten the lease of the outer hold, not even after the release of the
// re-entry. The lock excludes others until the outer release. Another request does not re-enter.
func TestHold_EachKind_Nested(t *testing.T) {
	t.Parallel()
	locktest.EachKind(t, func(t *testing.T, w *locktest.World) {
		if !w.IsReentrant {
			return
		}
		ctx, outer := locktest.MustAcquire(t, t.Context(), w.Mine, core.LeaseTime(time.Hour))
		for range 3 {
			inner, hold := locktest.MustAcquire(t, ctx, w.Mine, core.LeaseTime(time.Second))
			_, most := locktest.MustAcquire(t, inner, w.Mine, core.LeaseTime(time.Second))
			locktest.Must(t, most.Refresh(t.Context(), 2*time.Second))
			locktest.MustRelease(t, most)
			w.WantTaken()
			locktest.MustRelease(t, hold)
			w.WantTaken()
		}
		for _, s := range w.Servers {
			s.WantTTL(locktest.Pool, 59*time.Minute, time.Hour+time.Second) // the hash of a group outlives the lease by 100 ms
		}
		locktest.Pass(30 * time.Minute)
		locktest.WantAlive(t, ctx)
		w.WantTaken()
		locktest.MustRelease(t, outer)
		locktest.Pass(time.Second)
		w.WantFree()
	})
}
