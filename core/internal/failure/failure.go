// Package failure has the errors by which the parts of a client report how an operation ended. Package core
// exports the outcomes, and turns [wire.ShortfallError] into its own type. Every part of a client uses this
// package; it knows only what [wire] reports of an error of Redis.
package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Text is an error with a fixed text. The text names no key, so that logs and traces may show it.
type Text string

func (t Text) Error() string { return string(t) }

// prefix begins the text of every outcome.
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

// Loss says how a lock ended under its holder. It matches [Lost] and [NotHeld]. Its text names no key.
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
)

// final says that Redis has refused a command for a reason that does not pass by itself.
const final = Text("redis refuses this until its data or its configuration is changed")

// Outcome reports whether an error says how an operation ended.
func Outcome(err error) bool {
	for _, outcome := range []error{Unavailable, NotAcquired, NotHeld, Closed, TooManyWaiters, Invalid} {
		if errors.Is(err, outcome) {
			return true
		}
	}
	return false
}

// Invalidf returns an [Invalid] with a message that says what to write instead.
func Invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", Invalid, fmt.Errorf(format, args...))
}

// BecauseOf returns [Unavailable] joined with its cause. It returns nil and an outcome as they are.
func BecauseOf(cause error) error {
	switch {
	case cause == nil, Outcome(cause):
		return cause
	case wire.Rejects(cause):
		return fmt.Errorf("%w: %w: %w", Unavailable, final, cause)
	default:
		return fmt.Errorf("%w: %w", Unavailable, cause)
	}
}

// Mention returns the outcome of another operation, such as the loss of an outer lock, as a cause that does not
// match. It returns other errors as they are.
func Mention(err error) error {
	if err == nil || !Outcome(err) {
		return err
	}
	return Mentioned{err}
}

// Mentioned is an outcome that is shown and does not match.
type Mentioned struct{ Of error }

func (e Mentioned) Error() string { return e.Of.Error() }

// Inside returns err for the text of another outcome, which begins with the prefix already.
func Inside(err error) error { return inside{err} }

type inside struct{ of error }

func (e inside) Error() string { return TrimPrefix(e.of.Error()) }
func (e inside) Unwrap() error { return e.of }

// TrimPrefix returns the text of an outcome for the text of another one.
func TrimPrefix(text string) string { return strings.TrimPrefix(text, prefix) }

// HasPrefix reports whether a text begins like an outcome.
func HasPrefix(text string) bool { return strings.HasPrefix(text, prefix) }

// Ended returns why ctx has ended. The error matches both the error and the cause of ctx. The loss of a hold as
// the cause does not match, because that hold is of another lock.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, Inside(Mention(cause)))
}

// Join joins the errors of the keys of one lock, of which some may be nil. The lock has one outcome: the end of a
// part of it goes first, and the other errors are mentioned beside it. A single error stays as it is.
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
	return list(errs)
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
	return list(errs)
}

// List are several errors of one operation. Like the result of [errors.Join] it matches itself, and only itself.
type List struct{ errs []error }

func list(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return &List{errs}
}

func (l *List) Error() string { return errors.Join(l.errs...).Error() }

// Unwrap returns the errors.
func (l *List) Unwrap() []error { return l.errs }

// Map returns a List with the result of a function for each error. If the function changes none, it returns l.
func (l *List) Map(change func(error) error) error {
	errs, changed := make([]error, len(l.errs)), false
	for i, err := range l.errs {
		errs[i] = change(err)
		changed = changed || errs[i] != err //nolint:errorlint // whether it is the same value
	}
	if !changed {
		return l
	}
	return &List{errs}
}
