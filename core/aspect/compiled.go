package aspect

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// ShadowSuffix is the suffix of the keys that a dry run takes instead of the real keys.
const ShadowSuffix = ":dry_run"

// compiledRule is a rule with everything that can be computed at start-up. For any call it returns the names of the
// rule's locks, the locks, and the decision about a cause. It depends on no call.
type compiledRule struct {
	*ruleset.Resolved
	subject Subject
	policy  failpolicy.Policy
	when    *keyexpr.Condition // nil: the rule always applies
	keys    []*keyexpr.Template

	wait      time.Duration        // 0: one attempt; or ruleset.WaitForever
	options   []core.AcquireOption // for its lock; the caller's deadline adds one
	rehearsal []core.AcquireOption // for the lock of a dry run
	anyLock   []core.AcquireOption // for an attempt whose lock is not known yet; see step.failEarly
	late      bool                 // a key needs a variable that arrives late

	fixed   lockNames // the name of its only lock, if isFixed
	isFixed bool      // the rule has one key, which is constant

	recent atomic.Int64 // recent hold time in nanoseconds, 0 while unknown
	warned keyWarnings
}

// info describes the rule to observers.
func (c *compiledRule) info() RuleInfo {
	info := RuleInfo{
		Subject: c.subject, Disabled: c.Disabled, DryRun: c.DryRun, Debounce: c.Debounce, WaitTime: c.wait, Policy: c.policy,
	}
	if !c.watchdog() {
		info.LeaseTime = c.LeaseTime
	}
	return info
}

// uses reports whether a key or the condition reads a variable.
func (c *compiledRule) uses(variable string) bool {
	return c.when != nil && c.when.Uses(variable) || slices.ContainsFunc(c.keys, func(key *keyexpr.Template) bool { return key.Uses(variable) })
}

// watchdog reports whether the watchdog renews the lease.
func (c *compiledRule) watchdog() bool { return c.LeaseTime == ruleset.Watchdog }

// recordHoldTime moves the recent hold time towards d by an eighth of the difference. Concurrent calls may overwrite
// each other, which does not matter for an estimate.
func (c *compiledRule) recordHoldTime(d time.Duration) {
	old := c.recent.Load()
	if old == 0 {
		c.recent.Store(max(int64(d), 1))
		return
	}
	c.recent.Store(max(old+(int64(d)-old)/8, 1))
}

// lockNames holds the names of the locks that one rule takes in one call.
type lockNames struct {
	one  string
	many []string // sorted and unique; nil if there is one
}

// all lists the names.
func (n lockNames) all() []string {
	if n.many != nil {
		return n.many
	}
	return []string{n.one}
}

// shadow returns the names of the locks that a dry run takes instead.
func (n lockNames) shadow() lockNames {
	if n.many == nil {
		return lockNames{one: n.one + ShadowSuffix}
	}
	shadows := make([]string, len(n.many))
	for i, name := range n.many {
		shadows[i] = name + ShadowSuffix
	}
	return lockNames{many: shadows}
}

// names evaluates the keys of the rule. variables returns the variables of the call; names does not call it for a
// constant key.
func (c *compiledRule) names(variables func() keyexpr.Env) (lockNames, error) {
	switch {
	case c.isFixed:
		return c.fixed, nil
	case len(c.keys) == 1 && !c.keys[0].IsList():
		key, err := c.keys[0].Key(variables())
		return lockNames{one: key}, err
	default:
		many, err := c.manyNames(variables())
		return lockNames{many: many}, err
	}
}

// manyNames evaluates every template of the rule.
func (c *compiledRule) manyNames(env keyexpr.Env) ([]string, error) {
	var names []string
	for _, template := range c.keys {
		keys, err := template.Keys(env)
		if err != nil {
			return nil, err
		}
		names = append(names, keys...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > keyexpr.DefaultMaxElements {
		return nil, &keyexpr.EvalError{
			Reason: keyexpr.ReasonTooMany,
			Detail: fmt.Sprintf("the templates of the rule yield %d keys together, at most %d are allowed", len(names), keyexpr.DefaultMaxElements),
		}
	}
	return names, nil
}

// lock returns the lock of the rule with the names for one call. Only a reentrant lock has many names.
func (c *compiledRule) lock(locks *core.Client, n lockNames) core.Lock {
	if n.many != nil {
		return locks.MultiLock(n.many...)
	}
	return c.lockOf(locks, n.one)
}

// lockOf returns the lock of the rule's kind with a name. Package core has every kind that a rule can name.
func (c *compiledRule) lockOf(locks *core.Client, name string) core.Lock {
	lock, _ := locks.ForAdapters().LockOf(core.Kind(c.Kind), name, c.Permits)
	return lock
}

// shadowLock returns the lock that a dry run takes instead. If several calls may hold a lock of the rule's kind at once,
// or if the rule takes a write lock, the shadow lock is of the same kind. Otherwise it is a plain lock: a dry run waits
// for no other caller, so it needs no queue, and a fenced lock would leave its token counter in Redis.
func (c *compiledRule) shadowLock(locks *core.Client, n lockNames) core.Lock {
	shadow := n.shadow()
	switch {
	case shadow.many != nil:
		return locks.MultiLock(shadow.many...)
	case c.Kind.Traits().Shared || c.Kind == ruleset.Write:
		return c.lockOf(locks, shadow.one)
	default:
		return locks.Lock(shadow.one)
	}
}

// isTaken reports whether a call would have to wait for a lock of the rule in the given state.
func (c *compiledRule) isTaken(state core.State) bool {
	switch c.Kind {
	case ruleset.Read:
		return hasWriter(state)
	case ruleset.Semaphore:
		return len(state.Holders) >= c.Permits
	default:
		return len(state.Holders) > 0
	}
}

// hasWriter reports whether one of the holders is a writer.
func hasWriter(state core.State) bool {
	for field := range state.Holders {
		if strings.HasSuffix(field, ":write") {
			return true
		}
	}
	return false
}

// decision is what a rule does about a cause.
type decision struct {
	cause    failpolicy.Cause
	strategy failpolicy.Strategy // [failpolicy.Error] for a cause that has no strategy
	status   failpolicy.Status   // for a client that is refused
	program  bool                // the program is at fault, and not the request
}

// decide returns the decision of the rule about a cause.
func (c *compiledRule) decide(cause failpolicy.Cause) decision {
	return decision{cause: cause, strategy: c.policy.Strategy(cause), status: c.policy.Statuses.Status(cause)}
}

// decideKey returns the decision about [failpolicy.Key]. The rule's own status takes precedence over the given one.
// Status 500 means that the program is at fault. The decision is then an error with status 500, whatever the rule
// says, so that the fault is found before the program goes live.
func (c *compiledRule) decideKey(status int) decision {
	if status == http.StatusInternalServerError {
		return decision{failpolicy.Key, failpolicy.Error, failpolicy.Cause("").Status(), true}
	}
	d := c.decide(failpolicy.Key)
	if c.policy.Statuses.Key.HTTP == 0 {
		d.status.HTTP = status
	}
	return d
}

// keyStatus returns the status of a request that yields no key; 500 if the program is at fault.
func keyStatus(err error) int {
	e, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok {
		return http.StatusInternalServerError
	}
	switch e.Reason {
	case keyexpr.ReasonTooLarge:
		return http.StatusRequestEntityTooLarge
	case keyexpr.ReasonUnsupportedMedia:
		return http.StatusUnsupportedMediaType
	case keyexpr.ReasonUnset, keyexpr.ReasonInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}

// busyCause returns the cause of a call that finds the lock taken.
func (c *compiledRule) busyCause() failpolicy.Cause {
	if c.Debounce > 0 {
		return failpolicy.Debounced
	}
	return failpolicy.Busy
}

// hint returns the time after which the client should try again. err is the error of the acquisition.
func (c *compiledRule) hint(cause failpolicy.Cause, err error) time.Duration {
	estimate := time.Duration(c.recent.Load())
	if refused, ok := errors.AsType[*core.NotAcquiredError](err); ok {
		switch {
		case cause == failpolicy.Debounced:
			// While the first call still runs, its lease says nothing about the window.
			estimate = min(refused.RetryAfter, c.Debounce)
		case !c.watchdog() && refused.RetryAfter > 0:
			estimate = refused.RetryAfter
		}
	}
	return retryAfter(cause, estimate, rand.Float64())
}

// keyWarningInterval is the shortest time between two warnings of a rule about requests without a key, so that a
// client cannot fill the log.
const keyWarningInterval = time.Minute

// keyWarnings limits the warnings of a rule about requests that yield no key. If the program is at fault, the first
// request warns. If requests are at fault, one request in each keyWarningInterval warns.
type keyWarnings struct {
	program sync.Once

	mu      sync.Mutex
	last    time.Time
	omitted int
}

// next reports whether to warn now, and how many requests since the last warning did not warn.
func (w *keyWarnings) next(now time.Time, program bool) (warn bool, omitted int) {
	if program {
		w.program.Do(func() { warn = true })
		return warn, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.last.IsZero() && now.Sub(w.last) < keyWarningInterval {
		w.omitted++
		return false, 0
	}
	omitted, w.omitted, w.last = w.omitted, 0, now
	return true, omitted
}
