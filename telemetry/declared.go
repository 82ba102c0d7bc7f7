package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// declarations reports the rules in force and the results of their endpoints: the metrics rules,
// rule.wait_time, rule.lease_time, failures, unlocked and dry_runs, and warnings about rules.
type declarations struct {
	inst  *instruments
	rules *rules
	log   *logger

	mu    sync.Mutex
	sites map[site]declaredRule
}

// site identifies a declared rule, because several endpoints may declare rules with the same
// name.
type site struct {
	endpoint ruleset.Endpoint
	rule     string
}

// declaredRule is a rule in force.
type declaredRule struct {
	*rule

	info aspect.RuleInfo
	new  bool // the series of the rule do not exist yet
}

func newDeclarations(inst *instruments, rules *rules, log *logger) *declarations {
	return &declarations{inst: inst, rules: rules, log: log, sites: make(map[site]declaredRule)}
}

// ruleOf returns the entry of the rule of an observation.
func (o *declarations) ruleOf(s aspect.Subject) *rule {
	return o.rules.entry(s.Rule, core.Kind(s.Kind))
}

// observeRule adds a rule that comes into force or removes a retracted one. The series of the rule start at
// zero with the next collection.
func (o *declarations) observeRule(r aspect.RuleInfo) {
	rule, at := o.ruleOf(r.Subject), site{endpoint: r.Endpoint, rule: r.Rule}
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Retracted {
		delete(o.sites, at)
		return
	}
	rule.debounced.Store(r.Debounce > 0)
	o.sites[at] = declaredRule{rule: rule, info: r, new: true} // replaces the rule that was compiled earlier
}

// observeWarning logs a warning about rules. Without [WithLogger], the warning goes to
// [slog.Default].
func (o *declarations) observeWarning(p *ruleset.Problem) {
	ctx := context.Background() //nolint:forbidigo // rules are checked outside of requests
	o.log.alarm().LogAttrs(ctx, slog.LevelWarn, "warning about lock rules", ruleset.LogAttrs(p)...)
}

// observeFailure counts a lock that was not acquired or not kept. A request without a key never reaches the
// lock, so its wait is recorded here. If a lock cannot be acquired because of its key ([core.ErrInvalid]),
// the acquisition already recorded the wait.
func (o *declarations) observeFailure(ctx context.Context, f aspect.Failure) {
	rule := o.ruleOf(f.Subject)
	o.inst.failures.Add(ctx, 1, rule.failure(f.Cause, f.Strategy).add...)
	if f.Cause == failpolicy.Key && !errors.Is(f.Err, core.ErrInvalid) {
		o.inst.wait.Record(ctx, f.Waited.Seconds(), rule.outcome(string(core.OutcomeKey)).record...)
	}
}

// observeUnlocked counts a handler that runs without its lock.
func (o *declarations) observeUnlocked(ctx context.Context, u aspect.UnlockedRun) {
	o.inst.unlocked.Add(ctx, 1, o.ruleOf(u.Subject).reason(string(u.Reason)).add...)
}

// observeDecision counts what a rule in dry run would have done.
func (o *declarations) observeDecision(ctx context.Context, d aspect.Decision) {
	if d.DryRun {
		o.countDryRun(ctx, 1, o.ruleOf(d.Subject), d.Cause)
	}
}

// countDryRun counts calls that would have failed to get the lock for the cause c. If c is empty, they would
// have got the lock.
func (o *declarations) countDryRun(ctx context.Context, calls int64, rule *rule, c failpolicy.Cause) {
	outcome := string(c)
	if c == "" {
		outcome = string(core.OutcomeAcquired)
	}
	o.inst.dryRuns.Add(ctx, calls, rule.outcome(outcome).add...)
}

// begin starts the series of new rules at zero.
func (o *declarations) begin(ctx context.Context) {
	for _, d := range o.takeNew() {
		o.countFromZero(ctx, d.rule, &d.info)
	}
}

// takeNew returns the declared rules whose series do not exist yet. It returns each of them once.
func (o *declarations) takeNew() (list []declaredRule) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for at, d := range o.sites {
		if d.new {
			list = append(list, d)
			d.new = false
			o.sites[at] = d
		}
	}
	return list
}

// countFromZero starts the series of the failures and unlocked runs that a rule can have. The series of
// callers that leave start with the first such caller.
func (o *declarations) countFromZero(ctx context.Context, rule *rule, r *aspect.RuleInfo) {
	causes := causesOf(r)
	for _, c := range causes {
		o.inst.failures.Add(ctx, 0, rule.failure(c, r.Policy.Strategy(c)).add...)
	}
	reasons := []aspect.Unlocked{aspect.UnlockedDisabled} // also the reason of the kill switch
	if r.Policy.Uses(failpolicy.Proceed) {
		reasons = append(reasons, aspect.UnlockedProceed)
	}
	if r.DryRun {
		reasons = append(reasons, aspect.UnlockedDryRun)
		o.countDryRun(ctx, 0, rule, "")
		for _, c := range causes {
			o.countDryRun(ctx, 0, rule, c)
		}
	}
	for _, u := range reasons {
		o.inst.unlocked.Add(ctx, 0, rule.reason(string(u)).add...)
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

// collect reports the gauges of the rules in force. Of rules that share their labels it reports the shortest
// times, because these are the first to be too short.
func (o *declarations) collect(m metric.Observer) {
	states := map[string]int64{stateEnabled: 0, stateDisabled: 0, stateDryRun: 0}
	waits, leases := shortestTimes{}, shortestTimes{}
	o.mu.Lock()
	for _, d := range o.sites {
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
	o.mu.Unlock()
	for state, n := range states {
		m.ObserveInt64(o.inst.rules, n, metric.WithAttributes(attrState.String(state)))
	}
	waits.observe(m, o.inst.waitTime)
	leases.observe(m, o.inst.leaseTime)
}

// shortestTimes holds the shortest time of each rule. It omits a rule without a time: its calls do not wait or
// wait without a limit, or its lease is renewed.
type shortestTimes map[*rule]time.Duration

func (s shortestTimes) add(r *rule, d time.Duration) {
	if known, ok := s[r]; d > 0 && (!ok || d < known) {
		s[r] = d
	}
}

func (s shortestTimes) observe(m metric.Observer, gauge metric.Float64Observable) {
	for r, d := range s {
		m.ObserveFloat64(gauge, d.Seconds(), r.observe...)
	}
}
