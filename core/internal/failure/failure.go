// Package failure contains the errors with which the parts of a client report the outcome of an operation. Package core
// exports the outcomes and converts [wire.ShortfallError] to its own type. Every part of a client uses this package.
// It depends only on package wire, which classifies the errors of Redis.
package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Text is an error with a fixed message. The message contains no key, so logs and traces may show it.
type Text string

func (t Text) Error() string { return string(t) }

// prefix begins the message of every outcome.
const prefix = "core: "

// The outcomes of an operation. Package core documents them.
const (
	NotAcquired    = Text(prefix + "lock not acquired")
	Unavailable    = Text(prefix + "redis unavailable")
	NotHeld        = Text(prefix + "lock not held")
	Released       = Text(prefix + "lock released")
	TooManyWaiters = Text(prefix + "too many waiters")
	Closed         = Text(prefix + "client closed")
	Invalid        = Text(prefix + "invalid argument")
	Lost           = Loss("")
)

// Loss is the reason for which a holder lost its lock. It matches [Lost] and [NotHeld]. Its message contains no key.
type Loss string

func (l Loss) Error() string {
	if l == "" {
		return prefix + "lock lost"
	}
	return Lost.Error() + ": " + string(l)
}

// Unwrap returns [Lost], and [NotHeld] for Lost itself.
func (l Loss) Unwrap() error {
	if l == "" {
		return NotHeld
	}
	return Lost
}

// The ways in which a lock is lost.
const (
	LeaseExpired = Loss("the lease has expired")
	Leaked       = Loss("the hold was garbage-collected")
	NotMine      = Loss("redis has another holder, or none")
	HeldTooLong  = Loss("it was held for longer than MaxHold") // Redis keeps the lock until the release or the end of the lease
)

// final means that Redis refused a command for a reason that does not pass by itself.
const final = Text("redis refuses this until its data or its configuration is changed")

// isOutcome reports whether an error matches an outcome.
func isOutcome(err error) bool {
	for _, outcome := range []error{Unavailable, NotAcquired, NotHeld, Closed, TooManyWaiters, Invalid} {
		if errors.Is(err, outcome) {
			return true
		}
	}
	return false
}

// Invalidf returns an [Invalid] error. Its message includes what to write instead.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", Invalid, fmt.Errorf(format, args...))
}

// BecauseOf returns [Unavailable] joined with its cause. If cause is nil or an outcome, BecauseOf returns it unchanged.
func BecauseOf(cause error) error {
	switch {
	case cause == nil, isOutcome(cause):
		return cause
	case wire.Rejects(cause):
		return fmt.Errorf("%w: %w: %w", Unavailable, final, cause)
	default:
		return fmt.Errorf("%w: %w", Unavailable, cause)
	}
}

// Mention wraps the outcome of another operation, such as the loss of an outer lock, as a cause that does not match. It
// returns other errors unchanged.
func Mention(err error) error {
	if err == nil || !isOutcome(err) {
		return err
	}
	return Mentioned{err}
}

// Mentioned is an outcome that appears in a message but does not match.
type Mentioned struct{ Of error }

func (e Mentioned) Error() string { return e.Of.Error() }

// Inside returns err without the prefix in its message, for use inside another outcome, which begins with the prefix.
func Inside(err error) error { return insideError{err} }

type insideError struct{ err error }

func (e insideError) Error() string { return TrimPrefix(e.err.Error()) }
func (e insideError) Unwrap() error { return e.err }

// TrimPrefix removes the prefix from the message of an outcome.
func TrimPrefix(text string) string { return strings.TrimPrefix(text, prefix) }

// HasPrefix reports whether a message begins with the prefix of an outcome.
func HasPrefix(text string) bool { return strings.HasPrefix(text, prefix) }

// Ended returns an error that matches the error and the cause of ctx, which is done. If the cause is the loss of a
// hold, the error does not match the loss, because another lock was lost.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, Inside(Mention(cause)))
}

// Join joins the errors of the keys of one lock. Some of them may be nil. If the lock of a key is lost, not held or
// closed, the result matches only that outcome, and Join only mentions the other errors. Join returns a single error
// unchanged.
func Join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	errs = slices.Clone(errs)
	for _, outcome := range []error{Lost, NotHeld, Closed} {
		if !slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, outcome) }) {
			continue
		}
		for i, err := range errs {
			if !errors.Is(err, outcome) {
				errs[i] = Mention(err)
			}
		}
		break
	}
	return newList(errs)
}

// JoinBeyond joins errors if more than spare of them are not nil. Otherwise it returns nil.
func JoinBeyond(spare int, errs []error) error {
	for _, err := range errs {
		if err != nil {
			spare--
		}
	}
	if spare >= 0 {
		return nil
	}
	return newList(errs)
}

// List contains the errors of one operation. Like the result of [errors.Join], a List is equal only to itself.
type List struct{ errs []error }

func newList(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &List{errs}
}

func (l *List) Error() string { return errors.Join(l.errs...).Error() }

// Unwrap returns the errors.
func (l *List) Unwrap() []error { return l.errs }

// Map applies change to each error and returns a List of the results. If change changes none of them, Map returns l.
func (l *List) Map(change func(error) error) error {
	errs, changed := make([]error, len(l.errs)), false
	for i, err := range l.errs {
		errs[i] = change(err)
		changed = changed || errs[i] != err //nolint:errorlint // compares values
	}
	if !changed {
		return l
	}
	return &List{errs}
}
