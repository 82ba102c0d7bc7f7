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

// step is one rule in one run, from the condition to the release of the lock. It asks the rule, the call and the lock
// client, and records the results. The run decides what they mean for the call.
//
//	           ┌─ unlocked: disabled, condition false, dry run
//	take ──────┼─ hold: the lock was acquired ── release ── lost, or not
//	           └─ cause, with the decision of the rule: no key, busy, backend, …
type step struct {
	rule *compiledRule

	hold     *core.Hold // nil without a lock
	acquired time.Time  // when the attempt to take the lock ended
	waited   time.Duration
	lost     error // the error of a hold that was lost under the handler

	unlocked Unlocked // why the handler runs without the lock of the rule

	decision               // zero without a cause
	hint     time.Duration // the time after which the client should try again
	err      error         // the error that led to the cause
}

// refused reports whether the lock was not acquired. A dry run is never refused.
func (s *step) refused() bool { return s.cause != "" && !s.rule.DryRun }

// fail records that the lock was not acquired.
func (s *step) fail(d decision, hint time.Duration, err error) {
	s.decision, s.hint, s.err = d, hint, err
	if s.rule.DryRun {
		s.unlocked = UnlockedDryRun
	}
}

// take evaluates the condition and the key of the rule and takes its lock. ctx carries the holds so far. take
// returns the context for the rest of the call.
func (s *step) take(ctx context.Context, env *environment, v *visit, late []string) context.Context {
	if s.rule.Disabled || env.suspended.Load() {
		s.unlocked = UnlockedDisabled
		return ctx
	}
	if s.rule.when != nil {
		applies, err := s.rule.when.Eval(v.variables())
		switch {
		case err != nil:
			s.failKey(env, v, err)
			return ctx
		case !applies:
			s.unlocked = UnlockedWhen
			return ctx
		}
	}
	if s.rule.late && s.failEarly(ctx, env, v, late) {
		return ctx
	}
	names, err := s.rule.names(v.variables)
	switch {
	case err != nil:
		s.failKey(env, v, err)
		return ctx
	case s.rule.DryRun:
		return s.rehearse(ctx, env, v, names)
	default:
		return s.acquire(ctx, env, v, names)
	}
}

// failEarly records a failure that does not depend on the variables that arrive late: a key lacks another value, or the
// lock would be refused at once. It reports whether the step failed.
func (s *step) failEarly(ctx context.Context, env *environment, v *visit, late []string) bool {
	for _, key := range s.rule.keys {
		if err := key.CheckWithout(v.variables(), late...); err != nil {
			s.failKey(env, v, err)
			return true
		}
	}
	if s.rule.DryRun {
		return false
	}
	if err := env.locks.ForAdapters().Refusal(ctx, s.rule.anyLock...); err != nil {
		s.failAcquire(v, err)
		return true
	}
	return false
}

// hasPermit reports whether the call already holds a permit of the rule's semaphore. This happens if a layer copies a
// request and passes it through the guard again. A semaphore has no re-entry, so a second acquisition would wait for
// the first.
func (s *step) hasPermit(ctx context.Context, env *environment, names lockNames) bool {
	return s.rule.Kind == ruleset.Semaphore && env.locks.Semaphore(names.one, s.rule.Permits).Held(ctx)
}

// acquire takes the lock and returns a context that carries the hold. The context is canceled when the hold is lost,
// unless the rule ignores losses.
func (s *step) acquire(ctx context.Context, env *environment, v *visit, names lockNames) context.Context {
	if s.hasPermit(ctx, env, names) {
		return ctx
	}
	start := time.Now()
	var room [8]core.AcquireOption
	options := append(room[:0], s.rule.options...)
	if wait, limited := v.waitFor(ctx, s.rule.wait, start); limited {
		options = append(options, core.WaitTime(wait))
	}
	during, wait := ctx, (*endableWait)(nil)
	if s.rule.wait != 0 {
		if prepare := v.beforeWait(); prepare != nil {
			options = append(options, core.BeforeWait(prepare))
		}
		during, wait = v.endable(ctx)
	}
	held, hold, err := s.rule.lock(env.locks, names).Acquire(during, options...)
	if reason := wait.close(); reason != nil {
		if err == nil { // acquired at the moment in which its context was canceled
			_ = hold.Release(ctx) //nolint:errcheck // core reports it to Observer.HoldEnd
		}
		if !errors.Is(err, core.ErrNotAcquired) {
			err = core.ErrNotAcquired
		}
		err = fmt.Errorf("%w: %w", err, reason)
	}
	s.acquired = time.Now()
	s.waited = s.acquired.Sub(start)
	if err != nil {
		s.failAcquire(v, err)
		return ctx
	}
	s.hold = hold
	if s.rule.OnLost == failpolicy.Ignore {
		return ownerContext{Context: ctx, hold: held}
	}
	return held
}

// rehearse does a dry run of a rule: it attempts to take the shadow key once and reads the state of the real key. A call
// that would have to wait counts as busy, even if it would get the lock in the end. The handler runs in any case. Its
// context carries the shadow hold, so that nested calls re-enter it, but is not canceled when that hold is lost. While
// Redis does not answer, the handler starts up to the client's backend timeout later.
func (s *step) rehearse(ctx context.Context, env *environment, v *visit, names lockNames) context.Context {
	s.unlocked = UnlockedDryRun
	if s.hasPermit(ctx, env, names.shadow()) {
		return ctx
	}
	start, taken := time.Now(), false
	held, hold, err := s.rule.shadowLock(env.locks, names).Acquire(ctx, s.rule.rehearsal...)
	if err == nil {
		s.hold = hold
		taken, err = s.isTaken(ctx, env, names)
		ctx = ownerContext{Context: ctx, hold: held}
	}
	s.acquired = time.Now()
	s.waited = s.acquired.Sub(start)
	switch {
	case err != nil:
		s.failAcquire(v, err)
	case taken:
		s.fail(s.rule.decide(s.rule.busyCause()), 0, nil)
	}
	return ctx
}

// isTaken reports whether the call would have to wait for one of the real locks.
func (s *step) isTaken(ctx context.Context, env *environment, names lockNames) (bool, error) {
	for _, name := range names.all() {
		if _, own := core.Held(ctx, name); own {
			continue
		}
		state, err := s.rule.lockOf(env.locks, name).State(ctx)
		if err != nil {
			return false, err
		}
		if s.rule.isTaken(state) {
			return true, nil
		}
	}
	return false, nil
}

// failAcquire records an acquisition that failed.
func (s *step) failAcquire(v *visit, err error) {
	cause := s.causeOf(v, err)
	d := s.rule.decide(cause)
	if cause == failpolicy.Key { // the request has a key; if core refuses the key, the program is at fault
		d = s.rule.decideKey(http.StatusInternalServerError)
	}
	s.fail(d, s.rule.hint(cause, err), err)
}

// causeOf returns the cause for an error of core. It checks unambiguous errors first, because an error may wrap the error
// of a context for more than one reason.
func (s *step) causeOf(v *visit, err error) failpolicy.Cause {
	switch {
	case errors.Is(err, core.ErrTooManyWaiters):
		return failpolicy.Overload
	case errors.Is(err, core.ErrInvalid):
		return failpolicy.Key // the options were checked at start-up: the name is invalid, or its kind cannot be acquired
	case errors.Is(err, core.ErrNotHeld):
		return failpolicy.Lost // the caller held the lock already and lost it
	case v.caller.Err() != nil:
		return v.cause()
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed):
		return failpolicy.Backend
	case !errors.Is(err, core.ErrNotAcquired):
		return failpolicy.Backend
	default:
		return s.rule.busyCause() // also if the lock of an earlier rule expired during the wait
	}
}

// failKey records a request for which the key or the condition cannot be evaluated. It warns observers within the
// limits of [keyWarnings].
func (s *step) failKey(env *environment, v *visit, err error) {
	if v.caller.Err() != nil { // for example, the body broke off
		s.fail(s.rule.decide(v.cause()), 0, err)
		return
	}
	d := s.rule.decideKey(keyStatus(err))
	if first, more := s.rule.warned.next(time.Now(), d.program); first {
		text := err.Error()
		if more > 0 {
			text += fmt.Sprintf(" (%d such requests since the last warning)", more)
		}
		env.warn(s.rule.Problem("", text))
	}
	s.fail(d, 0, err)
}

// release releases the hold, if there is one. core attempts the release even if the caller has left.
func (s *step) release(caller context.Context, succeeded bool) {
	if s.hold == nil {
		return
	}
	err := s.endHold(caller, succeeded)
	s.rule.recordHoldTime(time.Since(s.acquired))
	if errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrClosed) {
		s.lost = err
	} // otherwise the handler released the lock early or handed it over, or core has reported the error to Observer.HoldEnd
}

// endHold releases the lock, or leaves it in Redis as the marker of a debounce window.
func (s *step) endHold(ctx context.Context, succeeded bool) error {
	if s.rule.Debounce == 0 || !succeeded {
		return s.hold.Release(ctx)
	}
	err := s.hold.Leave(ctx, s.rule.Debounce)
	if errors.Is(err, core.ErrInvalid) {
		// An outer call with the same context holds the lock and decides how the hold ends.
		return s.hold.Release(ctx)
	}
	return err
}

// ownerContext is a context with the values of a hold's context, including the hold, but without its cancellation. Its
// [context.Cause] may be the loss while its Err is nil.
type ownerContext struct {
	context.Context
	hold context.Context
}

// Value returns the value in the hold's context.
func (c ownerContext) Value(key any) any { return c.hold.Value(key) }
