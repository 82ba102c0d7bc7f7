package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// subject finds what was computed for the rule of an observation.
func (t *Telemetry) subject(s aspect.Subject) *rule {
	return t.rule(s.Rule, core.Kind(s.Kind))
}

// observeRule notes a rule that comes into force, or goes. Its series begin at zero with the next
// collection.
func (t *Telemetry) observeRule(r aspect.RuleInfo) {
	rule, at := t.subject(r.Subject), site{endpoint: r.Endpoint, rule: r.Rule}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Retracted {
		delete(t.sites, at)
		return
	}
	rule.debounced.Store(r.Debounce > 0)
	t.sites[at] = declared{rule: rule, info: r, new: true} // in place of the same rule, compiled before
}

// countFailuresFromZero makes the series of the failures and of the unlocked runs that a rule can have.
// The series of callers that leave begin with the first such caller.
func (t *Telemetry) countFailuresFromZero(ctx context.Context, rule *rule, r *aspect.RuleInfo) {
	causes := causesOf(r)
	for _, c := range causes {
		t.inst.failures.Add(ctx, 0, rule.failure(c, r.Policy.Strategy(c)).add...)
	}
	reasons := []aspect.Unlocked{aspect.UnlockedDisabled} // by the kill switch, too
	if r.Policy.Uses(failpolicy.Proceed) {
		reasons = append(reasons, aspect.UnlockedProceed)
	}
	if r.DryRun {
		reasons = append(reasons, aspect.UnlockedDryRun)
		t.countDryRun(ctx, 0, rule, "")
		for _, c := range causes {
			t.countDryRun(ctx, 0, rule, c)
		}
	}
	for _, u := range reasons {
		t.inst.unlocked.Add(ctx, 0, rule.reason(string(u)).add...)
	}
}

// causesOf returns the causes that a rule can have, except the causes of a caller that leaves.
func causesOf(r *aspect.RuleInfo) []failpolicy.Cause {
	causes := []failpolicy.Cause{failpolicy.Backend, failpolicy.Key, failpolicy.Lost}
	if r.Debounce > 0 {
		causes = append(causes, failpolicy.Debounced)
	} else {
		causes = append(causes, failpolicy.Busy)
	}
	if r.WaitTime != 0 {
		causes = append(causes, failpolicy.Overload)
	}
	return causes
}

// observeFailure counts a lock that was not acquired or not kept. A request without a key
// never reaches the lock, so its wait is counted here; that of a lock which cannot be acquired for
// its key, [core.ErrInvalid], has been.
func (t *Telemetry) observeFailure(ctx context.Context, f aspect.Failure) {
	rule := t.subject(f.Subject)
	t.inst.failures.Add(ctx, 1, rule.failure(f.Cause, f.Strategy).add...)
	if f.Cause == failpolicy.Key && !errors.Is(f.Err, core.ErrInvalid) {
		t.inst.wait.Record(ctx, f.Waited.Seconds(), rule.outcome(string(core.OutcomeKey)).record...)
	}
}

// observeUnlocked counts a handler that runs without its lock.
func (t *Telemetry) observeUnlocked(ctx context.Context, u aspect.UnlockedRun) {
	t.inst.unlocked.Add(ctx, 1, t.subject(u.Subject).reason(string(u.Reason)).add...)
}

// observeDecision counts what a dry run would have done.
func (t *Telemetry) observeDecision(ctx context.Context, d aspect.Decision) {
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

// site is the identity of a rule: the same name may be declared at several endpoints.
type site struct {
	endpoint ruleset.Endpoint
	rule     string
}

// declared is what gauges show of a rule in force.
type declared struct {
	*rule

	info aspect.RuleInfo
	new  bool // its series have not begun
}

// collectRules observes the gauges of rules in force. Of rules that share their labels the
// shortest times are shown: those that are the first to be too short.
func (t *Telemetry) collectRules(o metric.Observer) {
	states := map[string]int64{stateEnabled: 0, stateDisabled: 0, stateDryRun: 0}
	waits, leases := shortest{}, shortest{}
	t.mu.Lock()
	for _, d := range t.sites {
		switch {
		case d.info.Disabled:
			states[stateDisabled]++
		case d.info.DryRun:
			states[stateDryRun]++
		default:
			states[stateEnabled]++
		}
		waits.add(d.rule, d.info.WaitTime)
		leases.add(d.rule, d.info.LeaseTime)
	}
	t.mu.Unlock()
	for state, n := range states {
		o.ObserveInt64(t.inst.rules, n, metric.WithAttributes(attrState.String(state)))
	}
	waits.observe(o, t.inst.waitTime)
	leases.observe(o, t.inst.leaseTime)
}

// shortest has the shortest time of each rule that has one: not of a wait that is none or has no
// end, and not of a lease that is renewed.
type shortest map[*rule]time.Duration

func (s shortest) add(r *rule, d time.Duration) {
	if known, ok := s[r]; d > 0 && (!ok || d < known) {
		s[r] = d
	}
}

func (s shortest) observe(o metric.Observer, gauge metric.Float64Observable) {
	for r, d := range s {
		o.ObserveFloat64(gauge, d.Seconds(), r.observe...)
	}
}
