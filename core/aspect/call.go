package aspect

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/keyexpr"
)

// Call is one request, as an adapter presents it to [Point.Run]. Its methods are
// called from the goroutine of Run. It may have more methods:
//
//   - AnswerBy() [time.Time] is when it has to be answered, where that is not the deadline of the
//     caller's context, such as a server's limit for writing. Waits end before it as they do
//     before the caller's deadline; the handler's context does not. The zero time is none.
//   - Abandoned() bool reports whether a layer around the adapter, such as a timeout, has answered
//     the call while it waited, so that its parts serve another call. The cause is then
//     [failpolicy.Canceled], and neither the handler nor a later rule sees the call.
//   - Canceled(err error) bool reports whether an error of the handler means "I gave up because my
//     context ended", in words of the transport such as a gRPC status, so that a loss differs from
//     the client's cancel. [context.Canceled] and [context.DeadlineExceeded] are recognised without it.
//   - BeforeWait() func(ctx [context.Context]) error returns what it has to do before it waits, such
//     as reading the body of a request, without which a server does not notice that the client has
//     left; nil if there is nothing to do. That is done at most once per Run: when the first attempt
//     at a lock for which the call may wait was refused, or when other calls wait for it already, but
//     not if a queue is full. The function has to return when ctx ends, which ends with the wait
//     time. Its error ends the acquisition, and [core.ErrTooManyWaiters] is an overload.
type Call interface {
	// Env gives the variables of the request for conditions and keys. It is called
	// only when one is needed, and at most once per Run.
	Env(ctx context.Context) keyexpr.Env

	// Handle runs the handler; at most once per Run. ctx carries the holds. The
	// error is whatever the handler returned; it comes back untouched as
	// [Outcome].Err. Any error counts as failure: a debounce window does not begin.
	// Nor does it after a handler that has called [CancelDebounce].
	// A transport whose handlers answer failures themselves returns
	// [ErrHandlerFailed] for those.
	Handle(ctx context.Context, g Grant) error

	// Fallback runs the handler registered under name instead; it is called only for
	// names in [Site].Fallbacks, with the caller's context, when no lock is held any
	// more. [OutcomeFrom] of ctx tells the cause.
	Fallback(ctx context.Context, name string) error
}

// Grant is what a handler runs with.
type Grant struct {
	// Hold is the lock of the last rule that has one, nil when there is none. The
	// handler may release it early or hand it over; of further rules it finds the
	// hold with [core.Held].
	Hold *core.Hold

	// Token is the fencing token of that lock, or of the last one before it that has
	// one; 0 where none has.
	Token int64

	// Unlocked is why the handler runs without the lock of some rule, empty when
	// every rule has its lock. Of several reasons [UnlockedProceed] is told first.
	Unlocked Unlocked
}

// Unlocked is the reason why a handler runs without a rule's lock: a
// low-cardinality word.
type Unlocked string

// The reasons.
const (
	UnlockedProceed  Unlocked = "proceed"  // the lock was not acquired, strategy proceed
	UnlockedDisabled Unlocked = "disabled" // the rule is disabled, or all are suspended
	UnlockedDryRun   Unlocked = "dry_run"  // the rule only counts
	UnlockedWhen     Unlocked = "when"     // the rule's condition is false
)

// rank orders the reasons by how much a client should know of them.
func (u Unlocked) rank() int {
	switch u {
	case UnlockedProceed:
		return 4
	case UnlockedDryRun:
		return 3
	case UnlockedDisabled:
		return 2
	case UnlockedWhen:
		return 1
	default:
		return 0
	}
}

// answerDeadline, abandoner, cancelReporter and waitPreparer are what a [Call] may have besides.
type (
	answerDeadline interface{ AnswerBy() time.Time }
	abandoner      interface{ Abandoned() bool }
	cancelReporter interface{ Canceled(err error) bool }
	waitPreparer   interface {
		BeforeWait() (prepare func(ctx context.Context) error)
	}
)
