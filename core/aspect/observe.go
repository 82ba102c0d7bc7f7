package aspect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/notify"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Subject is the rule that an observation is about. Every string in it is static:
// fit for metric labels.
type Subject struct {
	Rule     string // the rule's name
	Endpoint ruleset.Endpoint
	Kind     ruleset.Kind
}

// RuleInfo describes a rule that was compiled.
type RuleInfo struct {
	Subject
	Disabled  bool
	DryRun    bool
	Debounce  time.Duration // the window, 0 for none; core sees its refusals as busy
	WaitTime  time.Duration // how long a call waits at most: 0 for one attempt, [ruleset.WaitForever] for ever
	LeaseTime time.Duration // the fixed lease; 0 for one that the watchdog renews
	Policy    failpolicy.Policy
	Retracted bool // the rule is in force no more: a reload took it away
}

// Decision describes how one rule went for one call.
type Decision struct {
	Subject
	Verdict  Verdict             // what became of the call as a whole
	Cause    failpolicy.Cause    // why the lock was not acquired or not kept; empty otherwise
	Strategy failpolicy.Strategy // what answered the cause; empty without a cause
	Unlocked Unlocked            // why the handler ran without this rule's lock; empty otherwise
	DryRun   bool                // Cause is what would have happened
	Waited   time.Duration       // time spent on getting the lock, or on not getting it
	Err      error               // the reason behind Cause; may name the key: not for clients or labels
}

// Failure describes a lock that was not acquired, or was lost and so decided the
// answer. There is none of a dry run.
type Failure struct {
	Subject
	Cause    failpolicy.Cause
	Strategy failpolicy.Strategy
	Waited   time.Duration
	Err      error // may name the key: not for clients or labels
}

// UnlockedRun describes a handler that is about to run without a rule's lock.
type UnlockedRun struct {
	Subject
	Reason Unlocked
}

// Observer has functions that the adapters over a lock client call: it is the Rules of a [core.Observer]. Functions
// that are nil are not called. [core.Observer.HoldEnd] has the releases that fail. The functions are called
// synchronously, from many goroutines at once, with the caller's context. Several observers are called in the order in
// which they were given. They must not block. A panic in one is contained: the others still run, and
// [slog.Default] has one record of each function that has panicked.
type Observer struct {
	// Rule is notified of every rule when it comes into force, so that its series
	// exist before its first call, and when a reload changes it or takes it away.
	Rule func(r RuleInfo)

	// Warning is notified of what is odd but not an error, at start-up and at a
	// reload: what a rule file's unmatched and uncovered make a warning, keys that are one
	// lock for all requests, and functions that are skipped only after a wait. It is also notified of what only a call shows: once for
	// each rule, that a variable of the program has no value or cannot be computed; once a
	// minute for each rule, that requests yield no key (400, 413, 415), with the reason and
	// without their values. Without any, [slog.Default] has it.
	Warning func(p *ruleset.Problem)

	// Decision is notified once per rule and call, at the end of the call. A
	// rule that was not reached because one before it refused has no decision.
	Decision func(ctx context.Context, d Decision)

	// Failure is notified when a lock is not acquired, before the strategy acts, and
	// when a loss has decided the answer.
	Failure func(ctx context.Context, f Failure)

	// Unlocked is notified before a handler runs without a rule's lock.
	Unlocked func(ctx context.Context, u UnlockedRun)

	// Reload is notified of every attempt to take the rule file of an adapter into force, once, however many
	// adapters and lock clients have the observer. It must not reload.
	Reload func(r ruleset.Reload)
}

// ObservesRules makes an Observer the Rules of a [core.Observer].
func (*Observer) ObservesRules() {}

// observers are the functions of the observers of the lock client, by kind.
type observers struct {
	panics   notify.Panics
	given    []*Observer
	rule     notify.List[func(RuleInfo)]
	warning  notify.List[func(*ruleset.Problem)]
	decision notify.Event[Decision]
	failure  notify.Event[Failure]
	unlocked notify.Event[UnlockedRun]
}

// add sorts the functions of one observer into the lists.
func (o *observers) add(v *core.Observer) error {
	if v.Rules == nil {
		return nil
	}
	rules, ok := v.Rules.(*Observer)
	if !ok || rules == nil {
		return fmt.Errorf("aspect: New: core.WithObserver: Rules is %T, nil or another type: write &aspect.Observer{…}", v.Rules)
	}
	o.given = append(o.given, rules)
	o.rule.Add(rules.Rule)
	o.warning.Add(rules.Warning)
	o.decision.Add(&o.panics, rules.Decision)
	o.failure.Add(&o.panics, rules.Failure)
	o.unlocked.Add(&o.panics, rules.Unlocked)
	return nil
}

func (o *observers) observeRule(r RuleInfo) {
	notify.Each(&o.panics, o.rule, func(observe func(RuleInfo)) { observe(r) })
}

func (o *observers) observeWarning(p *ruleset.Problem) {
	if len(o.warning) == 0 {
		slog.LogAttrs(context.Background(), slog.LevelWarn, "warning about lock rules", ruleset.LogAttrs(p)...) //nolint:forbidigo // rules are checked in no request
		return
	}
	notify.Each(&o.panics, o.warning, func(observe func(*ruleset.Problem)) { observe(p) })
}

// observeReloads has the observers notified of the reloads of a rule file.
func (o *observers) observeReloads(p ruleset.Provider) {
	live, ok := p.(*ruleset.Live)
	if !ok {
		return
	}
	for _, rules := range o.given {
		if rules.Reload != nil {
			live.Observe(&rules.Reload)
		}
	}
}
