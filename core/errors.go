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
	ErrNotAcquired error = failure.NotAcquired

	// ErrUnavailable says that Redis did not answer, or answered with an error that
	// says nothing about the lock. The lock is then neither held nor known to be
	// taken. A refusal that passes by itself (LOADING, BUSY, READONLY, MISCONF, NOREPLICAS,
	// CLUSTERDOWN and the like) is waited out for the wait time, or for the backend timeout
	// where there is none; the error of every other refusal says that it does not pass.
	ErrUnavailable error = failure.Unavailable

	// ErrNotHeld says that the hold is not held any more, or never was: released
	// twice, or refreshed after its end. So is a permit that is not out.
	ErrNotHeld error = failure.NotHeld

	// ErrLost says that the lock ended under its holder: the lease ran out, or the
	// key was deleted or forced away. It matches [ErrNotHeld] too.
	ErrLost error = failure.Lost

	// ErrReleased is the cause with which the context of a hold ends when the hold
	// is released.
	ErrReleased error = failure.Released

	// ErrTooManyWaiters says that the limit of waiters per key, per client or of
	// [MaxWaiters] was reached. Nothing was sent to Redis.
	ErrTooManyWaiters error = failure.TooManyWaiters

	// ErrClosed says that the client was closed.
	ErrClosed error = failure.Closed

	// ErrInvalid says that an argument or an option is not usable. Nothing was sent
	// to Redis, or nothing was changed there: a count would have come to a number that
	// Redisson cannot read.
	ErrInvalid error = failure.Invalid
)

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

// invalidf returns an [ErrInvalid] with a message that says what to write instead.
func invalidf(format string, args ...any) error { return failure.Invalidf(format, args...) }

// unavailable returns [ErrUnavailable] joined with its cause, or the outcome that the cause is.
func unavailable(cause error) error { return public(failure.BecauseOf(cause)) }

// public turns the errors of the inner packages into the types that this package documents.
func public(err error) error {
	switch e := err.(type) { //nolint:errorlint // the inner packages return these as they are
	case nil:
		return nil
	case *acquire.BusyError:
		return &NotAcquiredError{
			Key: e.Key, Waited: e.Waited, RetryAfter: e.RetryAfter, BlockedBy: e.BlockedBy, OwnHold: e.OwnHold, Cause: e.Cause,
		}
	case *counting.Error:
		return fmt.Errorf("%w: %w", public(e.Cause), e.Fate)
	case failure.List:
		list := make(failure.List, len(e))
		for i, err := range e {
			list[i] = public(err)
		}
		return list
	}
	if short, ok := errors.AsType[*wire.ShortfallError](err); ok {
		return &ReplicationError{Wanted: short.Wanted, Acknowledged: short.Acknowledged, Replicas: short.Replicas, Cause: short.Cause}
	}
	return err
}

// ErrorText is what logs and traces may say of an error of this package: it names no
// key, but its [KeyHash]. It is made of texts that are known to name none: those of
// this package, what the network and TLS said, and of an error of Redis the code and
// what is known of the rest, because Redis quotes arguments in some. Of others it
// gives the type.
//
// The text of the error itself has everything, and is for nobody but the server's
// operators.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	var parts []string
	collectText(err, &parts)
	return strings.Join(parts, ": ")
}

// collectText walks through an error and what it wraps.
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

// addText leaves out what was said already, and whose error it is.
func addText(parts *[]string, text string) {
	if len(*parts) > 0 && failure.HasPrefix((*parts)[0]) {
		text = failure.TrimPrefix(text)
	}
	if !slices.Contains(*parts, text) {
		*parts = append(*parts, text)
	}
}

// knownText is the text of err itself if it names no key.
func knownText(err error) (string, bool) {
	switch err.(type) { //nolint:errorlint // only err itself
	case failure.Text, failure.Loss:
		return err.Error(), true
	}
	return redisstore.KnownText(err)
}

// text describes the failure without its cause, with a name of the key.
func (e *NotAcquiredError) text(key string) string {
	text := fmt.Sprintf("core: lock %q not acquired after %s", key, e.Waited.Round(time.Microsecond))
	switch {
	case e.OwnHold:
		text += fmt.Sprintf(" (held by another hold of this client, %s: if this call is inside it, use the context that Acquire or Do gave)", e.BlockedBy)
	case e.BlockedBy == redisstore.ModeField:
		text += " (its key is that of a read/write lock)"
	case e.BlockedBy != "":
		text += fmt.Sprintf(" (held by %s)", e.BlockedBy)
	}
	return text
}

// KeyHash is how traces and logs name a key: the first 16 hexadecimal digits of its
// SHA-256. The key is the Redis key, prefix included. A shell gets it with
//
//	printf %s 'shop:order:42' | sha256sum | cut -c1-16
//
// It hides keys from who reads traces, not from who guesses: the hash of a short
// number is found by trying all of them.
func KeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}
