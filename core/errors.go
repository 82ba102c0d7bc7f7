package core

import (
	"errors"
	"fmt"
	"time"
)

// The sentinels of this package. Every error it returns matches one of them with
// [errors.Is], which says what has happened (of ErrLost also ErrNotHeld), and wraps
// its cause: a network error, a Redis reply,
// [context.DeadlineExceeded] or [context.Canceled]. The exceptions are the errors of
// closing connections in [Client.Close] and of the function given to [Lock.Do], and
// that [Open] keeps what the URL's parser says of a password to itself.
var (
	// ErrNotAcquired says that the lock was not acquired: another holder kept it for the
	// whole wait time, or the caller's context ended first. It is always inside a
	// [*NotAcquiredError].
	ErrNotAcquired = errors.New("core: lock not acquired")

	// ErrUnavailable says that Redis did not answer, or answered with an error that
	// says nothing about the lock. The lock is then neither held nor known to be
	// taken.
	ErrUnavailable = errors.New("core: redis unavailable")

	// ErrNotHeld says that the hold is not held any more, or never was: released
	// twice, or refreshed after its end.
	ErrNotHeld = errors.New("core: lock not held")

	// ErrLost says that the lock ended under its holder: the lease ran out, or the
	// key was deleted or forced away. It matches [ErrNotHeld] too.
	ErrLost error = lostError{}

	// ErrReleased is the cause with which the context of a hold ends when the hold
	// is released.
	ErrReleased = errors.New("core: lock released")

	// ErrTooManyWaiters says that the limit of waiters per key, per client or of
	// [MaxWaiters] was reached. Nothing was sent to Redis.
	ErrTooManyWaiters = errors.New("core: too many waiters")

	// ErrClosed says that the client was closed.
	ErrClosed = errors.New("core: client closed")

	// ErrInvalid says that an argument or an option is not usable. Nothing was sent
	// to Redis.
	ErrInvalid = errors.New("core: invalid argument")
)

// lostError is [ErrLost]: it matches [ErrNotHeld], too, which its text leaves out.
type lostError struct{}

func (lostError) Error() string { return "core: lock lost" }
func (lostError) Unwrap() error { return ErrNotHeld }

// NotAcquiredError says why and after how long a lock was not acquired.
//
// It is meant for the server's own logs and decisions. Do not send its text to a
// client: it contains the key. [ErrorText] does not.
type NotAcquiredError struct {
	// Key is the Redis key of the lock, prefix included. Of a [Client.MultiLock]
	// it is the key that was taken.
	Key string

	// Waited is the time spent in Acquire.
	Waited time.Duration

	// RetryAfter is the time until the lease ends that the last refused attempt
	// saw, 0 when unknown. Renewed leases are prolonged, so this is an upper bound
	// for a fixed lease and says little for a watchdog.
	RetryAfter time.Duration

	// BlockedBy is the holder field ("<client id>:<n>") that was in the way at the
	// last refused attempt, empty when unknown.
	BlockedBy string

	// Cause is the reason beyond "taken": the error and the cause of a context; nil when
	// the wait time was simply over. It matches none of the other sentinels but
	// ErrReleased: what became of another lock is only mentioned.
	Cause error
}

// Error describes the failure for logs.
func (e *NotAcquiredError) Error() string {
	text := e.text(e.Key)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap gives [ErrNotAcquired] and the cause.
func (e *NotAcquiredError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.Cause}
}

// invalidf makes an [ErrInvalid] with a message that says what to write instead.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// unavailable joins ErrUnavailable with its cause. A cause that says what has happened
// stays as it is.
func unavailable(cause error) error {
	if cause == nil || isOutcome(cause) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

// isOutcome reports whether an error says what an operation has come to.
func isOutcome(err error) bool {
	for _, outcome := range []error{ErrUnavailable, ErrNotAcquired, ErrNotHeld, ErrClosed, ErrTooManyWaiters, ErrInvalid} {
		if errors.Is(err, outcome) {
			return true
		}
	}
	return false
}

// onlyMentioned makes of the outcome of another operation, such as the loss of an outer lock, a
// cause that is mentioned and does not match. Other errors stay as they are.
func onlyMentioned(err error) error {
	if err == nil || !isOutcome(err) {
		return err
	}
	return mentionedError{err}
}

type mentionedError struct{ of error }

func (e mentionedError) Error() string { return e.of.Error() }
