package wire

import (
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// Fate says what is known about a command.
type Fate int

const (
	// Answered says that Redis replied, with a value or an error. An error reply means that
	// the script changed nothing.
	Answered Fate = iota
	// NotSent says that Redis never saw the command.
	NotSent
	// Unknown says that there is no answer: the command may have been executed, and may still be.
	Unknown
)

// interruptedError is the end of a wait by its context or limit. The type tells it apart from
// an answer of Redis: the cause of a context may be any error.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string { return e.cause.Error() }
func (e *interruptedError) Unwrap() error { return e.cause }

// unsentError says that there is no node to send to, or that it is silent.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }
func (e *unsentError) Unwrap() error { return e.cause }

// unsent is the error of a command for which there is no connection. What Redis has answered
// to the introduction is an answer.
func unsent(err error) error {
	if FateOf(err) == Answered {
		return err
	}
	return &unsentError{err}
}

// cause is the error in an unsentError.
func cause(err error) error {
	if unsent, is := err.(*unsentError); is { //nolint:errorlint // only err itself
		return unsent.cause
	}
	return err
}

// lostError is the end of a connection on which commands were under way. Whatever it was, such as an
// error of dialing in a tunnel, it says nothing about them.
type lostError struct{ cause error }

func (e *lostError) Error() string { return e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// lost marks an error as the end of a connection.
func lost(err error) error {
	if FateOf(err) == Unknown {
		return err
	}
	return &lostError{err}
}

// redirectLoopError means that a redirection was followed and the last node redirected again: the nodes of the
// Cluster do not agree yet. Outside a Cluster there is nothing to follow.
type redirectLoopError struct{ cause error }

func (e *redirectLoopError) Error() string { return e.cause.Error() }
func (e *redirectLoopError) Unwrap() error { return e.cause }

// UnreadableError says that Redis has answered, and that its answer is of no use.
type UnreadableError struct{ Cause error }

func (e *UnreadableError) Error() string { return e.Cause.Error() }
func (e *UnreadableError) Unwrap() error { return e.Cause }

// fated is an error that says itself what it means for its command. What it wraps may be about another one, such as
// the attempt to connect that has shown that the node is silent.
type fated interface {
	error
	fate() Fate
}

func (*interruptedError) fate() Fate { return Unknown }
func (*unsentError) fate() Fate      { return NotSent }
func (*lostError) fate() Fate        { return Unknown }
func (*UnreadableError) fate() Fate  { return Answered }
func (*ShortfallError) fate() Fate   { return Answered }
func (e *explainedError) fate() Fate { return FateOf(e.err) }

// FateOf says what an error means for its command.
func FateOf(err error) Fate {
	if err == nil {
		return Answered
	}
	if known, is := errors.AsType[fated](err); is {
		return known.fate()
	}
	var op *net.OpError
	switch {
	case errors.Is(err, redis.ErrAutoPipelineQueueFull), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return NotSent
	case errors.As(err, &op) && op.Op == "dial":
		return NotSent
	}
	if reply, answered := replyOf(err); answered && MeaningOf(reply) != MeansUnanswered {
		return Answered
	}
	return Unknown
}

// Answer reports whether an error is an answer of Redis.
func Answer(err error) bool { return FateOf(err) == Answered }

// Unanswered reports whether err says that the limit of a wait came before an answer, and nothing
// more of Redis.
func Unanswered(err error) bool { return errors.Is(err, errNoAnswer) && !errors.Is(err, ErrSilent) }

// Transient reports whether the next attempt may have another result: there was no connection or no
// answer, a redirection led nowhere, or the error [Passes]. WRONGTYPE, NOPERM and OOM are not transient.
func Transient(err error) bool {
	if _, loop := errors.AsType[*redirectLoopError](err); loop {
		return true
	}
	if byHook(err) {
		return false
	}
	return FateOf(err) != Answered || Passes(err)
}

// Rejects reports whether an error is a reply that says that the script changed nothing, and
// never will.
func Rejects(err error) bool {
	var unreadable *UnreadableError
	return err != nil && !Transient(err) && !Short(err) && !errors.As(err, &unreadable)
}
