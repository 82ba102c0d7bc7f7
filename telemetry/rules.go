package telemetry

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
)

// subject finds what was computed for the rule of an observation.
func (t *Telemetry) subject(s aspect.Subject) *rule {
	return t.rule(s.Rule, core.Kind(s.Kind))
}

// ObserveRule makes the series of a rule exist.
func (t *Telemetry) ObserveRule(r aspect.RuleInfo) {
	if r.Retracted {
		t.forget(&r)
		return
	}
	ctx := context.Background() //nolint:forbidigo // rules are compiled at start-up, in no request
	rule := t.subject(r.Subject)
	t.remember(&r, rule)
	rule.debounced.Store(r.Debounce > 0)
	for _, c := range failpolicy.Causes() {
		t.inst.failures.Add(ctx, 0, rule.failure(answer(&r.Policy, c)).add...)
	}
	for _, u := range []aspect.Unlocked{
		aspect.UnlockedProceed, aspect.UnlockedDisabled, aspect.UnlockedDryRun, aspect.UnlockedWhen,
	} {
		t.inst.unlocked.Add(ctx, 0, rule.reason(string(u)).add...)
	}
	if r.DryRun {
		t.countDryRun(ctx, 0, rule, "")
		for _, c := range failpolicy.Causes() {
			t.countDryRun(ctx, 0, rule, c)
		}
	}
}

func answer(p *failpolicy.Policy, c failpolicy.Cause) failure {
	if !c.AsksStrategy() {
		return failure{cause: c}
	}
	return failure{cause: c, strategy: p.Strategy(c)}
}

// ObserveFailure counts a lock that was not acquired or not kept. A request without a key
// never reaches the lock, so its wait is counted here; that of a lock which cannot be acquired for
// its key, [core.ErrInvalid], has been.
func (t *Telemetry) ObserveFailure(ctx context.Context, f aspect.Failure) {
	rule := t.subject(f.Subject)
	told := failure{cause: f.Cause}
	if f.Cause.AsksStrategy() {
		told.strategy = f.Strategy
	}
	t.inst.failures.Add(ctx, 1, rule.failure(told).add...)
	if f.Cause == failpolicy.Key && !errors.Is(f.Err, core.ErrInvalid) {
		t.inst.wait.Record(ctx, f.Waited.Seconds(), rule.outcome(string(core.OutcomeKey)).record...)
	}
}

// ObserveUnlocked counts a handler that runs without its lock.
func (t *Telemetry) ObserveUnlocked(ctx context.Context, u aspect.UnlockedRun) {
	t.inst.unlocked.Add(ctx, 1, t.subject(u.Subject).reason(string(u.Reason)).add...)
}

// ObserveDecision counts what a dry run would have done.
func (t *Telemetry) ObserveDecision(ctx context.Context, d aspect.Decision) {
	if !d.DryRun {
		return
	}
	t.countDryRun(ctx, 1, t.subject(d.Subject), d.Cause)
}

// countDryRun counts calls that would not have had the lock for a cause, or without one would have.
func (t *Telemetry) countDryRun(ctx context.Context, calls int64, rule *rule, c failpolicy.Cause) {
	outcome := string(c)
	if c == "" {
		outcome = string(core.OutcomeAcquired)
	}
	t.inst.dryRuns.Add(ctx, calls, rule.outcome(outcome).add...)
}
