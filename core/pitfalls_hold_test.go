package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

var nineSeconds = core.WithWatchdog(9 * time.Second)

// The network of a holder of any kind is gone: its context ends while Redis still has the lock.
func TestPitfalls_Partition(t *testing.T) {
	t.Parallel()
	for name, renewed := range map[string]bool{"renewed": true, "fixed lease": false} {
		parallelSorts(t, name, func(t *testing.T, w *world) {
			var opts []core.AcquireOption
			if !renewed {
				opts = append(opts, core.LeaseTime(7*time.Second))
			}
			ctx, _ := acquired(t, t.Context(), w.mine, opts...)
			pass(5 * time.Second)
			w.hole(true)
			for ctx.Err() == nil {
				pass(time.Millisecond)
			}
			wantEnded(t, ctx, core.ErrLost)
			if n := w.there(); n < w.sort.servers/2+1 { // each is renewed at a time of its own
				t.Errorf("when the holder knows, %d of %d servers have the lock, want a majority", n, w.sort.servers)
			}
			w.wantTaken()
			w.hole(false)
		}, nineSeconds)
	}
}

// One renewal of any kind fails, is refused or is late: the lock stays.
func TestPitfalls_OneRenewalFails(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{
		"refused":    func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.AnswerError(m, "OOM") },
		"late":       holdRequest,
		"reply late": holdReply,
	} {
		parallelSorts(t, name, func(t *testing.T, w *world) {
			rules := w.inject(f, w.op("renew"))
			ctx, hold := acquired(t, t.Context(), w.mine)
			pass(40 * time.Second)
			for i, r := range rules {
				if r.Hits() != 1 {
					t.Errorf("%d renewals failed on server %d", r.Hits(), i)
				}
			}
			wantAlive(t, ctx)
			w.wantTaken()
			released(t, hold)
			let(rules)
			pass(time.Second)
			w.wantFree()
		}, nineSeconds)
	}
}

// A lock of any kind is deleted, forced away, or another one has it since: its holder knows at the next renewal,
// which brings nothing back and touches no lock of another. Its release frees no lock of another either.
func TestPitfalls_DeletedUnderItsHolder(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"deleted", "forced", "taken by another"} {
		parallelSorts(t, how, func(t *testing.T, w *world) {
			ctx, hold := acquired(t, t.Context(), w.mine)
			pass(20 * time.Second)
			if how == "forced" && w.sort.servers == 1 { // a Redlock cannot be
				freed, err := w.lock(w.beside).ForceRelease(t.Context())
				if must(t, err); !freed {
					t.Error("it was not there")
				}
			} else {
				w.flush()
			}
			var newer context.Context
			var theirs *core.Hold
			if how == "taken by another" {
				newer, theirs = acquired(t, t.Context(), w.other)
			}
			pass(4 * time.Second)
			wantEnded(t, ctx, core.ErrLost)
			wantErr(t, context.Cause(ctx), core.ErrNotHeld)
			wantSame(t, "remaining after the loss", hold.Remaining(), 0)
			pass(time.Minute)
			wantErr(t, hold.Release(t.Context()), core.ErrLost)
			if theirs != nil {
				wantAlive(t, newer)
				released(t, theirs)
			}
			pass(time.Second)
			w.wantNothing("after the loss")
			w.wantFree()
		}, nineSeconds)
	}
}

// A command of a holder of any kind lands when its lock is gone, or another's: it neither comes back nor
// takes anything, nor does it shorten the lease.
func TestPitfalls_OperationLandsLate(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"sethold", "renew", "refresh", "release"} {
		for _, taken := range []bool{true, false} {
			parallelSorts(t, op+map[bool]string{true: "/taken", false: "/free"}[taken], func(t *testing.T, w *world) { operationLandsLate(t, w, op, taken) }, nineSeconds)
		}
	}
}

func operationLandsLate(t *testing.T, w *world, op string, taken bool) {
	t.Helper()
	if op == "sethold" && !w.enters {
		return
	}
	rules := w.inject(holdRequest, w.op(op))
	ctx, hold := acquired(t, t.Context(), w.mine, core.LeaseTime(time.Minute))
	if op == "renew" {
		released(t, hold)
		ctx, hold = acquired(t, t.Context(), w.mine)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		switch op {
		case "sethold":
			_, _, _ = w.mine.Acquire(ctx, core.WaitTime(0))
		case "refresh":
			_ = hold.Refresh(ctx, 50*time.Millisecond)
		case "release":
			_ = hold.Release(ctx)
		default:
		}
	}()
	pass(4 * time.Second)
	if rules[0].Hits() == 0 {
		t.Error("nothing is late")
	}
	w.flush()
	if !taken {
		let(rules)
		w.wantNothing("when it has landed")
	} else {
		newer, theirs := acquired(t, t.Context(), w.other)
		let(rules)
		pass(20 * time.Second)
		wantAlive(t, newer)
		released(t, theirs)
	}
	<-done
	_ = hold.Release(t.Context())
	pass(time.Second)
	w.wantNothing("after everything has landed")
	w.wantFree()
}

// The renewal of any kind goes on when the request has ended, and ends for good at the release,
// which works for one who has gone.
func TestPitfalls_RequestHasGone(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		_, hold := acquired(t, ctx, w.mine)
		cancel()
		pass(30 * time.Second)
		w.wantTaken()
		must(t, hold.Release(ctx))
		sent := w.inject(func(p *faultproxy.Proxy, m faultproxy.Match) *faultproxy.Rule { return p.Watch(m) }, func() faultproxy.Match { return scripts })
		pass(time.Minute)
		for i, s := range sent {
			if n := s.Hits(); n > 0 {
				t.Errorf("%d scripts after the release, on server %d", n, i)
			}
		}
		w.wantNothing("after the release")
		w.wantFree()
	}, nineSeconds)
}

// A second release of any kind, and one that comes when another has the lock, are errors and free
// nobody's.
func TestPitfalls_ReleaseTooMuch(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		_, hold := acquired(t, t.Context(), w.mine, core.LeaseTime(time.Second))
		pass(2 * time.Second)
		newer, theirs := acquired(t, t.Context(), w.other)
		wantErr(t, hold.Release(t.Context()), core.ErrLost, core.ErrNotHeld)
		wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
		wantErr(t, hold.Refresh(t.Context(), time.Hour), core.ErrNotHeld)
		pass(20 * time.Second)
		wantAlive(t, newer)
		wantSame(t, "servers that have it", w.there(), w.sort.servers)
		released(t, theirs)
		wantOnly(t, theirs.Release(t.Context()), core.ErrNotHeld, core.ErrLost)
		wantErr(t, theirs.Refresh(t.Context(), time.Second), core.ErrNotHeld)
		wantErr(t, theirs.Leave(t.Context(), time.Second), core.ErrNotHeld)
		pass(time.Second)
		w.wantFree()
	}, nineSeconds)
}

// Whoever enters again, with a shorter lease, and leaves, lowers nothing under the outer hold; others
// are kept out until that is released. Another request is another owner.
func TestPitfalls_Nested(t *testing.T) {
	t.Parallel()
	eachSort(t, func(t *testing.T, w *world) {
		if !w.enters {
			return
		}
		ctx, outer := acquired(t, t.Context(), w.mine, core.LeaseTime(time.Hour))
		for range 3 {
			inner, hold := acquired(t, ctx, w.mine, core.LeaseTime(time.Second))
			_, most := acquired(t, inner, w.mine, core.LeaseTime(time.Second))
			must(t, most.Refresh(t.Context(), 2*time.Second))
			released(t, most)
			w.wantTaken()
			released(t, hold)
			w.wantTaken()
		}
		for _, s := range w.servers {
			s.wantTTL(pool, 59*time.Minute, time.Hour)
		}
		pass(30 * time.Minute)
		wantAlive(t, ctx)
		w.wantTaken()
		released(t, outer)
		pass(time.Second)
		w.wantFree()
	})
}
