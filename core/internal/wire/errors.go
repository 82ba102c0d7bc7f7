package wire

import (
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// Fate is the fate of a command, as far as this process knows it.
type Fate int

const (
	// Answered means that Redis replied, with a value or an error. After an error reply the script
	// changed nothing.
	Answered Fate = iota
	// NotSent means that Redis never saw the command.
	NotSent
	// Unknown means that no answer came. Redis may have executed the command, or may execute it later.
	Unknown
)

// interruptedError means that a wait ended because of its context or its limit. The type distinguishes it
// from an answer of Redis, because the cause of a context may be any error.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string { return e.cause.Error() }

func (e *interruptedError) Unwrap() error { return e.cause }

// unsentError means that a command was not sent: its node is unknown or silent, no connection was made, or a hook
// refused it.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }

func (e *unsentError) Unwrap() error { return e.cause }

// markUnsent marks an error as the reason why a command was not sent. An error reply during the setup of
// the connection is returned unchanged.
func markUnsent(err error) error {
	if FateOf(err) == Answered {
		return err
	}
	return &unsentError{err}
}

// cause returns the error inside an unsentError, and any other error unchanged.
func cause(err error) error {
	if unsent, is := err.(*unsentError); is { //nolint:errorlint // only err itself
		return unsent.cause
	}
	return err
}

// lostError means that a connection was lost with commands under way. Its type determines their
// fate, because its cause, such as the dial error of a tunnel, proves nothing about them.
type lostError struct{ cause error }

func (e *lostError) Error() string { return e.cause.Error() }

func (e *lostError) Unwrap() error { return e.cause }

// markLost marks an error as the cause of a lost connection.
func markLost(err error) error {
	if FateOf(err) == Unknown {
		return err
	}
	return &lostError{err}
}

// redirectLoopError means that a redirection was followed and the last node redirected again: the nodes of the
// Cluster do not agree yet.
type redirectLoopError struct{ cause error }

func (e *redirectLoopError) Error() string { return e.cause.Error() }

func (e *redirectLoopError) Unwrap() error { return e.cause }

// UnreadableError means that Redis sent an answer that cannot be read.
type UnreadableError struct{ Cause error }

func (e *UnreadableError) Error() string { return e.Cause.Error() }

func (e *UnreadableError) Unwrap() error { return e.Cause }

// fateError is an error that determines the fate of its command. An error that it wraps may concern
// something else, such as the attempt to connect after which the node counts as silent.
type fateError interface {
	error
	fate() Fate
}

func (*interruptedError) fate() Fate { return Unknown }

func (*unsentError) fate() Fate { return NotSent }

func (*lostError) fate() Fate { return Unknown }

func (*UnreadableError) fate() Fate { return Answered }

func (*ShortfallError) fate() Fate { return Answered }

func (e *explainedError) fate() Fate { return FateOf(e.err) }

// FateOf returns the fate of the command of an error.
func FateOf(err error) Fate {
	if err == nil {
		return Answered
	}
	if known, is := errors.AsType[fateError](err); is {
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

// Unanswered reports whether err means only that a wait reached its limit before an answer came.
func Unanswered(err error) bool { return errors.Is(err, errNoAnswer) && !errors.Is(err, ErrSilent) }

// Transient reports whether the next attempt may have another result. This is so if there was no
// connection or no answer, if the nodes redirect to each other, and if the error [Passes].
// WRONGTYPE, NOPERM and OOM are not transient.
func Transient(err error) bool {
	if _, loop := errors.AsType[*redirectLoopError](err); loop {
		return true
	}
	if byHook(err) {
		return false
	}
	return FateOf(err) != Answered || Passes(err)
}

// Rejects reports whether an error is a reply after which the script changed nothing and never will.
func Rejects(err error) bool {
	var unreadable *UnreadableError
	return err != nil && !Transient(err) && !Short(err) && !errors.As(err, &unreadable)
}

// errPending means that the answer has not arrived yet.
var errPending = errors.New("no answer so far")

// Pending reports whether an error of [Call.Late] means that an answer may still come.
func Pending(err error) bool { return errors.Is(err, errPending) }

// ShortfallError means that a script was executed, but too few replicas are known to have its writes.
type ShortfallError struct {
	Wanted       int
	Acknowledged int
	Replicas     int   // number of replicas of the master when it was last asked; -1: not known
	Cause        error // why the acknowledgements could not be counted; nil if they were
}

// Short reports whether an error is a shortfall.
func Short(err error) bool {
	_, short := errors.AsType[*ShortfallError](err)
	return short
}

// Error describes the shortfall. It contains no key.
func (e *ShortfallError) Error() string {
	return fmt.Sprintf("%d of the %d wanted replicas have acknowledged in time", e.Acknowledged, e.Wanted)
}

// Unwrap returns the cause.
func (e *ShortfallError) Unwrap() error { return e.Cause }

// errNoRoom means that all connections for commands that wait for replicas are in use.
var errNoRoom = errors.New("no connection was free for a command that replicas have to acknowledge")

// errHookLeft is the cause when a hook did not wait for the command.
var errHookLeft = errors.New("a hook of the redis client did not wait for the command")

// errNotAgain refuses a command that a hook sends a second time, or sends after the hooks returned.
var errNotAgain = errors.New("this lock command was sent already, or is not wanted any more")

// errHangs is the cause when a wait was interrupted on a connection that hangs while others are opened.
var errHangs = errors.New("no answer on a connection that hangs")

// hangs reports whether a wait was interrupted because its connection hangs. Such a wait may continue. It
// may not if err only wraps the interruption, as the errors of a lost connection and of a silent node do.
func hangs(err error) bool {
	wait, is := err.(*interruptedError) //nolint:errorlint // only err itself
	return is && wait.cause == errHangs //nolint:errorlint // not what it wraps
}

// errNoAnswer is the cause of a wait that reached its limit.
var errNoAnswer = errors.New("no answer from redis in time")

var (
	errManyDials    = errors.New("too many attempts to connect to redis have not ended")
	errDialEnded    = errors.New("the dialer of the redis client has ended its goroutine")
	errNoConnection = errors.New("no connection")
)

// errNaming means that a connection was closed, or got no answer, after CLIENT SETNAME. Some proxies
// behave like that.
var errNaming = errors.New("the connection cannot be named")

// ErrSilent is wrapped by the error of a call to a node that has not answered anything for the backend
// timeout. Such a call fails at once, and other calls are not sent.
var ErrSilent = errors.New("no answer from redis")

// explainedError is the error of a call, together with the last connect error of its node or the
// error of an earlier call. Only err describes the call and its answer.
type explainedError struct {
	err     error
	between string
	why     error
}

// AfterEarlier adds the error of an earlier attempt at the same operation to an error.
func AfterEarlier(err, earlier error) error {
	return &explainedError{err, "; before that: ", earlier}
}

func (e *explainedError) Error() string { return e.err.Error() + e.between + e.why.Error() }

func (e *explainedError) Unwrap() []error { return []error{e.err, e.why} }

// errForeign refuses a command that a hook passed on instead of a lock command. errChanged refuses
// a command whose arguments, such as a key, a hook changed, because the hook would change them
// again when the command is sent again.
var (
	errForeign error = &unsentError{errors.New("a hook of the redis client has replaced a lock command by another one")}
	errChanged error = &unsentError{errors.New("a hook of the redis client has changed the keys or arguments of a lock command: " +
		"leave the hook out, and set a prefix of keys by core.WithPrefix or core.WithNameMapper")}
)

// byHook reports whether a hook prevented the command from being sent. The hook will do the same to the
// next command.
func byHook(err error) bool { return errors.Is(err, errForeign) || errors.Is(err, errChanged) }

// errMute means that Redis has not answered on a new connection.
var errMute = errors.New("a new connection has no answer")

// errMuteTLS is errMute for a connection with TLS. A Redis without TLS takes a handshake for a command that is not
// complete, and waits for the rest.
var errMuteTLS = errors.New("a new connection with TLS has no answer: check that this port speaks TLS; for a port without TLS write redis://, or no TLSConfig")

// errPipelineClosed is the error of commands without an answer when their pipeline is closed.
var errPipelineClosed = errors.New("the connection was closed before the answer")

// errUnnamed means that the error of a dialer does not contain the address of the master.
var errUnnamed = errors.New("the dialer does not show which master the sentinels name")

// ErrClient refuses a client with which locks cannot be correct.
var ErrClient = errors.New("unsupported redis client")

// MeaningOf returns the meaning of the error reply inside an error.
func MeaningOf(err error) Meaning {
	reply, ok := replyOf(err)
	if !ok {
		return MeansFinal
	}
	return meaningOfReply(reply.Error())
}

// replyOf returns the error reply to the command of an error. It ignores the replies in the
// explanation of an error. It also ignores the reply to WAIT in a shortfall, because the script was
// executed.
func replyOf(err error) (redis.Error, bool) {
	if Short(err) {
		return nil, false
	}
	if explained, ok := errors.AsType[*explainedError](err); ok {
		return replyOf(explained.err)
	}
	return errors.AsType[redis.Error](err)
}

// WrongType reports whether Redis answered that the key holds a value of another type. Redis works, but
// the key is not a lock.
func WrongType(err error) bool { return Answer(err) && MeaningOf(err) == MeansWrongType }

// Apart reports whether an endpoint refused a script because the keys of the script are in several
// slots, or because the endpoint cannot find their slots in the source.
func Apart(err error) bool {
	means := MeaningOf(err)
	return Answer(err) && (means == MeansApart || means == MeansUnchecked)
}

// Passes reports whether the error is a temporary refusal by a Redis that works. Such a Redis loads
// data, runs a script of another client, has too few replicas or too many clients, or is not the
// master yet. A Cluster whose nodes or slots change refuses temporarily as well.
func Passes(err error) bool {
	if FateOf(err) != Answered {
		return false
	}
	if _, lasts := errors.AsType[*lastingError](err); lasts {
		return false
	}
	switch MeaningOf(err) {
	case MeansPasses, MeansFull, MeansInMotion, MeansReplica:
		return true
	default:
		return false
	}
}

// lastingError is a refusal that does not pass, although its reply may.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

// Lasting marks a refusal that will not pass by itself in the state in which its server is.
func Lasting(err error) error { return &lastingError{err} }

// UnknownCommand reports whether a server is too old for a command or subcommand.
func UnknownCommand(err error) bool {
	means := MeaningOf(err)
	return means == MeansNoCommand || means == MeansUnsupported
}
