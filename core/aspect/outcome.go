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

// ErrHandlerFailed is what [Call].Handle returns for a handler that answered by itself
// with something that is not a success.
var ErrHandlerFailed = errors.New("aspect: handler failed")

// Verdict is what became of a call.
type Verdict string

// The verdicts.
const (
	// VerdictRan: the handler ran; its result stands.
	VerdictRan Verdict = "ran"
	// VerdictAnswered: it did not run, and that is fine; answer with Reply.
	VerdictAnswered Verdict = "answered"
	// VerdictFallback: the fallback ran instead; its result stands.
	VerdictFallback Verdict = "fallback"
	// VerdictRefused: nothing ran; answer with Status.
	VerdictRefused Verdict = "refused"
	// VerdictLost: the handler ran and a lock was lost meanwhile; answer with Status
	// instead of the result, where that is still possible.
	VerdictLost Verdict = "lost"
)

// Outcome tells an adapter what to answer.
type Outcome struct {
	Verdict Verdict

	// Cause is why the handler did not run, or why it ran unlocked (Verdict is then
	// VerdictRan and Unlocked is UnlockedProceed), or Lost. Empty if all went well.
	Cause failpolicy.Cause

	// Misconfigured says, with [failpolicy.Key], that the program is at fault, and not the request.
	Misconfigured bool

	// Unlocked as in [Grant].
	Unlocked Unlocked

	// Lost says that a lock was lost under the handler, or its client closed, whatever the
	// verdict.
	Lost bool

	// Rule is the rule that decided; nil without a Cause. Its Message, Response and
	// Fallback are for the answer. Index is its place in [Point.Rules].
	Rule  *ruleset.Resolved
	Index int

	// Reply is what the client sees when the verdict is answered.
	Reply failpolicy.Reply

	// Status is what the client sees when the verdict is refused or lost.
	Status failpolicy.Status

	// RetryAfter is the hint when to try again; 0 for none.
	RetryAfter time.Duration

	// Err is the error of the handler or the fallback, untouched.
	Err error

	// Reason is the error behind Cause, for the server's own log. It may name the
	// key: never send it to a client.
	Reason error
}

// failed reports whether the client is to get Status.
func (o *Outcome) failed() bool {
	return o.Verdict == VerdictRefused || o.Verdict == VerdictLost
}

// Result is the error of the call as a Go function would return it: the
// [*RefusedError] if the client is to get Status, else Err.
func (o *Outcome) Result() error {
	if refusal := o.Refusal(); refusal != nil {
		return refusal
	}
	return o.Err
}

// Refusal tells what to answer when the client is to get Status, else it is nil. To return an
// error, use [Outcome.Result]: a nil *RefusedError is no nil error.
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

// title is what has happened, for clients.
func (o *Outcome) title() string {
	switch {
	case o.Cause == failpolicy.Busy && o.Rule.Kind == ruleset.Semaphore:
		return "As many requests as may run at once are in progress"
	case o.Cause == failpolicy.Lost && !errors.Is(o.Reason, core.ErrLost) && errors.Is(o.Reason, core.ErrClosed):
		return "The server was shut down while the request ran; its outcome is unknown"
	case o.Misconfigured:
		return failpolicy.Cause("").Title() // the request is in order
	default:
		return o.Cause.Title()
	}
}

// RefusedError says that a rule answered with an error. Its text is fit for a
// client; what it wraps is not.
type RefusedError struct {
	Rule          string // the rule's name
	Cause         failpolicy.Cause
	Misconfigured bool // with [failpolicy.Key]: the program is at fault, and not the request
	Status        failpolicy.Status
	RetryAfter    time.Duration
	Message       string // the rule's message, or what has happened, mostly the cause's title
	Reason        error  // may name the key; of a lost lock it includes the handler's error
}

// Misconfigured is the refusal of every call of an endpoint whose rules cannot work, for a
// reason such as [Entry].Err.
func Misconfigured(e ruleset.Endpoint, reason error) *RefusedError {
	none := failpolicy.Cause("")
	return &RefusedError{Rule: e.Label(), Status: none.Status(), Message: none.Title(), Reason: reason}
}

// Error is the rule, the cause and the message. With [failpolicy.Key] it names the value
// that the request lacks, such as in.OrderID, as the template does.
func (e *RefusedError) Error() string {
	return "lock rule " + strconv.Quote(e.Rule) + ": " + string(e.Cause) + ": " + e.Message + e.lacking()
}

// lacking says in brackets which value is not in the request, "" if that is not why.
func (e *RefusedError) lacking() string {
	eval, ok := errors.AsType[*keyexpr.EvalError](e.Reason)
	if !ok || e.Cause != failpolicy.Key || eval.Subject == "" || eval.Reason != keyexpr.ReasonMissing && eval.Reason != keyexpr.ReasonEmpty {
		return ""
	}
	return " (" + eval.Subject + " is " + eval.Reason.String() + ")"
}

// Unwrap gives the reason: errors of packages core and keyexpr, and of a lost lock
// the handler's.
func (e *RefusedError) Unwrap() error { return e.Reason }

// OutcomeFrom gives a fallback the outcome so far: Cause, Rule, Status, RetryAfter
// and Reason. It reports false in any other context.
func OutcomeFrom(ctx context.Context) (Outcome, bool) {
	o, ok := ctx.Value(outcomeKey{}).(*Outcome)
	if !ok {
		return Outcome{}, false
	}
	return *o, true
}

type outcomeKey struct{}

// withOutcome is the context of a fallback.
func withOutcome(ctx context.Context, o Outcome) context.Context {
	return context.WithValue(ctx, outcomeKey{}, &o)
}
