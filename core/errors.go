package core

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
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
	// taken. A refusal that passes by itself (LOADING, BUSY, READONLY, MISCONF, NOREPLICAS,
	// CLUSTERDOWN and the like) is waited out for the wait time, or for the backend timeout
	// where there is none; the error of every other refusal says that it does not pass.
	ErrUnavailable = errors.New("core: redis unavailable")

	// ErrNotHeld says that the hold is not held any more, or never was: released
	// twice, or refreshed after its end. So is a permit that is not out.
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
	// to Redis, or nothing was changed there: a count would have come to a number that
	// Redisson cannot read.
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

	// BlockedBy is the holder field ("<client id>:<n>", see [Hold.Field]) that had the lock at the last
	// refused attempt, empty when unknown.
	BlockedBy string

	// OwnHold reports that another hold of this client had the lock, or a share of it. If that
	// hold is one of the same call, the inner acquisition waited for its own caller: it needs
	// the context that the outer Acquire returned, and got another one, such as
	// context.Background().
	OwnHold bool

	// Cause is the reason beyond "taken": the error and the cause of a context, and that a
	// semaphore has no permits at all; nil when the wait time was simply over. It matches none of the other sentinels but
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

// ReplicationError says that Redis has given or prolonged a lock, or changed a count, and that fewer
// replicas than [WithReplicaAcks] wants have acknowledged that in time. It matches [ErrUnavailable]. What an
// acquisition has got is given back; a hold that could not be prolonged is as it was; a change of a count
// stays.
type ReplicationError struct {
	// Wanted is how many replicas had to acknowledge.
	Wanted int

	// Acknowledged is how many did, 0 if nobody knows; then Cause says why.
	Acknowledged int

	// Replicas is how many the master had when it was last asked; -1 if it never was.
	Replicas int

	// Cause is why WAIT had no answer, or was refused; nil if it had one.
	Cause error
}

// Error describes the shortfall. It names no key.
func (e *ReplicationError) Error() string {
	text := e.text()
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *ReplicationError) text() string {
	text := fmt.Sprintf("core: %d of the %d wanted replicas have acknowledged it in time", e.Acknowledged, e.Wanted)
	if e.Replicas >= 0 && e.Replicas < e.Wanted {
		text += fmt.Sprintf("; the master has only %d: bring the others back, or change WithReplicaAcks and restart", e.Replicas)
	}
	return text
}

// Unwrap gives [ErrUnavailable] and the cause.
func (e *ReplicationError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Cause}
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
	if short, ok := errors.AsType[*wire.ShortfallError](cause); ok {
		return &ReplicationError{Wanted: short.Wanted, Acknowledged: short.Acknowledged, Replicas: short.Replicas, Cause: short.Cause}
	}
	if wire.Rejects(cause) {
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, errFinal, cause)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}

// errFinal says that Redis has refused a command for a reason that does not pass by itself.
var errFinal = errors.New("redis refuses this until its data or its configuration is changed")

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

// insideError is an error in the text of one of this package, which says whose they are.
type insideError struct{ of error }

func (e insideError) Error() string { return strings.TrimPrefix(e.of.Error(), ownPrefix) }
func (e insideError) Unwrap() error { return e.of }

// ownPrefix begins the text of every error of this package.
const ownPrefix = "core: "

type mentionedError struct{ of error }

func (e mentionedError) Error() string { return e.of.Error() }
