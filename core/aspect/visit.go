package aspect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// visit is the caller's side of a run: the call, its variables, its context and its deadline. It does not depend on rules
// or locks.
type visit struct {
	call     Call
	caller   context.Context //nolint:containedctx // lives as long as the call
	env      keyexpr.Env     // nil until a rule needs a variable
	prepared bool            // the function of BeforeWait was called
}

// variables returns the variables of the call. It calls Env at most once.
func (v *visit) variables() keyexpr.Env {
	if v.env == nil {
		v.env = v.call.Env(v.caller)
	}
	return v.env
}

// abandoned reports whether a layer around the adapter has already answered the call.
func (v *visit) abandoned() bool {
	call, ok := v.call.(abandoner)
	return ok && call.Abandoned()
}

// cause returns the cause for a caller whose context is done.
func (v *visit) cause() failpolicy.Cause {
	switch cause := context.Cause(v.caller); {
	case errors.Is(cause, core.ErrLost), errors.Is(cause, core.ErrClosed):
		return failpolicy.Lost // the caller runs under a lock that was lost, or whose client was closed
	case errors.Is(v.caller.Err(), context.DeadlineExceeded):
		return failpolicy.Deadline
	default:
		return failpolicy.Canceled
	}
}

// isCancellation reports whether an error of the handler means that the context of the handler is done.
func (v *visit) isCancellation(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	reporter, ok := v.call.(cancelReporter)
	return ok && reporter.Canceled(err)
}

// beforeWait returns the function that has to run before the call waits, nil if there is none.
func (v *visit) beforeWait() func(ctx context.Context) error {
	if v.prepared {
		return nil
	}
	call, ok := v.call.(waitPreparer)
	if !ok {
		return nil
	}
	prepare := call.BeforeWait()
	if prepare == nil {
		return nil
	}
	return func(ctx context.Context) error {
		v.prepared = true
		return prepare(ctx)
	}
}

// endableWait is a wait that the call may end.
type endableWait struct {
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	over   bool  // the wait has ended
	reason error // why the call ended it
}

// endable returns the context for a wait with ctx. wait is nil if the call does not end its wait.
func (v *visit) endable(ctx context.Context) (_ context.Context, wait *endableWait) {
	call, ok := v.call.(waitEnder)
	if !ok {
		return ctx, nil
	}
	wait = &endableWait{}
	if !call.EndWait(wait.end) {
		return ctx, nil
	}
	ctx = wait.within(ctx)
	return ctx, wait
}

// within returns a context that end cancels. A hold that was acquired with it keeps it, so only the end of ctx frees it.
func (w *endableWait) within(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel = cancel; w.reason != nil {
		cancel(w.reason)
	}
	return ctx
}

// end ends the wait, unless it has ended.
func (w *endableWait) end(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.reason != nil {
		return
	}
	if w.reason = reason; w.cancel != nil {
		w.cancel(reason)
	}
}

// close makes end do nothing and returns the reason why end was called before; nil if it was not. w may be nil.
func (w *endableWait) close() (reason error) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	return w.reason
}

// A wait leaves a part of the caller's time to the handler or to an answer: a tenth, and at least minReserve.
const (
	minReserve   = 50 * time.Millisecond
	reserveShare = 10
)

// waitFor returns the longest time that a call may wait. ruleWait is the wait time of the rule, and ctx carries the
// holds so far. limited reports whether a deadline shortens the wait below ruleWait.
func (v *visit) waitFor(ctx context.Context, ruleWait time.Duration, now time.Time) (wait time.Duration, limited bool) {
	if ruleWait == 0 {
		return 0, false
	}
	deadline, ok := v.deadline(ctx)
	if !ok {
		return ruleWait, false
	}
	left := deadline.Sub(now)
	usable := left - max(left/reserveShare, minReserve)
	if ruleWait != ruleset.WaitForever && usable >= ruleWait {
		return ruleWait, false
	}
	if usable < time.Millisecond {
		return 0, true
	}
	return usable, true
}

// deadline returns the deadline of ctx, or the time by which the call has to be answered if that is earlier.
func (v *visit) deadline(ctx context.Context) (time.Time, bool) {
	deadline, ok := ctx.Deadline()
	if c, limited := v.call.(answerDeadline); limited {
		if by := c.AnswerBy(); !by.IsZero() && (!ok || by.Before(deadline)) {
			return by, true
		}
	}
	return deadline, ok
}
