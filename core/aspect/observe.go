package aspect

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
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

// The observers of rules. Each has one method. A value given to [core.WithObserver] of the lock
// client implements one or more of them, or of the observers of package core, where
// [core.HoldEndObserver] has the releases that fail. They are called synchronously, in the order in
// which they were given, from many goroutines at once, with the caller's context. A panic in one is
// contained, the others still run, and [slog.Default] has one record of each type that did. They
// must not block.
type (
	// RuleObserver is notified of every rule when it comes into force, so that its series
	// exist before its first call, and when a reload changes it or takes it away.
	RuleObserver interface {
		ObserveRule(r RuleInfo)
	}

	// WarningObserver is notified of what is odd but not an error, at start-up and at a
	// reload: what a rule file's unmatched and uncovered make a warning, keys that are one
	// lock for all requests, and functions that are skipped only after a wait. It is also notified of what only a call shows: once for
	// each rule, that a variable of the program has no value or cannot be computed; once a
	// minute for each rule, that requests yield no key (400, 413, 415), with the reason and
	// without their values. Without any, [slog.Default] has it.
	WarningObserver interface {
		ObserveWarning(p *ruleset.Problem)
	}

	// DecisionObserver is notified once per rule and call, at the end of the call. A
	// rule that was not reached because one before it refused has no decision.
	DecisionObserver interface {
		ObserveDecision(ctx context.Context, d Decision)
	}

	// FailureObserver is notified when a lock is not acquired, before the strategy acts, and
	// when a loss has decided the answer.
	FailureObserver interface {
		ObserveFailure(ctx context.Context, f Failure)
	}

	// UnlockedObserver is notified before a handler runs without a rule's lock.
	UnlockedObserver interface {
		ObserveUnlocked(ctx context.Context, u UnlockedRun)
	}
)

// observers are the observers of the lock client, split by interface at start-up.
type observers struct {
	panics   notify.Panics
	rule     notify.List[RuleObserver]
	warning  notify.List[WarningObserver]
	decision notify.List[DecisionObserver]
	failure  notify.List[FailureObserver]
	unlocked notify.List[UnlockedObserver]
	reload   notify.List[ruleset.ReloadObserver]
}

// add sorts one observer into the lists. It returns an error if nothing notifies the observer.
func (o *observers) add(v any) error {
	known := []bool{o.rule.Add(v), o.warning.Add(v), o.decision.Add(v), o.failure.Add(v), o.unlocked.Add(v), o.reload.Add(v)}
	switch v.(type) {
	case core.ClientObserver, core.AcquireStartObserver, core.ContentionObserver, core.AcquireEndObserver, core.HoldStartObserver, core.HoldEndObserver,
		core.RenewalObserver, core.LossObserver, core.LeakObserver, core.BackendObserver: // package core notifies it
		return nil
	}
	if !slices.Contains(known, true) {
		return fmt.Errorf("aspect: New: core.WithObserver: %T implements none of the observer interfaces: its method is called as one of theirs, and has another signature", v)
	}
	return nil
}

func (o *observers) observeRule(r RuleInfo) {
	notify.Each(&o.panics, o.rule, func(obs RuleObserver) { obs.ObserveRule(r) })
}

func (o *observers) observeWarning(p *ruleset.Problem) {
	if len(o.warning) == 0 {
		slog.LogAttrs(context.Background(), slog.LevelWarn, "warning about lock rules", ruleset.LogAttrs(p)...) //nolint:forbidigo // rules are checked in no request
		return
	}
	notify.Each(&o.panics, o.warning, func(obs WarningObserver) { obs.ObserveWarning(p) })
}

func (o *observers) observeDecision(ctx context.Context, d Decision) {
	notify.Each(&o.panics, o.decision, func(obs DecisionObserver) { obs.ObserveDecision(ctx, d) })
}

func (o *observers) observeFailure(ctx context.Context, f Failure) {
	notify.Each(&o.panics, o.failure, func(obs FailureObserver) { obs.ObserveFailure(ctx, f) })
}

func (o *observers) observeUnlocked(ctx context.Context, u UnlockedRun) {
	notify.Each(&o.panics, o.unlocked, func(obs UnlockedObserver) { obs.ObserveUnlocked(ctx, u) })
}
