package aspect

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/preview"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Run runs one call under the rules of the point; see the package comment. ctx is
// the caller's. It returns when the handler has returned and the locks were
// released.
func (p *Point) Run(ctx context.Context, call Call) Outcome {
	if show, asked := ctx.Value(preview.Key{}).(func(Site, []*ruleset.Resolved, *Preview, keyexpr.Env)); asked {
		show(p.site, p.source, &Preview{rules: p.rules}, call.Env(ctx))
		return Outcome{Verdict: VerdictRan}
	}
	r := run{point: p, call: call, caller: ctx, ctx: ctx}
	r.out.Verdict = VerdictRan
	r.frames = r.inline[:0]
	r.execute()
	return r.out
}

// run is one call under way.
type run struct {
	point  *Point
	call   Call
	caller context.Context
	ctx    context.Context // carries the holds so far

	env      keyexpr.Env // nil until it is needed
	frames   []frame     // of the rules reached, in order
	inline   [2]frame
	grant    Grant
	prepared bool    // for waiting
	window   *window // nil where no rule has a debounce
	returned bool    // the handler has returned, and did not panic
	out      Outcome
}

// frame is one rule in one run.
type frame struct {
	rule     *compiled
	hold     *core.Hold
	acquired time.Time
	waited   time.Duration
	cause    failpolicy.Cause
	strategy failpolicy.Strategy
	unlocked Unlocked
	err      error // behind cause
	lost     error // why the hold ended under the handler
}

func (r *run) execute() {
	defer r.observe()
	if r.locked() {
		r.judgeLoss()
		return
	}
	r.answer()
}

// locked runs the handler with the locks of all rules, and frees them. It reports
// false when a rule refused; the locks of the rules before it are free then, too.
func (r *run) locked() bool {
	defer r.release()
	r.openWindow()
	for i := range r.point.rules {
		if !r.enter(i) || r.abandoned(i) {
			return false
		}
	}
	r.announceUnlocked()
	r.out.Unlocked = r.grant.Unlocked
	r.out.Err = r.call.Handle(r.ctx, r.grant)
	r.returned = true
	return true
}

// enter passes one rule: with its lock, or without where it says so. False means
// that it refuses.
func (r *run) enter(i int) bool {
	rule := r.point.rules[i]
	r.frames = append(r.frames, frame{rule: rule})
	f := &r.frames[i]
	if rule.Disabled || r.point.aspect.Suspended() {
		return r.without(f, UnlockedDisabled)
	}
	if rule.when != nil {
		applies, err := rule.when.Eval(r.variables())
		switch {
		case err != nil:
			return r.noKey(f, err)
		case !applies:
			return r.without(f, UnlockedWhen)
		}
	}
	if passed, settled := r.early(f); settled {
		return passed
	}
	names, err := r.names(rule)
	switch {
	case err != nil:
		return r.noKey(f, err)
	case rule.DryRun:
		return r.rehearse(f, names)
	default:
		return r.acquire(f, names)
	}
}

// abandoned reports whether the call was answered elsewhere while it passed a rule.
func (r *run) abandoned(i int) bool {
	call, ok := r.call.(abandoner)
	f := &r.frames[i]
	if !ok || f.rule.DryRun || !call.Abandoned() {
		return false
	}
	r.fail(f, f.rule.decide(failpolicy.Canceled), 0, context.Canceled)
	return true
}

// without passes a rule without its lock.
func (r *run) without(f *frame, why Unlocked) bool {
	f.unlocked = why
	if why.rank() > r.grant.Unlocked.rank() {
		r.grant.Unlocked = why
	}
	return true
}

// variables are the values for conditions and keys.
func (r *run) variables() keyexpr.Env {
	if r.env == nil {
		r.env = r.call.Env(r.caller)
	}
	return r.env
}

// announceUnlocked tells that the handler is about to run without locks.
func (r *run) announceUnlocked() {
	obs := &r.point.aspect.observers
	if r.grant.Unlocked == "" || !obs.unlocked.Observed() {
		return
	}
	for i := range r.frames {
		if f := &r.frames[i]; f.unlocked != "" {
			obs.unlocked.Notify(r.caller, UnlockedRun{Subject: f.rule.subject, Reason: f.unlocked})
		}
	}
}

// fail settles that a rule's lock is not acquired. It reports whether the handler runs
// all the same.
func (r *run) fail(f *frame, d decision, hint time.Duration, err error) bool {
	f.cause, f.strategy, f.err = d.cause, d.strategy, err
	if f.rule.DryRun {
		return r.without(f, UnlockedDryRun)
	}
	r.out.Cause, r.out.Misconfigured, r.out.Reason = d.cause, d.program, err
	r.out.Rule, r.out.Index = f.rule.Resolved, len(r.frames)-1
	r.observeFailure(f)
	if d.strategy == failpolicy.Proceed {
		return r.without(f, UnlockedProceed)
	}
	r.out.Status, r.out.RetryAfter = d.status, hint
	return false
}

// answer carries out the strategy of the rule that refused. No lock is held.
func (r *run) answer() {
	f := &r.frames[len(r.frames)-1]
	switch reply, ok := f.strategy.Reply(); {
	case ok:
		r.out.Verdict, r.out.Reply = VerdictAnswered, reply
	case f.strategy == failpolicy.Fallback:
		r.out.Verdict = VerdictFallback
		r.out.Err = r.call.Fallback(withOutcome(r.caller, r.out), f.rule.Fallback)
	default:
		r.out.Verdict = VerdictRefused
	}
}

// observe tells how every rule went. It runs last, also when the handler panics.
func (r *run) observe() {
	obs := &r.point.aspect.observers
	if !obs.decision.Observed() {
		return
	}
	for i := range r.frames {
		f := &r.frames[i]
		obs.decision.Notify(r.caller, Decision{
			Subject: f.rule.subject, Verdict: r.out.Verdict, Cause: f.cause, Strategy: f.strategy,
			Unlocked: f.unlocked, DryRun: f.unlocked == UnlockedDryRun, Waited: f.waited, Err: f.err,
		})
	}
}

func (r *run) observeFailure(f *frame) {
	obs := &r.point.aspect.observers
	if !obs.failure.Observed() {
		return
	}
	obs.failure.Notify(r.caller, Failure{
		Subject: f.rule.subject, Cause: f.cause, Strategy: f.strategy, Waited: f.waited, Err: f.err,
	})
}
