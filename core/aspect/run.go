package aspect

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/preview"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Run runs one call under the rules of the point; see the package comment. ctx is the context of the caller. Run
// returns after the handler has returned and the locks were released.
func (p *Point) Run(ctx context.Context, call Call) Outcome {
	if show, asked := ctx.Value(preview.Key{}).(func(Site, []*ruleset.Resolved, *Preview, keyexpr.Env)); asked {
		show(p.site, p.source, &Preview{rules: p.rules}, call.Env(ctx))
		return Outcome{Verdict: VerdictRan}
	}
	r := run{point: p, visit: visit{call: call, caller: ctx}, ctx: ctx}
	r.out.Verdict = VerdictRan
	r.steps = r.inline[:0]
	r.execute()
	return r.out
}

// run is one call in progress through the rules of a point. Each rule is a [step]; the run turns the steps into the
// outcome and notifies observers.
type run struct {
	point *Point
	visit visit
	ctx   context.Context //nolint:containedctx // carries the holds so far

	steps    []step // one for each rule that the call has reached, in order
	inline   [2]step
	grant    Grant
	window   *window // nil if no rule has a debounce
	returned bool    // the handler returned and did not panic
	out      Outcome
}

// execute runs the call. The order is fixed: condition, key and lock of each rule; the handler; the releases; the
// strategy; the observers.
func (r *run) execute() {
	defer r.observe() // also if the handler panics
	ran := func() bool {
		defer r.release() // also if the handler panics
		r.openWindow()
		for _, rule := range r.point.rules {
			if !r.pass(rule) {
				return false
			}
		}
		r.handle()
		return true
	}()
	if ran {
		r.answerLosses()
	} else {
		r.applyStrategy()
	}
}

// pass takes the lock of a rule. It reports whether the call may go on, with the lock or without it.
func (r *run) pass(rule *compiledRule) bool {
	r.steps = append(r.steps, step{rule: rule})
	s := &r.steps[len(r.steps)-1]
	r.ctx = s.take(r.ctx, r.point.env, &r.visit, r.point.site.Late)
	if !r.settle(s) {
		return false
	}
	if !rule.DryRun && r.visit.abandoned() {
		s.fail(rule.decide(failpolicy.Canceled), 0, context.Canceled)
		r.settle(s)
		return false
	}
	return true
}

// settle copies the result of a step into the outcome and the grant. It reports whether the call may go on.
func (r *run) settle(s *step) bool {
	if s.refused() {
		r.out.Cause, r.out.Misconfigured, r.out.Reason = s.cause, s.program, s.err
		r.out.Rule, r.out.Index = s.rule.Resolved, len(r.steps)-1
		r.observeFailure(s)
		if s.strategy != failpolicy.Proceed {
			r.out.Status, r.out.RetryAfter = s.status, s.hint
			return false
		}
		s.unlocked = UnlockedProceed
	}
	if s.unlocked.rank() > r.grant.Unlocked.rank() {
		r.grant.Unlocked = s.unlocked
	}
	if s.hold != nil && s.unlocked == "" {
		r.grant.Hold = s.hold
		if token := s.hold.Token(); token != 0 {
			r.grant.Token = token
		}
	}
	return true
}

// handle runs the handler with the locks of all rules.
func (r *run) handle() {
	r.observeUnlocked()
	r.out.Unlocked = r.grant.Unlocked
	r.out.Err = r.visit.call.Handle(r.ctx, r.grant)
	r.returned = true
}

// release releases the locks that were taken, the last one first.
func (r *run) release() {
	succeeded := r.beginsWindow()
	for i := range slices.Backward(r.steps) {
		r.steps[i].release(r.visit.caller, succeeded)
	}
}

// applyStrategy carries out the strategy of the rule that refused the call. No lock is held.
func (r *run) applyStrategy() {
	s := &r.steps[len(r.steps)-1]
	switch reply, ok := s.strategy.Reply(); {
	case ok:
		r.out.Verdict, r.out.Reply = VerdictAnswered, reply
	case s.strategy == failpolicy.Fallback:
		r.out.Verdict = VerdictFallback
		r.out.Err = r.visit.call.Fallback(forFallback(r.visit.caller, r.out), s.rule.Fallback)
	default:
		r.out.Verdict = VerdictRefused
	}
}

// answerLosses records locks that were lost while the handler ran, and changes the outcome if a rule requires it. If
// several losses change the outcome, the client gets the first one.
func (r *run) answerLosses() {
	for i := range r.steps {
		s := &r.steps[i]
		if s.lost == nil || s.unlocked == UnlockedDryRun {
			continue
		}
		r.out.Lost = true
		s.cause, s.err = failpolicy.Lost, s.lost
		if r.out.Verdict != VerdictRan || s.rule.OnLost != failpolicy.Fail && !r.gaveUp(s) {
			continue
		}
		d := s.rule.decide(failpolicy.Lost)
		s.strategy = d.strategy
		r.out.Verdict, r.out.Cause, r.out.Misconfigured, r.out.Status, r.out.Reason = VerdictLost, d.cause, d.program, d.status, s.lost
		r.out.Rule, r.out.Index, r.out.RetryAfter = s.rule.Resolved, i, 0
		r.observeFailure(s)
	}
}

// gaveUp reports whether the handler stopped because the step lost its lock. The handler then returned the loss or, unless
// the rule ignores losses, a cancellation. If the context of the caller is done, the caller has left, and gaveUp returns
// false.
func (r *run) gaveUp(s *step) bool {
	switch err := r.out.Err; {
	case err == nil, r.visit.caller.Err() != nil:
		return false
	case errors.Is(err, core.ErrLost), errors.Is(err, core.ErrClosed):
		return true
	default:
		return s.rule.OnLost != failpolicy.Ignore && r.visit.isCancellation(err)
	}
}

// openWindow adds the debounce window of the run to its context, so that the handler can cancel it. It does nothing if
// no rule has a debounce.
func (r *run) openWindow() {
	if slices.ContainsFunc(r.point.rules, func(c *compiledRule) bool { return c.Debounce > 0 }) {
		r.window = &window{outer: windowOf(r.ctx)}
		r.ctx = context.WithValue(r.ctx, windowKey{}, r.window)
	}
}

// beginsWindow reports whether a debounce window begins after the run.
func (r *run) beginsWindow() bool {
	return r.returned && r.out.Err == nil && (r.window == nil || !r.window.canceled.Load())
}

// observeUnlocked notifies observers that the handler is about to run without locks.
func (r *run) observeUnlocked() {
	obs := &r.point.env.observers
	if r.grant.Unlocked == "" || !obs.unlocked.Observed() {
		return
	}
	for i := range r.steps {
		if s := &r.steps[i]; s.unlocked != "" {
			obs.unlocked.Notify(r.visit.caller, UnlockedRun{Subject: s.rule.subject, Reason: s.unlocked})
		}
	}
}

// observeFailure notifies observers that a lock was not acquired, or was lost.
func (r *run) observeFailure(s *step) {
	obs := &r.point.env.observers
	if !obs.failure.Observed() {
		return
	}
	obs.failure.Notify(r.visit.caller, Failure{
		Subject: s.rule.subject, Cause: s.cause, Strategy: s.strategy, Waited: s.waited, Err: s.err,
	})
}

// observe notifies observers of every rule that the call has reached.
func (r *run) observe() {
	obs := &r.point.env.observers
	if !obs.decision.Observed() {
		return
	}
	for i := range r.steps {
		s := &r.steps[i]
		obs.decision.Notify(r.visit.caller, Decision{
			Subject: s.rule.subject, Verdict: r.out.Verdict, Cause: s.cause, Strategy: s.strategy,
			Unlocked: s.unlocked, DryRun: s.unlocked == UnlockedDryRun, Waited: s.waited, Err: s.err,
		})
	}
}
