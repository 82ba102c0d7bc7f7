package aspect

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// ErrHandlerFailed is the error that [Call].Handle returns if the handler itself answered the request, but not with a success.
var ErrHandlerFailed = errors.New("aspect: handler failed")

// Verdict says how a call ended.
type Verdict string

// The verdicts.
const (
	// VerdictRan: the handler ran; its result stands.
	VerdictRan Verdict = "ran"
	// VerdictAnswered: the handler did not run, which is not a failure; answer with Reply.
	VerdictAnswered Verdict = "answered"
	// VerdictFallback: the fallback ran instead; its result stands.
	VerdictFallback Verdict = "fallback"
	// VerdictRefused: nothing ran; answer with Status.
	VerdictRefused Verdict = "refused"
	// VerdictLost: a lock was lost while the handler ran; answer with Status instead of the result, if that is
	// still possible.
	VerdictLost Verdict = "lost"
)

// Outcome says how a call ended and what the adapter answers.
type Outcome struct {
	Verdict Verdict

	// Cause is the reason why the lock was not acquired, or [failpolicy.Lost]. If the lock was not acquired, the
	// handler runs only by strategy proceed: Verdict is then VerdictRan and Unlocked is UnlockedProceed. Cause is empty
	// if nothing went wrong, and also if a rule is disabled, makes a dry run, or does not apply.
	Cause failpolicy.Cause

	// Misconfigured reports that the program and not the request is at fault. Cause is then [failpolicy.Key], or empty after
	// [MessageGuard.Run] if the rules of the endpoint do not compile.
	Misconfigured bool

	// Unlocked has the same meaning as in [Grant].
	Unlocked Unlocked

	// Lost reports whether a lock was lost or its client was closed while the handler ran, whatever the verdict.
	Lost bool

	// Rule is the rule that decided the outcome; nil without a Cause. Use its Message, Response and Fallback for the
	// answer. Index is its index in [Point.Rules].
	Rule  *ruleset.Resolved
	Index int

	// Reply is the answer for the client if the verdict is VerdictAnswered.
	Reply failpolicy.Reply

	// Status is the status for the client if the verdict is VerdictRefused or VerdictLost.
	Status failpolicy.Status

	// RetryAfter is the time after which the client should try again; 0 for no hint.
	RetryAfter time.Duration

	// Err is the error of the handler or the fallback, untouched.
	Err error

	// Reason is the error that led to Cause, for the log of the server. It may name the key: never send it to a client.
	Reason error
}

// failed reports whether the client gets Status.
func (o *Outcome) failed() bool {
	return o.Verdict == VerdictRefused || o.Verdict == VerdictLost
}

// Postponed reports whether no handler ran, for a reason that passes by itself: the lock is taken, too many calls wait, or
// Redis does not answer. A queue delivers the message again after RetryAfter and does not count the delivery as an attempt.
func (o *Outcome) Postponed() bool { return o.Verdict == VerdictRefused && o.RetryAfter > 0 }

// Result returns the error of the call as a Go function would return it: the [*RefusedError] if the client gets
// Status, otherwise Err.
func (o *Outcome) Result() error {
	if refusal := o.Refusal(); refusal != nil {
		return refusal
	}
	return o.Err
}

// Refusal returns the refusal for the client if the client gets Status, and otherwise nil. To return an error, use
// [Outcome.Result]: a nil *RefusedError in an error interface is not nil.
func (o *Outcome) Refusal() *RefusedError {
	if !o.failed() {
		return nil
	}
	e := &RefusedError{
		Rule: o.Rule.Name, Cause: o.Cause, Misconfigured: o.Misconfigured, Status: o.Status, RetryAfter: o.RetryAfter,
		Message: o.Rule.Message, Reason: o.Reason,
	}
	if e.Message == "" {
		e.Message = o.title()
	}
	if o.Verdict == VerdictLost {
		e.Reason = errors.Join(o.Reason, o.Err)
	}
	return e
}

// title returns the default message for clients.
func (o *Outcome) title() string {
	switch {
	case o.Cause == failpolicy.Busy && o.Rule.Kind == ruleset.Semaphore:
		return "The maximum number of concurrent requests is already in progress"
	case o.Cause == failpolicy.Lost && !errors.Is(o.Reason, core.ErrLost) && errors.Is(o.Reason, core.ErrClosed):
		return "The server was shut down while the request ran; its outcome is unknown"
	case o.Misconfigured:
		return failpolicy.Cause("").Title() // the request is not at fault
	default:
		return o.Cause.Title()
	}
}

// RefusedError means that a rule refused the call, or that a lock was lost. Its message is safe to show to a client; the
// error that it wraps is not.
type RefusedError struct {
	Rule          string // the rule's name
	Cause         failpolicy.Cause
	Misconfigured bool // the program and not the request is at fault; Cause is then [failpolicy.Key], or empty: see Misconfigured
	Status        failpolicy.Status
	RetryAfter    time.Duration
	Message       string // the rule's message, or a default, usually the title of the cause
	Reason        error  // may name the key; after a loss it includes the handler's error
}

// Misconfigured returns the refusal for every call of an endpoint whose rules do not compile or have one name. Its Rule
// is the label of the endpoint, and it has no Cause. The reason is for example [Entry].Err.
func Misconfigured(e ruleset.Endpoint, reason error) *RefusedError {
	none := failpolicy.Cause("")
	return &RefusedError{Rule: e.Label(), Misconfigured: true, Status: none.Status(), Message: none.Title(), Reason: reason}
}

// Error returns the rule, the cause if there is one, and the message. If the cause is [failpolicy.Key], it also names the
// missing or empty value as the template spells it, such as in.OrderID.
func (e *RefusedError) Error() string {
	text := "lock rule " + strconv.Quote(e.Rule) + ": "
	if e.Cause != "" {
		text += string(e.Cause) + ": "
	}
	return text + e.Message + e.missingValue()
}

// missingValue returns, in brackets, the value that the request lacks; "" if the request was refused for another reason.
func (e *RefusedError) missingValue() string {
	eval, ok := errors.AsType[*keyexpr.EvalError](e.Reason)
	if !ok || e.Cause != failpolicy.Key || eval.Subject == "" || eval.Reason != keyexpr.ReasonMissing && eval.Reason != keyexpr.ReasonEmpty {
		return ""
	}
	return " (" + eval.Subject + " is " + eval.Reason.String() + ")"
}

// Unwrap returns the reason: errors of packages core and keyexpr, and after a loss also the handler's error.
func (e *RefusedError) Unwrap() error { return e.Reason }

// OutcomeFrom returns, in a fallback, the outcome up to that point: Cause, Rule, Status, RetryAfter and Reason. ctx must be
// the context of the fallback. For any other context OutcomeFrom returns false.
func OutcomeFrom(ctx context.Context) (Outcome, bool) {
	o, ok := ctx.Value(outcomeKey{}).(*Outcome)
	if !ok {
		return Outcome{}, false
	}
	return *o, true
}

type outcomeKey struct{}

// WithOutcome returns a context for a call of a wrapped function, see [Wrap]: the outcome of that call is written to o before
// the function returns. Its Verdict is [VerdictAnswered] if the function did not run because of strategy skip or
// null_response. Functions that the wrapped function calls with its context do not write to o.
//
//	var o aspect.Outcome
//	n, err := closeDay(aspect.WithOutcome(ctx, &o), day)
//	skipped := o.Verdict == aspect.VerdictAnswered
func WithOutcome(ctx context.Context, o *Outcome) context.Context {
	return context.WithValue(ctx, recordKey{}, o)
}

type recordKey struct{}

// forFallback returns the context for a fallback.
func forFallback(ctx context.Context, o Outcome) context.Context {
	return context.WithValue(ctx, outcomeKey{}, &o)
}
