package aspect

import (
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/failpolicy"
)

// rehearse is the dry run of a rule: one attempt on a shadow key, and a look at
// the real one. A call that would have had to wait counts as busy, even if it
// would have had its turn. The handler runs in any case, with the ownership of the
// shadow (so that nested calls re-enter it) but not under its end. While Redis does
// not answer, it runs up to the client's backend timeout later.
func (r *run) rehearse(f *frame, names lockNames) bool {
	if r.hasPermit(f.rule, names.shadow()) {
		return r.without(f, UnlockedDryRun)
	}
	start := time.Now()
	ctx, hold, err := f.rule.shadowLock(r.point.aspect.locks, names).Acquire(r.ctx, f.rule.rehearsal...)
	taken := false
	if err == nil {
		f.hold = hold
		taken, err = r.takenForReal(f.rule, names)
		r.ctx = owning{Context: r.ctx, hold: ctx}
	}
	f.acquired = time.Now()
	f.waited = f.acquired.Sub(start)
	switch {
	case err != nil:
		return r.notAcquired(f, err)
	case taken:
		return r.fail(f, f.rule.decide(f.rule.busyCause()), 0, nil)
	default:
		return r.without(f, UnlockedDryRun)
	}
}

// takenForReal reports whether others hold one of the real locks so that the call would have to
// wait.
func (r *run) takenForReal(rule *compiled, names lockNames) (bool, error) {
	for _, name := range names.all() {
		if _, own := core.Held(r.ctx, name); own {
			continue
		}
		state, err := rule.lockOf(r.point.aspect.locks, name).State(r.ctx)
		if err != nil {
			return false, err
		}
		if rule.isTaken(state) {
			return true, nil
		}
	}
	return false, nil
}

// busyCause is what a taken lock means under the rule.
func (c *compiled) busyCause() failpolicy.Cause {
	if c.Debounce > 0 {
		return failpolicy.Debounced
	}
	return failpolicy.Busy
}
