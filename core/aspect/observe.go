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

// Subject identifies the rule that an observation is about. All its strings are static, so they can be metric labels.
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
	Debounce  time.Duration // the window, 0 for none; core reports its refusals as busy
	WaitTime  time.Duration // the longest wait of a call: 0 for one attempt, or [ruleset.WaitForever]
	LeaseTime time.Duration // the fixed lease; 0 if the watchdog renews it
	Policy    failpolicy.Policy
	Retracted bool // the rule is no longer in force
}

// Decision describes the result of one rule for one call.
type Decision struct {
	Subject
	Verdict  Verdict             // how the whole call ended
	Cause    failpolicy.Cause    // why the lock was not acquired or not kept; empty otherwise
	Strategy failpolicy.Strategy // the answer to the cause; empty without a cause
	Unlocked Unlocked            // why the handler ran without this rule's lock; empty otherwise
	DryRun   bool                // the rule makes a dry run, so Cause did not affect the call
	Waited   time.Duration       // time until the lock was acquired or refused
	Err      error               // the error that led to Cause; may name the key: not for clients or labels
}

// Failure describes a lock that was not acquired, or whose loss decided the answer. A dry run has no Failure.
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

// Observer contains functions that the adapters of a lock client call. Set it as the Rules of a [core.Observer], whose
// HoldEnd reports releases that fail. A nil function is not called.
//
// The functions are called synchronously, from many goroutines at once, with the caller's context. They must not block.
// Several observers are called in the order in which they were given. A panic in a function is recovered: the other
// functions still run, and [slog.Default] gets one record for each function that panicked.
type Observer struct {
	// Rule is notified of every rule when it comes into force, so that its series exist before its first call. It is
	// also notified when a reload changes the rule or removes it.
	Rule func(r RuleInfo)

	// Warning is notified of problems that are not errors, at start-up and at a reload: problems to which the settings
	// unmatched and uncovered of a rule file give the severity warn, keys that are one lock for all requests, and
	// functions that are skipped only after a wait. At start-up it is notified of the endpoints that run unlocked because of
	// disabled, dry_run or a strategy proceed; at the first call under a set, of rules for a transport whose adapter did not
	// get the set; and of a Lock whose handler the program has dropped, when it is garbage-collected. It is also notified of
	// two problems that show only during a call:
	// a variable of the program that has no value or cannot be computed (once for each rule), and requests that yield
	// no key (400, 413, 415; at most once a minute for each rule). The warning about requests contains the reason, but
	// no value of a request. If no observer has a Warning function, [slog.Default] gets the warnings.
	Warning func(p *ruleset.Problem)

	// Decision is notified once per rule and call, at the end of the call. A rule that the call did not reach, because
	// an earlier rule refused, has no decision.
	Decision func(ctx context.Context, d Decision)

	// Failure is notified when a lock is not acquired, before the strategy is applied, and when the loss of a lock
	// decides the answer.
	Failure func(ctx context.Context, f Failure)

	// Unlocked is notified before a handler runs without the lock of a rule.
	Unlocked func(ctx context.Context, u UnlockedRun)

	// Reload is notified of every attempt to bring the rule file of an adapter into force, including a first load that
	// succeeds. If several adapters or lock clients share the observer, it is notified of each attempt once. It must not
	// start a reload itself.
	Reload func(r ruleset.Reload)
}

// ObservesRules marks an Observer as a value for the Rules of a [core.Observer].
func (*Observer) ObservesRules() {}

// observers holds the functions of all observers of the lock client.
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
		slog.LogAttrs(context.Background(), slog.LevelWarn, "warning about lock rules", ruleset.LogAttrs(p)...) //nolint:forbidigo // warnings about rules belong to no request
		return
	}
	notify.Each(&o.panics, o.warning, func(observe func(*ruleset.Problem)) { observe(p) })
}

// observeReloads subscribes the observers to the reloads of a rule file.
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
