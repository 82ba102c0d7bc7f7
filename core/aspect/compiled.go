package aspect

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// ShadowSuffix is what a dry run appends to the keys that it takes instead of the
// real ones.
const ShadowSuffix = ":dry_run"

// compiled is a rule of which everything that can be known at start-up is known.
type compiled struct {
	*ruleset.Resolved
	subject Subject
	policy  failpolicy.Policy
	when    *keyexpr.Condition // nil: always
	keys    []*keyexpr.Template

	wait      time.Duration        // 0: one attempt; or ruleset.WaitForever
	options   []core.AcquireOption // without a deadline of the caller
	rehearsal []core.AcquireOption // of a dry run
	anyLock   []core.AcquireOption // of its lock, whichever that will be
	late      bool                 // a key needs a variable that comes late

	fixed   lockNames // of a rule with one constant key
	isFixed bool

	recent atomic.Int64 // recent hold time in nanoseconds, 0 while unknown
	warned keyWarnings
}

// leaseOptions has room for the options to come.
func (c *compiled) leaseOptions() []core.AcquireOption {
	opts := make([]core.AcquireOption, 0, 5)
	if !c.watchdog() {
		opts = append(opts, core.LeaseTime(c.LeaseTime))
	}
	return opts
}

func (c *compiled) info() RuleInfo {
	info := RuleInfo{
		Subject: c.subject, Disabled: c.Disabled, DryRun: c.DryRun, Debounce: c.Debounce, WaitTime: c.wait, Policy: c.policy,
	}
	if !c.watchdog() {
		info.LeaseTime = c.LeaseTime
	}
	return info
}

func (c *compiled) uses(variable string) bool {
	return c.when != nil && c.when.Uses(variable) || slices.ContainsFunc(c.keys, func(key *keyexpr.Template) bool { return key.Uses(variable) })
}

// noteHeld lets the recent hold time follow: an eighth of the way each time.
// Concurrent calls may overwrite each other, which an estimate can bear.
func (c *compiled) noteHeld(d time.Duration) {
	old := c.recent.Load()
	if old == 0 {
		c.recent.Store(max(int64(d), 1))
		return
	}
	c.recent.Store(max(old+(int64(d)-old)/8, 1))
}

// watchdog reports whether the lease is renewed.
func (c *compiled) watchdog() bool { return c.LeaseTime == ruleset.Watchdog }

// keyWarningInterval is the shortest time between two warnings of a rule about requests without a
// key, so that a client cannot fill the log.
const keyWarningInterval = time.Minute

// keyWarnings decides when a rule warns of a request that yields no key: the first time that the
// program is at fault, and once in a keyWarningInterval of requests that are.
type keyWarnings struct {
	program sync.Once

	mu      sync.Mutex
	last    time.Time
	omitted int
}

// next reports whether to warn now, and of how many requests before it did not.
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
