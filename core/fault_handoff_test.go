package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// A fault that a test injects at one command.
type fault = func(*faultproxy.Proxy, faultproxy.Match) *faultproxy.Rule

var (
	holdRequest = (*faultproxy.Proxy).HoldRequest
	holdReply   = (*faultproxy.Proxy).HoldReply
	dropRequest = (*faultproxy.Proxy).DropRequest
	dropReply   = (*faultproxy.Proxy).DropReply
)

// handoff is a lock that is held by a client behind a proxy, and wanted by waiters
// of the same client.
type handoff struct {
	*rig
	client  *core.Client
	hold    *core.Hold
	waiting []<-chan outcome
	cancel  context.CancelFunc // of the first waiter, who will be chosen
	rule    *faultproxy.Rule   // applies to the next hand-off
}

// queued is how the lock of a handoff is held and wanted.
type queued struct {
	waiters int
	lease   time.Duration // of the holder; default: a minute
	wanted  time.Duration // lease of the waiters; default: a minute
	opts    []core.Option // default: patient
	every   bool          // the fault applies to every hand-off, also to those sent again
}

func newHandoff(t *testing.T, q queued, f fault) *handoff {
	t.Helper()
	if q.opts == nil {
		q.opts = []core.Option{patient}
	}
	h := &handoff{rig: newRig(t)}
	h.client = h.locks(q.opts...)
	core.LetRunsLast(h.client)
	_, h.hold = acquired(t, t.Context(), h.client.Lock("k"), leaseOrMinute(q.lease))
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	for i := range q.waiters {
		h.waiting = append(h.waiting, acquiring(ctx, h.client.Lock("k"), leaseOrMinute(q.wanted)))
		waiters(t, h.client, i+1)
		ctx = t.Context()
	}
	match := scriptOn(t, "handoff", "k")
	if !q.every {
		match = faultproxy.Once(match)
	}
	h.rule = f(h.proxy, match)
	return h
}

// release starts the release, and waits until the fault has its hand-off.
func (h *handoff) release() <-chan error {
	h.t.Helper()
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		done <- h.hold.Release(context.Background())
	}()
	select {
	case <-h.rule.Hit():
	case <-ended:
		if h.rule.Hits() == 0 {
			h.t.Fatalf("released without a hand-off: %v", <-done)
		}
	}
	return done
}

func leaseOrMinute(lease time.Duration) core.AcquireOption {
	if lease == 0 {
		lease = time.Minute
	}
	return core.LeaseTime(lease)
}

// goesOn has the waiters take the lock one after the other, and nobody else with
// them; nothing is left at the end. Their order is that of the queue, but for the
// chosen one, who may be put back into it late.
func (h *handoff) goesOn(waiting []<-chan outcome) {
	h.t.Helper()
	next := make(chan outcome, len(waiting))
	for _, w := range waiting {
		go func() { next <- <-w }()
	}
	for range waiting {
		o := h.mustHold(next)
		wantAlive(h.t, o.ctx)
		h.wantHolder("k", o.hold.Field())
		released(h.t, o.hold)
	}
	h.freed("k")
	eventually(h.t, "nothing left behind", func() bool {
		s := h.client.Stats()
		return s.Holds == 0 && s.Waiters == 0
	})
}

// TestFault_Handoff_ChosenWaiterCancelled cancels the chosen waiter while the
// hand-off to it is on its way, has been executed, or is lost. It returns at once;
// the lock goes to the next waiter, or is free.
func TestFault_Handoff_ChosenWaiterCancelled(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fault{"before": holdRequest, "after": holdReply, "reply lost": dropReply, "request lost": dropRequest} {
		for _, n := range []int{1, 3} {
			parallel(t, name+map[int]string{1: "/alone", 3: "/in a queue"}[n], func(t *testing.T) {
				h := newHandoff(t, queued{waiters: n}, f)
				done := h.release()
				h.cancel()
				start, o := time.Now(), <-h.waiting[0]
				wantAtMost(t, "the cancelled waiter", time.Since(start), 0)
				if o.hold != nil { // the cancel came too late, where nothing is held up
					released(t, o.hold)
				} else {
					wantErr(t, o.err, context.Canceled, core.ErrNotAcquired)
				}
				h.rule.Release()
				must(t, <-done)
				h.goesOn(h.waiting[1:])
			})
		}
	}
}

// TestFault_Handoff_ChosenWaiterPrepares has the chosen waiter leave the queue to prepare its wait, and join
// it again, while the hand-off to it is on its way.
func TestFault_Handoff_ChosenWaiterPrepares(t *testing.T) {
	t.Parallel()
	var h *handoff
	done := make(chan (<-chan error), 1)
	h = newHandoff(t, queued{opts: []core.Option{patient, core.WithObserver(&core.Observer{
		Contention: func(context.Context, core.Contention) { done <- h.release() },
	})}}, holdReply)
	waiting := acquiring(t.Context(), h.client.Lock("k"), core.LeaseTime(time.Minute),
		core.BeforeWait(func(context.Context) error { h.rule.Release(); return nil }))
	must(t, <-<-done)
	h.goesOn([]<-chan outcome{waiting})
}

// TestFault_Handoff_LeaseOver has the releaser's lease run out while the hand-off is
// on its way: it is lost and says so. Somebody else may have the lock by then.
func TestFault_Handoff_LeaseOver(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		parallel(t, map[bool]string{true: "taken", false: "free"}[taken], func(t *testing.T) {
			h := newHandoff(t, queued{waiters: 2, lease: 1500 * time.Millisecond, every: true}, holdRequest)
			attempts := h.proxy.HoldRequest(scriptOn(t, "acquire", "k")) // else a waiter takes what is free
			other := h.beside()
			done := h.release()
			h.gone("k")
			var between *core.Hold
			if taken {
				_, between = acquired(t, t.Context(), other.Lock("k"))
			}
			h.land(h.rule)
			wantErr(t, <-done, core.ErrLost)
			if taken {
				h.wantHolder("k", between.Field())
				released(t, between)
			}
			attempts.Release()
			h.goesOn(h.waiting)
		})
	}
}

// TestFault_Handoff_ReplyAfterTheNewLease keeps the reply until the lease of the
// chosen waiter has run out too: that is no success for it, and it goes on waiting.
func TestFault_Handoff_ReplyAfterTheNewLease(t *testing.T) {
	t.Parallel()
	h := newHandoff(t, queued{waiters: 1, wanted: 300 * time.Millisecond, every: true}, holdReply)
	done := h.release()
	h.gone("k")
	h.rule.Release()
	must(t, <-done)
	o := h.mustHold(h.waiting[0])
	wantAlive(t, o.ctx)
	if o.hold.Remaining() <= 0 {
		t.Error("granted with a lease that is over")
	}
	h.wantHolder("k", o.hold.Field())
	released(t, o.hold)
	h.freed("k")
}

// between are the ways in which others meddle with a lock while it is handed over.
var between = map[string]func(r *rig, other *core.Client){
	"deleted": func(r *rig, _ *core.Client) { must(r.t, r.direct.Del(r.t.Context(), "k").Err()) },
	"forced": func(r *rig, other *core.Client) {
		_, err := other.Lock("k").ForceRelease(r.t.Context())
		must(r.t, err)
	},
	"stolen": func(r *rig, _ *core.Client) { r.steal("k") },
}

// TestFault_Handoff_MeddledBefore has the key deleted, forced away or stolen before
// the hand-off lands: the release says ErrLost, nobody else's lock is touched, and
// the chosen waiter goes on waiting.
func TestFault_Handoff_MeddledBefore(t *testing.T) {
	t.Parallel()
	for name, meddle := range between {
		parallel(t, name, func(t *testing.T) {
			h := newHandoff(t, queued{waiters: 2, every: true}, holdRequest)
			other := h.beside()
			done := h.release()
			meddle(h.rig, other)
			h.land(h.rule)
			wantErr(t, <-done, core.ErrLost)
			if name == "stolen" {
				h.wantHolder("k", stranger)
				must(t, h.direct.Del(t.Context(), "k").Err())
			}
			h.goesOn(h.waiting)
		})
	}
}

// TestFault_Handoff_MeddledAfter has the key deleted, forced away or stolen after
// the hand-off, before its reply: the new holder finds out by its next renewal, and
// frees nobody else's lock.
func TestFault_Handoff_MeddledAfter(t *testing.T) {
	t.Parallel()
	watchdog := unhurried(3 * time.Second)
	for name, meddle := range between {
		parallel(t, name, func(t *testing.T) {
			r := newRig(t)
			locks, other := r.locks(core.WithWatchdog(watchdog), patient), r.beside()
			core.LetRunsLast(locks)
			_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
			got := acquiring(t.Context(), locks.Lock("k"))
			waiters(t, locks, 1)
			rule := r.proxy.HoldReply(faultproxy.Once(scriptOn(t, "handoff", "k")))
			done := releasing(hold)
			within(t, "handed over", func() bool {
				return rule.Hits() == 1 && !r.direct.HExists(t.Context(), "k", hold.Field()).Val()
			})
			meddle(r, other)
			granted := time.Now()
			rule.Release()
			must(t, <-done)
			o := r.mustHold(got) // it cannot know yet
			awaitEnd(t, o.ctx)
			wantAtMost(t, "finding out", time.Since(granted), watchdog/3)
			wantEnded(t, o.ctx, core.ErrLost)
			wantErr(t, o.hold.Release(t.Context()), core.ErrLost)
			if name == "stolen" {
				r.wantHolder("k", stranger)
			} else if r.exists("k") {
				t.Error("rose from the dead")
			}
		})
	}
}

// TestFault_Handoff_Unanswered leaves the hand-off without an answer until the
// backend timeout, executed or not, and lets it land at the worst moment: while the
// next holder has the lock, or when it is free again.
func TestFault_Handoff_Unanswered(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	for name, f := range map[string]fault{"not executed": holdRequest, "executed": holdReply} {
		for _, held := range []bool{true, false} {
			parallel(t, name+map[bool]string{true: "/lands on a holder", false: "/lands on a free lock"}[held], func(t *testing.T) {
				r := newRig(t)
				locks := r.locks(core.WithBackendTimeout(timeout))
				core.LetRunsLast(locks)
				_, hold := acquired(t, t.Context(), locks.Lock("k"), core.LeaseTime(time.Minute))
				got := acquiring(t.Context(), locks.Lock("k"))
				waiters(t, locks, 1)
				rule := f(r.proxy, scriptOn(t, "handoff", "k"))
				start := time.Now()
				wantOnly(t, hold.Release(t.Context()), core.ErrUnavailable, core.ErrLost)
				wantAtMost(t, "the release", time.Since(start), timeout)
				wantErr(t, hold.Release(t.Context()), core.ErrNotHeld)
				o := r.mustHold(got)
				wantAtMost(t, "the waiter", time.Since(start), timeout+time.Second)
				r.wantHolder("k", o.hold.Field())
				if held {
					r.land(rule)
					r.wantHolder("k", o.hold.Field())
					wantAlive(t, o.ctx)
				}
				released(t, o.hold)
				r.freed("k")
				r.land(rule)
				r.freed("k")
			})
		}
	}
}
