package aspect

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// beforeWait returns what the call has to do before it waits for a lock, nil if there is nothing.
func (r *run) beforeWait(rule *compiled) func(ctx context.Context) error {
	if r.prepared || rule.wait == 0 {
		return nil
	}
	call, ok := r.call.(waitPreparer)
	if !ok {
		return nil
	}
	prepare := call.BeforeWait()
	if prepare == nil {
		return nil
	}
	return func(ctx context.Context) error {
		r.prepared = true
		return prepare(ctx)
	}
}

// early decides about a rule what is known without the variables that come late, if
// its keys need one: settled says that this is all, and passed how it ended.
func (r *run) early(f *frame) (passed, settled bool) {
	rule := f.rule
	if !rule.late {
		return false, false
	}
	for _, key := range rule.keys {
		if err := key.CheckWithout(r.variables(), r.point.site.Late...); err != nil {
			return r.noKey(f, err), true
		}
	}
	if rule.DryRun {
		return false, false
	}
	if err := r.point.aspect.locks.ForAdapters().Refusal(r.ctx, rule.anyLock...); err != nil {
		return r.notAcquired(f, err), true
	}
	return false, false
}

// compileEarly finds out what of a rule is known before the variables that come late.
func (c *compiler) compileEarly(rule *compiled) {
	for _, key := range rule.keys {
		for _, variable := range c.site.Late {
			rule.late = rule.late || key.Uses(variable)
		}
	}
	rule.anyLock = rule.options
	if len(rule.keys) != 1 || rule.keys[0].IsList() { // several locks are not waited for at first
		rule.anyLock = []core.AcquireOption{core.WaitTime(0)}
	}
}

// What a wait leaves over of the caller's time, for the handler or for an answer:
// a tenth, and at least minReserve.
const (
	// minReserve is the least of the caller's time that a wait leaves over.
	minReserve = 50 * time.Millisecond

	reserveShare = 10
)

// waitFor is how long to wait for the lock of a rule; limited says whether the
// caller's time makes that less than the rule's wait time.
func (r *run) waitFor(rule *compiled, now time.Time) (wait time.Duration, limited bool) {
	if rule.wait == 0 {
		return 0, false
	}
	deadline, ok := r.deadline()
	if !ok {
		return rule.wait, false
	}
	left := deadline.Sub(now)
	usable := left - max(left/reserveShare, minReserve)
	if rule.wait != ruleset.WaitForever && usable >= rule.wait {
		return rule.wait, false
	}
	if usable < time.Millisecond {
		return 0, true
	}
	return usable, true
}

// deadline is when the caller's time is over, or that for an answer if it is earlier.
func (r *run) deadline() (time.Time, bool) {
	deadline, ok := r.ctx.Deadline()
	if c, limited := r.call.(answerDeadline); limited {
		if by := c.AnswerBy(); !by.IsZero() && (!ok || by.Before(deadline)) {
			return by, true
		}
	}
	return deadline, ok
}
