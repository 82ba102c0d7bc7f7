package lockz

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
)

// Observer returns the observer to pass to core.WithObserver, for every lock client of the process.
func (p *Page) Observer() *core.Observer {
	return &core.Observer{
		Client:       p.observeClient,
		AcquireStart: p.observeAcquireStart,
		Contention:   p.observeContention,
		AcquireEnd:   p.observeAcquireEnd,
		HoldStart:    p.observeHoldStart,
		HoldEnd:      p.observeHoldEnd,
		Renewal:      p.observeRenewal,
		Loss:         p.observeLoss,
		Leak:         p.observeLeak,
		Rules:        &aspect.Observer{Failure: p.observeFailure, Unlocked: p.observeUnlocked},
	}
}

// observeAcquireStart gives the acquisition a context by which its other observations are
// found again.
func (p *Page) observeAcquireStart(ctx context.Context, _ core.Acquisition) context.Context {
	return &acquireContext{Context: ctx, page: p}
}

// observeContention notes a waiter and, if it holds something, looks for a deadlock.
func (p *Page) observeContention(ctx context.Context, c core.Contention) {
	a := p.acquisitionOf(ctx)
	if a == nil {
		return
	}
	w := &waiter{
		lock: lockOf(&c.Acquisition), start: c.Start, trace: traceOf(ctx), blockedBy: c.BlockedBy,
		carries: p.carriedBy(ctx),
	}
	if !a.waiter.CompareAndSwap(nil, w) {
		return
	}
	p.table.sameRedis(w)
	p.table.addWaiter(w)
	if len(w.carries) == 0 {
		return
	}
	if found := p.graph.join(w); found != nil {
		p.startWatch(ctx, w, found)
	}
}

// carriedBy is what ctx holds, as far as the page knows it.
func (p *Page) carriedBy(ctx context.Context) []*hold {
	var list []*hold
	for _, info := range core.HoldsOf(ctx) {
		for _, h := range p.table.ofKey(info.Key) {
			earlier := h.acquired.Before(info.Acquired) // a hold that has passed the lock on
			if h.field == info.Field && !earlier && !slices.Contains(list, h) {
				list = append(list, h)
			}
		}
	}
	return list
}

// observeAcquireEnd counts an acquisition, notes a refusal, and forgets the waiter.
func (p *Page) observeAcquireEnd(ctx context.Context, r core.AcquireResult) {
	a := p.acquisitionOf(ctx)
	if a == nil {
		return
	}
	if w := a.waiter.Load(); w != nil {
		p.table.removeWaiter(w)
		if len(w.carries) > 0 {
			p.graph.leave(w)
		}
		if w.endWatch != nil {
			w.endWatch()
		}
	}
	now := r.Start.Add(r.Waited)
	p.hot.add(r.Key, r.Contended, r.Waited)
	if r.Outcome != core.OutcomeAcquired && r.Outcome != core.OutcomeReentered {
		p.refusals.add(string(r.Outcome), event{
			at: now, what: string(r.Outcome), rule: ruleOf(&r.Acquisition), key: r.Key,
			holder: r.BlockedBy, lasted: r.Waited, err: r.Err, trace: traceOf(ctx),
		})
	}
}

// observeHoldStart notes a hold.
func (p *Page) observeHoldStart(ctx context.Context, info core.HoldInfo) context.Context {
	c := &holdContext{Context: ctx, page: p, hold: hold{
		lock: lockOf(&info.Acquisition), field: info.Field, acquired: info.Acquired,
		lease: info.Lease, token: info.Token, trace: traceOf(ctx), reentrant: info.Reentrant, watchdog: info.Watchdog,
	}}
	p.table.addHold(&c.hold)
	return c
}

// observeHoldEnd forgets it.
func (p *Page) observeHoldEnd(ctx context.Context, r core.HoldResult) {
	h := p.holdOf(ctx, &r.HoldInfo)
	if h == nil {
		return
	}
	p.table.removeHold(h)
	if failed(&r) {
		p.incident(h, whatReleaseFailed, r.Err, r.Acquired.Add(r.Held))
	}
}

// failed reports whether Redis has not confirmed a release. A hold that was lost before, or left to
// its lease, had nothing to release.
func failed(r *core.HoldResult) bool {
	left := r.Left && errors.Is(r.Err, core.ErrClosed)
	return r.Err != nil && !r.Lost && !left && !errors.Is(r.Err, core.ErrNotHeld)
}

// incident notes what happened to a hold.
func (p *Page) incident(h *hold, what string, err error, now time.Time) {
	p.incidents.add(what, event{
		at: now, what: what, rule: h.rule, key: h.key, holder: h.field,
		lasted: now.Sub(h.acquired), err: err, trace: h.trace,
	})
}

// observeRenewal notes since when the lease lasts.
func (p *Page) observeRenewal(ctx context.Context, r core.Renewal) {
	h := p.holdOf(ctx, &r.HoldInfo)
	switch {
	case h == nil:
	case r.Err != nil:
		p.incident(h, whatRenewalFailed, r.Err, time.Now())
	default:
		h.renewed.Store(time.Now().UnixNano())
	}
}

// observeLoss notes that a hold is none any more. One that the end of its client has left to its
// lease is in the way of others until then.
func (p *Page) observeLoss(ctx context.Context, l core.Loss) {
	h := p.holdOf(ctx, &l.HoldInfo)
	if h == nil {
		return
	}
	if !errors.Is(l.Cause, core.ErrLost) && errors.Is(l.Cause, core.ErrClosed) {
		p.incident(h, whatLeft, l.Cause, time.Now())
		return
	}
	now := time.Now()
	if !h.lostAt.CompareAndSwap(0, now.UnixNano()) {
		return
	}
	p.lost.Add(1)
	p.lostAt.Store(now.UnixNano())
	p.incident(h, whatLost, l.Cause, now)
}

// observeLeak notes a hold that no caller can release.
func (p *Page) observeLeak(ctx context.Context, info core.HoldInfo) {
	h := p.holdOf(ctx, &info)
	if h == nil {
		return
	}
	p.incident(h, whatLeaked, nil, time.Now())
	p.table.removeHold(h)
}

// observeFailure notes a call without a usable key, which never reaches a lock. Package core
// tells of the others.
func (p *Page) observeFailure(ctx context.Context, f aspect.Failure) {
	if f.Cause != failpolicy.Key || errors.Is(f.Err, core.ErrInvalid) {
		return
	}
	p.refusals.add(string(f.Cause), event{
		at: time.Now(), what: string(f.Cause), rule: rule{f.Rule, core.Kind(f.Kind)},
		lasted: f.Waited, err: f.Err, trace: traceOf(ctx),
	})
}

// observeUnlocked notes a handler that runs without its lock.
func (p *Page) observeUnlocked(ctx context.Context, u aspect.UnlockedRun) {
	what := whatUnlocked + ": " + string(u.Reason)
	p.incidents.add(what, event{at: time.Now(), what: what, rule: rule{u.Rule, core.Kind(u.Kind)}, trace: traceOf(ctx)})
}
