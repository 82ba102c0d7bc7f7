package lockz

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
)

// tracker keeps what observers report: the clients, holds and waiters of this process, rings of waiters,
// hot keys, refusals and incidents. Packages core and aspect notify its observer. It does not depend on
// the page: collect reads it.
type tracker struct {
	clients   clients
	table     *table
	graph     *graph
	deadlocks *deadlocks
	hot       *hotKeys
	refusals  history[event]
	incidents history[event]
	lost      atomic.Int64
	lostAt    atomic.Int64 // Unix nanoseconds of the last loss; 0: none

	acquireMark, holdMark byte // their addresses are the keys of context values
}

func newTracker(cfg *config) (*tracker, error) {
	table := newTable()
	graph := newGraph(table)
	deadlocks, err := newDeadlocks(graph, cfg)
	if err != nil {
		return nil, err
	}
	return &tracker{table: table, graph: graph, deadlocks: deadlocks, hot: newHotKeys()}, nil
}

func (t *tracker) observer() *core.Observer {
	return &core.Observer{
		Client:       t.clients.add,
		AcquireStart: t.observeAcquireStart,
		Contention:   t.observeContention,
		AcquireEnd:   t.observeAcquireEnd,
		HoldStart:    t.observeHoldStart,
		HoldEnd:      t.observeHoldEnd,
		Renewal:      t.observeRenewal,
		Loss:         t.observeLoss,
		Leak:         t.observeLeak,
		Rules:        &aspect.Observer{Failure: t.observeFailure, Unlocked: t.observeUnlocked},
	}
}

// acquireContext carries the waiter of an acquisition to later observations.
type acquireContext struct {
	context.Context

	tracker *tracker
	waiter  atomic.Pointer[waiter] // nil: the acquisition did not find its lock taken
}

// Value returns c itself for the key of its tracker.
func (c *acquireContext) Value(key any) any {
	if key == any(&c.tracker.acquireMark) {
		return c
	}
	return c.Context.Value(key)
}

// acquisitionOf returns the context that observeAcquireStart created, or nil if ctx does not descend from
// one.
func (t *tracker) acquisitionOf(ctx context.Context) *acquireContext {
	c, ok := ctx.Value(&t.acquireMark).(*acquireContext)
	if !ok {
		return nil
	}
	return c
}

// observeAcquireStart returns a context in which later observations find the acquisition.
func (t *tracker) observeAcquireStart(ctx context.Context, _ core.Acquisition) context.Context {
	return &acquireContext{Context: ctx, tracker: t}
}

// observeContention adds a waiter. If its context carries holds, observeContention looks for a ring.
func (t *tracker) observeContention(ctx context.Context, c core.Contention) {
	a := t.acquisitionOf(ctx)
	if a == nil {
		return
	}
	w := &waiter{
		lock: lockOf(&c.Acquisition), start: c.Start, trace: traceOf(ctx), blockedBy: c.BlockedBy,
		carries: t.holdsIn(ctx),
	}
	if !a.waiter.CompareAndSwap(nil, w) {
		return
	}
	t.table.learnRealm(w)
	t.table.addWaiter(w)
	if len(w.carries) == 0 {
		return
	}
	if ring := t.graph.join(w); ring != nil {
		t.deadlocks.startWatch(ctx, w, ring)
	}
}

// holdsIn returns the holds in ctx that the tracker contains.
func (t *tracker) holdsIn(ctx context.Context) []*hold {
	var list []*hold
	for _, info := range core.HoldsOf(ctx) {
		for _, h := range t.table.ofKey(info.Key) {
			earlier := h.acquired.Before(info.Acquired) // the hold passed the lock on
			if h.field == info.Field && !earlier && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
	}
	return list
}

// observeAcquireEnd counts an acquisition, removes its waiter and keeps a refusal.
func (t *tracker) observeAcquireEnd(ctx context.Context, r core.AcquireResult) {
	a := t.acquisitionOf(ctx)
	if a == nil {
		return
	}
	if w := a.waiter.Load(); w != nil {
		t.table.removeWaiter(w)
		if len(w.carries) > 0 {
			t.graph.leave(w)
		}
		if w.endWatch != nil {
			w.endWatch()
		}
	}
	t.hot.add(r.Key, r.Contended, r.Waited)
	if r.Outcome != core.OutcomeAcquired && r.Outcome != core.OutcomeReentered {
		t.refusals.add(string(r.Outcome), event{
			at: r.Start.Add(r.Waited), what: string(r.Outcome), rule: ruleOf(&r.Acquisition), key: r.Key,
			holder: r.BlockedBy, lasted: r.Waited, err: r.Err, trace: traceOf(ctx),
		})
	}
}

// holdContext carries a hold to later observations.
type holdContext struct {
	context.Context

	tracker *tracker
	hold    hold
}

// Value returns c itself for the key of its tracker.
func (c *holdContext) Value(key any) any {
	if key == any(&c.tracker.holdMark) {
		return c
	}
	return c.Context.Value(key)
}

// holdOf returns the hold that an observation concerns, or nil if the tracker does not contain
// it.
func (t *tracker) holdOf(ctx context.Context, info *core.HoldInfo) *hold {
	c, ok := ctx.Value(&t.holdMark).(*holdContext)
	if !ok || c.hold.field != info.Field || c.hold.key != info.Key || !c.hold.acquired.Equal(info.Acquired) {
		return nil
	}
	return &c.hold
}

// observeHoldStart adds a hold.
func (t *tracker) observeHoldStart(ctx context.Context, info core.HoldInfo) context.Context {
	c := &holdContext{Context: ctx, tracker: t, hold: hold{
		lock: lockOf(&info.Acquisition), field: info.Field, acquired: info.Acquired,
		lease: info.Lease, token: info.Token, trace: traceOf(ctx), reentrant: info.Reentrant, watchdog: info.Watchdog,
	}}
	t.table.addHold(&c.hold)
	return c
}

// observeHoldEnd removes a hold.
func (t *tracker) observeHoldEnd(ctx context.Context, r core.HoldResult) {
	h := t.holdOf(ctx, &r.HoldInfo)
	if h == nil {
		return
	}
	t.table.removeHold(h)
	if releaseFailed(&r) {
		t.keepIncident(h, whatReleaseFailed, r.Err, r.Acquired.Add(r.Held))
	}
}

// releaseFailed reports whether Redis did not confirm a release. A hold that was already lost or left to
// its lease had nothing to release.
func releaseFailed(r *core.HoldResult) bool {
	left := r.Left && errors.Is(r.Err, core.ErrClosed)
	return r.Err != nil && !r.Lost && !left && !errors.Is(r.Err, core.ErrNotHeld)
}

// observeRenewal records the time of a renewal.
func (t *tracker) observeRenewal(ctx context.Context, r core.Renewal) {
	h := t.holdOf(ctx, &r.HoldInfo)
	switch {
	case h == nil:
	case r.Err != nil:
		t.keepIncident(h, whatRenewalFailed, r.Err, time.Now())
	default:
		h.renewed.Store(time.Now().UnixNano())
	}
}

// observeLoss marks a hold as lost. A hold that its closed client left to its lease, or that was held for too long, is not
// lost, because it blocks other callers until the lease expires.
func (t *tracker) observeLoss(ctx context.Context, l core.Loss) {
	h := t.holdOf(ctx, &l.HoldInfo)
	if h == nil {
		return
	}
	if !errors.Is(l.Cause, core.ErrLost) && errors.Is(l.Cause, core.ErrClosed) {
		t.keepIncident(h, whatLeft, l.Cause, time.Now())
		return
	}
	now := time.Now()
	if errors.Is(l.Cause, core.ErrHeldTooLong) {
		t.keepIncident(h, whatHeldTooLong, nil, now)
		return
	}
	if !h.lostAt.CompareAndSwap(0, now.UnixNano()) {
		return
	}
	t.lost.Add(1)
	t.lostAt.Store(now.UnixNano())
	t.keepIncident(h, whatLost, l.Cause, now)
}

// observeLeak removes a hold that no caller can release any more.
func (t *tracker) observeLeak(ctx context.Context, info core.HoldInfo) {
	h := t.holdOf(ctx, &info)
	if h == nil {
		return
	}
	t.keepIncident(h, whatLeaked, nil, time.Now())
	t.table.removeHold(h)
}

// keepIncident keeps an incident of a hold.
func (t *tracker) keepIncident(h *hold, what string, err error, now time.Time) {
	t.incidents.add(what, event{
		at: now, what: what, rule: h.rule, key: h.key, holder: h.field,
		lasted: now.Sub(h.acquired), err: err, trace: h.trace,
	})
}

// observeFailure keeps the refusal of a call without a usable key, which never reaches a lock. Package core
// reports the other refusals.
func (t *tracker) observeFailure(ctx context.Context, f aspect.Failure) {
	if f.Cause != failpolicy.Key || errors.Is(f.Err, core.ErrInvalid) {
		return
	}
	t.refusals.add(string(f.Cause), event{
		at: time.Now(), what: string(f.Cause), rule: rule{f.Rule, core.Kind(f.Kind)},
		lasted: f.Waited, err: f.Err, trace: traceOf(ctx),
	})
}

// observeUnlocked keeps the incident of a handler that runs without its lock.
func (t *tracker) observeUnlocked(ctx context.Context, u aspect.UnlockedRun) {
	what := whatUnlocked + ": " + string(u.Reason)
	t.incidents.add(what, event{at: time.Now(), what: what, rule: rule{u.Rule, core.Kind(u.Kind)}, trace: traceOf(ctx)})
}
