package core

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/core/internal/acquire"
	"github.com/interlock-go/interlock/core/internal/counting"
	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// The sentinel errors of this package. Every error that the package returns matches one of them with [errors.Is]
// (ErrLost matches ErrNotHeld, too, and ErrHeldTooLong matches both), and wraps its cause: a network error, a Redis reply,
// [context.DeadlineExceeded] or [context.Canceled]. Two kinds of errors match no sentinel: the errors of closing connections
// in [Client.Close], and the errors of the functions given to [Lock.Do] and [BeforeWait]. [Open] does not wrap an error of
// the URL parser that would show a password.
var (
	// ErrNotAcquired means that the lock was not acquired: another holder had it for the whole wait time, or the
	// caller's context ended first. It is always inside a [*NotAcquiredError].
	ErrNotAcquired error = failure.NotAcquired

	// ErrUnavailable means that Redis did not answer, or answered with an error that reveals nothing about the lock.
	// After a failed acquisition the caller has not got the lock, and it is unknown whether another holder has it. If
	// Redis refuses a command for a reason that passes by itself (LOADING, BUSY, READONLY, MISCONF, NOREPLICAS,
	// CLUSTERDOWN and the like), an acquisition waits within its wait time, or until its context is done. Other
	// operations wait for the backend timeout. For any other refusal the message adds that the reason does not pass by
	// itself. READONLY counts as such a refusal if neither Sentinels nor a Cluster name the server and it has never granted
	// a lock to this client.
	ErrUnavailable error = failure.Unavailable

	// ErrNotHeld means that the lock is not held any more, or never was: for instance, a hold was released twice, or
	// refreshed after its end. It is also the error for a semaphore permit that no client holds.
	ErrNotHeld error = failure.NotHeld

	// ErrLost means that the holder lost the lock before it released it: the lease expired, or the key was deleted or
	// forced away. It matches [ErrNotHeld] too.
	ErrLost error = failure.Lost

	// ErrHeldTooLong means that the hold lasted for longer than its [MaxHold]: its context has ended, and the watchdog
	// does not renew the lease for it any more. It matches [ErrLost], too. Redis keeps the lock until the hold is
	// released, or until the lease ends.
	ErrHeldTooLong error = failure.HeldTooLong

	// ErrReleased is the cause of the context of a hold that was released.
	ErrReleased error = failure.Released

	// ErrTooManyWaiters means that the limit of waiters per key, per client or of
	// [MaxWaiters] was reached. Nothing was sent to Redis.
	ErrTooManyWaiters error = failure.TooManyWaiters

	// ErrClosed means that the client was closed.
	ErrClosed error = failure.Closed

	// ErrInvalid means that an argument or an option cannot be used. Nothing was sent to Redis, with one exception: if
	// a count would become a number that Redisson cannot read, Redis refuses the operation and changes nothing.
	ErrInvalid error = failure.Invalid
)

// NotAcquiredError describes why a lock was not acquired and how long the acquisition took.
//
// It is for the logs and the decisions of the server. Do not send its message to a client, because the message contains
// the key. The result of [ErrorText] does not.
type NotAcquiredError struct {
	// Key is the Redis key of the lock, prefix included. For a [Client.MultiLock] it is the key that was taken.
	Key string

	// Waited is the time spent in Acquire.
	Waited time.Duration

	// RetryAfter is the time until the end of the lease that the last refused attempt saw, 0 if unknown. For
	// a fixed lease it is an upper bound. For a renewed lease it is only a hint, because the watchdog extends the lease.
	RetryAfter time.Duration

	// BlockedBy is the holder field ("<client id>:<n>", see [Hold.Field]) that had the lock at the last
	// refused attempt, empty when unknown.
	BlockedBy string

	// OwnHold reports that another hold of this client had the lock, alone or shared. If the caller itself acquired
	// that hold, it passed the wrong context, such as context.Background(), and Acquire waited for its own caller: pass
	// the context that the outer Acquire returned.
	OwnHold bool

	// Cause is a further reason: the error and the cause of a context, or that a semaphore has no permits at all. It is
	// nil if the lock was only taken. It matches no sentinel except ErrReleased: the outcome of another lock appears
	// only in the message of Cause.
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

// Unwrap returns [ErrNotAcquired] and the cause.
func (e *NotAcquiredError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.Cause}
}

// ReplicationError means that Redis granted or extended a lock, or changed a count, but fewer replicas acknowledged the
// command in time than [WithReplicaAcks] requires. It matches [ErrUnavailable]. The grant of an acquisition is given
// back. A hold that could not be extended is unchanged. The change of a count stays.
type ReplicationError struct {
	// Wanted is the number of replicas that had to acknowledge.
	Wanted int

	// Acknowledged is the number of replicas that did; 0 if that is unknown, for the reason in Cause.
	Acknowledged int

	// Replicas is the number of replicas that the master had when it was last asked; -1 if it was never asked.
	Replicas int

	// Cause is the error of a WAIT that was refused or not answered; nil if it was answered.
	Cause error
}

// Error describes the shortfall. It contains no key.
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

// Unwrap returns [ErrUnavailable] and the cause.
func (e *ReplicationError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Cause}
}

// invalidf returns an [ErrInvalid]. Its message includes what to write instead.
func invalidf(format string, args ...any) error { return failure.Invalidf(format, args...) }

// unavailable returns [ErrUnavailable] joined with its cause. If the cause already matches a sentinel, unavailable
// returns the cause.
func unavailable(cause error) error { return publicError(failure.BecauseOf(cause)) }

// publicError converts the errors of the inner packages to the types that this package documents.
func publicError(err error) error {
	switch e := err.(type) { //nolint:errorlint // the inner packages return these as they are
	case nil:
		return nil
	case *acquire.BusyError:
		return &NotAcquiredError{
			Key: e.Key, Waited: e.Waited, RetryAfter: e.RetryAfter, BlockedBy: e.BlockedBy, OwnHold: e.OwnHold, Cause: publicError(e.Cause),
		}
	case *counting.Error:
		return fmt.Errorf("%w: %w", publicError(e.Cause), e.Fate)
	case *failure.List:
		return e.Map(publicError)
	case failure.Mentioned:
		return failure.Mention(publicError(e.Of))
	}
	if short, ok := errors.AsType[*wire.ShortfallError](err); ok {
		return &ReplicationError{Wanted: short.Wanted, Acknowledged: short.Acknowledged, Replicas: short.Replicas, Cause: short.Cause}
	}
	return err
}

// ErrorText returns a description of an error of this package for logs and traces. It contains the [KeyHash] of a key,
// but never the key. It consists of messages that are known to contain no key: messages of this package, of the network
// and of TLS. For an error of Redis it contains the code and the known part of the rest, because Redis quotes arguments
// in some errors. For any other error it contains the type.
//
// The message of the error itself may contain keys and arguments. It is only for the operators of
// the server.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	var parts []string
	collectText(err, &parts)
	return strings.Join(parts, ": ")
}

// collectText appends the descriptions of an error and of the errors that it wraps.
func collectText(err error, parts *[]string) {
	if taken, ok := err.(*NotAcquiredError); ok { //nolint:errorlint // only err itself
		addText(parts, taken.text(KeyHash(taken.Key)))
		if taken.Cause != nil {
			collectText(taken.Cause, parts)
		}
		return
	}
	if short, ok := err.(*ReplicationError); ok { //nolint:errorlint // likewise
		addText(parts, short.text())
		if short.Cause != nil {
			collectText(short.Cause, parts)
		}
		return
	}
	if text, ok := knownText(err); ok {
		addText(parts, text)
		return
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case failure.Mentioned:
		collectText(e.Of, parts)
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			collectText(cause, parts)
		}
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			collectText(cause, parts)
		}
	default:
		addText(parts, fmt.Sprintf("an error of type %T, whose text may name a key", err))
	}
}

// addText appends a text unless parts contains it. It removes the prefix of this package if another text has it.
func addText(parts *[]string, text string) {
	if len(*parts) > 0 && failure.HasPrefix((*parts)[0]) {
		text = failure.TrimPrefix(text)
	}
	if !slices.Contains(*parts, text) {
		*parts = append(*parts, text)
	}
}

// knownText returns the text of err itself if it contains no key.
func knownText(err error) (string, bool) {
	switch err.(type) { //nolint:errorlint // only err itself
	case failure.Text, failure.Loss:
		return err.Error(), true
	}
	return redisstore.KnownText(err)
}

// text describes the failure without its cause. key stands for the key.
func (e *NotAcquiredError) text(key string) string {
	text := fmt.Sprintf("core: lock %q not acquired after %s", key, e.Waited.Round(time.Microsecond))
	switch {
	case e.OwnHold:
		text += fmt.Sprintf(" (held by another hold of this client, %s: if this call is inside it, use the context that Acquire or Do returned)", e.BlockedBy)
	case e.BlockedBy == redisstore.ModeField:
		text += " (the key belongs to a read/write lock)"
	case e.BlockedBy != "":
		text += fmt.Sprintf(" (held by %s)", e.BlockedBy)
	}
	return text
}

// KeyHash returns the name of a key in traces and logs: the first 16 hexadecimal digits of its SHA-256. The key
// is the Redis key, prefix included. In a shell it is
//
//	printf %s 'shop:order:42' | sha256sum | cut -c1-16
//
// The hash hides keys from readers of traces, but not from people who guess keys, because all short numbers can be
// tried.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
