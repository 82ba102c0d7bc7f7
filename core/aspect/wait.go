package aspect

import (
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
)

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
