package aspect

import (
	"context"
	"time"

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
	Disabled bool
	DryRun   bool
	Policy   failpolicy.Policy
}

// Decision describes how one rule went for one call.
type Decision struct {
	Subject
	Verdict  Verdict             // what became of the call as a whole
	Cause    failpolicy.Cause    // why the lock was not had or not kept; empty otherwise
	Strategy failpolicy.Strategy // what answered the cause; empty without a cause
	Unlocked Unlocked            // why the handler ran without this rule's lock; empty otherwise
	DryRun   bool                // Cause is what would have happened
	Waited   time.Duration       // time spent on getting the lock, or on not getting it
	Err      error               // the reason behind Cause; may name the key: not for clients or labels
}

// Failure describes a lock that was not had, or not kept. Dry runs are not told.
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

// ReleaseFailure describes a lock whose release failed, or a debounce window that
// could not be left behind. The key ends with its lease.
type ReleaseFailure struct {
	Subject
	Err error
}

// The observers. Each has one method; a value given to [WithObserver] implements
// one or more of them. They are called synchronously in the order in which they
// were given, from many goroutines at once, with the caller's context; a panic in
// one is contained and the others still run. They must not block.
type (
	// RuleObserver is told of every rule when it is compiled, so that its series
	// exist before its first call.
	RuleObserver interface {
		ObserveRule(r RuleInfo)
	}

	// DecisionObserver is told once per rule and call, at the end of the call. A
	// rule that was not reached because one before it refused is not told.
	DecisionObserver interface {
		ObserveDecision(ctx context.Context, d Decision)
	}

	// FailureObserver is told when a lock is not had, before the strategy acts, and
	// when it was lost.
	FailureObserver interface {
		ObserveFailure(ctx context.Context, f Failure)
	}

	// UnlockedObserver is told before a handler runs without a rule's lock.
	UnlockedObserver interface {
		ObserveUnlocked(ctx context.Context, u UnlockedRun)
	}

	// ReleaseFailureObserver is told when a release failed.
	ReleaseFailureObserver interface {
		ObserveReleaseFailure(ctx context.Context, f ReleaseFailure)
	}
)

type observers struct{}
