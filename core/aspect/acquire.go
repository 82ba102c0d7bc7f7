package aspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// hasPermit reports whether the call holds a permit of the rule's semaphore already: a guard meets a
// request again after a layer that copies it. A semaphore has no re-entry, so that a second
// acquisition would wait for the first one.
func (r *run) hasPermit(rule *compiled, names lockNames) bool {
	return rule.Kind == ruleset.Semaphore && r.point.aspect.locks.Semaphore(names.one, rule.Permits).Held(r.ctx)
}

// acquire takes the lock of a rule. It reports whether the handler may run.
func (r *run) acquire(f *frame, names lockNames) bool {
	if r.hasPermit(f.rule, names) {
		return true
	}
	lock := f.rule.lock(r.point.aspect.locks, names)
	start := time.Now()
	var room [8]core.AcquireOption
	options := append(room[:0], f.rule.options...)
	if wait, limited := r.waitFor(f.rule, start); limited {
		options = append(options, core.WaitTime(wait))
	}
	if prepare := r.beforeWait(f.rule); prepare != nil {
		options = append(options, core.BeforeWait(prepare))
	}
	ctx, hold, err := lock.Acquire(r.ctx, options...)
	f.acquired = time.Now()
	f.waited = f.acquired.Sub(start)
	if err != nil {
		return r.notAcquired(f, err)
	}
	f.hold = hold
	r.grant.Hold = hold
	if token := hold.Token(); token != 0 {
		r.grant.Token = token
	}
	r.ctx = f.rule.handlerContext(r.ctx, ctx)
	return true
}

// notAcquired settles an acquisition that failed.
func (r *run) notAcquired(f *frame, err error) bool {
	cause := r.causeOf(f.rule, err)
	d := f.rule.decide(cause)
	if cause == failpolicy.Key { // the request has yielded one: what is wrong with it is the program's mistake
		d = f.rule.decideKey(http.StatusInternalServerError)
	}
	return r.fail(f, d, f.rule.hint(cause, err), err)
}

// causeOf classifies an error of core. What is certain comes first: an error may
// wrap a context's for more than one reason.
func (r *run) causeOf(rule *compiled, err error) failpolicy.Cause {
	switch {
	case errors.Is(err, core.ErrTooManyWaiters):
		return failpolicy.Overload
	case errors.Is(err, core.ErrInvalid):
		return failpolicy.Key // options were checked at start-up: what is left is a name, and a kind that cannot be acquired with it
	case errors.Is(err, core.ErrNotHeld):
		return failpolicy.Lost // the caller had the lock already, and lost it
	case r.caller.Err() != nil:
		return callerCause(r.caller)
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed):
		return failpolicy.Backend
	case !errors.Is(err, core.ErrNotAcquired):
		return failpolicy.Backend
	default:
		return rule.busyCause() // also when a lock of a rule before it ran out meanwhile
	}
}

// callerCause is why the caller's context has ended.
func callerCause(ctx context.Context) failpolicy.Cause {
	switch {
	case errors.Is(context.Cause(ctx), core.ErrLost), errors.Is(context.Cause(ctx), core.ErrClosed):
		return failpolicy.Lost // the caller runs under a lock that was lost, or whose client was closed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failpolicy.Deadline
	default:
		return failpolicy.Canceled
	}
}

// noKey settles a request that yields no key, or no answer to the condition.
func (r *run) noKey(f *frame, err error) bool {
	if r.caller.Err() != nil { // such as a body that broke off
		return r.fail(f, f.rule.decide(callerCause(r.caller)), 0, err)
	}
	d := f.rule.decideKey(keyStatus(err))
	if first, more := f.rule.warned.next(time.Now(), d.program); first {
		text := err.Error()
		if more > 0 {
			text += fmt.Sprintf(" (%d such requests since the last warning)", more)
		}
		r.point.aspect.Warn(f.rule.Problem("", text))
	}
	return r.fail(f, d, 0, err)
}
