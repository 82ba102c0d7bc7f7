package aspect

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/keyexpr"
)

// Call gives [Point.Run] access to one request. Run calls its methods only on the goroutine that called Run. A Call may have
// further methods:
//
//   - AnswerBy() [time.Time] returns the time by which the call has to be answered, if it is not the deadline of the
//     caller's context. An example is a server's write timeout. A wait ends before that time, as it ends before the
//     caller's deadline. The handler's context is not canceled at that time. The zero time means no limit.
//   - Abandoned() bool reports whether a layer around the adapter, such as a timeout, answered the call during its
//     wait. The objects of the call may then already serve another call. The cause is [failpolicy.Canceled], and neither
//     the handler nor a later rule sees the call.
//   - Canceled(err error) bool reports whether an error of the handler means that its context was done, such as the
//     gRPC status CANCELLED. Run uses it to distinguish a loss from another failure of the handler. Run recognizes
//     [context.Canceled] and [context.DeadlineExceeded] without it.
//   - BeforeWait() func(ctx [context.Context]) error returns a function that Run calls before the call waits, nil if
//     there is none. The HTTP adapters read the body of the request in it, because net/http notices only then that the
//     client has left. Run calls the function at most once: after the first failed attempt to take a lock for which the
//     call may wait, or if other calls already wait for that lock. It does not call the function if the queue is full.
//     The function has to return when ctx is done, at the latest at the end of the wait time. If it returns an error,
//     the acquisition fails with that error; [core.ErrTooManyWaiters] counts as an overload.
//   - EndWait(end func(reason error)) bool gives the call a function with which it can end its wait. Run calls EndWait
//     before each acquisition that may wait. If EndWait returns false, the call does not use end. Any goroutine may call
//     end, which does nothing after the acquisition. If end was called before, the call has not acquired the lock: the
//     cause is [failpolicy.Busy], or [failpolicy.Overload] if reason matches [core.ErrTooManyWaiters].
type Call interface {
	// Env returns the variables of the request for conditions and keys. Run calls it only if a rule needs a variable,
	// and at most once.
	Env(ctx context.Context) keyexpr.Env

	// Handle runs the handler. Run calls it at most once. ctx carries the holds. [Outcome].Err is the unchanged error of
	// the handler. Any error counts as a failure: a debounce window does not begin. Nor does it begin after a
	// handler that called [CancelDebounce]. If the handlers of a transport answer failures themselves, Handle returns
	// [ErrHandlerFailed] for them.
	Handle(ctx context.Context, g Grant) error

	// Fallback runs the fallback with the given name. Run calls it only for names in [Site].Fallbacks, with the
	// caller's context, after all locks are released. [OutcomeFrom] of ctx returns the cause.
	Fallback(ctx context.Context, name string) error
}

// answerDeadline, abandoner, cancelReporter, waitPreparer and waitEnder are the optional methods of a [Call].
type (
	answerDeadline interface{ AnswerBy() time.Time }
	abandoner      interface{ Abandoned() bool }
	cancelReporter interface{ Canceled(err error) bool }
	waitPreparer   interface {
		BeforeWait() (prepare func(ctx context.Context) error)
	}
	waitEnder interface {
		EndWait(end func(reason error)) bool
	}
)

// Grant describes the locks with which a handler runs.
type Grant struct {
	// Hold is the lock of the last rule that has one, nil if there is none. The handler may release it early or hand it
	// over. [core.Held] finds the holds of the other rules.
	Hold *core.Hold

	// Token is the fencing token of that lock, or of the last lock before it that has a token; 0 if none has.
	Token int64

	// Unlocked is the reason why the handler runs without the lock of some rule, empty if every rule has its lock. Among
	// several reasons, [UnlockedProceed] takes precedence.
	Unlocked Unlocked
}

// Unlocked is the reason why a handler runs without the lock of a rule. It has few values, so it can be a metric label.
type Unlocked string

// The reasons.
const (
	UnlockedProceed  Unlocked = "proceed"  // the lock was not acquired, strategy proceed
	UnlockedDisabled Unlocked = "disabled" // the rule is disabled, or the kill switch is on
	UnlockedDryRun   Unlocked = "dry_run"  // the rule makes a dry run
	UnlockedWhen     Unlocked = "when"     // the rule's condition is false
)

// rank orders the reasons by how important they are to a client.
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
