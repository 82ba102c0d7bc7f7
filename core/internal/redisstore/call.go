package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

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

// call is one script on its way, whatever its reply means.
type call struct {
	// Sent is when the call was handed to the wire, or a little before.
	Sent time.Time

	store  *Store
	script *script
	key    string
	cmd    *command
	state  callState
	route  *route
	err    error // of a finished call
	last   bool  // no second send
	acked  bool  // replicas have to acknowledge what it does
	moved  bool  // the node that was asked knows another one
}

type callState uint8

const (
	prepared callState = iota
	queued             // on its way
	finished
)

// call prepares a script. args are what EVALSHA wants behind the digest: number of
// keys, arguments; key is the first of the keys.
func (s *Store) call(now time.Time, sc *script, key string, args ...any) call {
	if sc.sharded != nil && s.Sharded() {
		sc = sc.sharded
	}
	return call{Sent: now, store: s, script: sc, key: key, cmd: newCommand("evalsha", sc.digest, args)}
}

// again prepares the call once more, by its digest or with the whole script.
func (c *call) again(verb string, body any) {
	c.cmd, c.state = newCommand(verb, body, c.cmd.given[2:]), prepared
}

// wait sends the call, again where Redis wants the whole script or knows another node, and
// waits for the reply.
func (c *call) wait(ctx context.Context, limit time.Time) (any, Fate, error) {
	err := c.run(ctx, limit)
	c.judge(err)
	if err == nil {
		return c.cmd.Cmd.Val(), Answered, nil
	}
	c.store.learn(err)
	if !c.last && fateOf(err) == Answered {
		switch {
		case meaningOf(err) == noScript:
			c.again("eval", c.script.source) // Redis keeps it from then on
			return c.wait(ctx, limit)
		case c.acked && c.store.redirected(err) && !c.moved && c.redirect(err):
			return c.wait(ctx, limit)
		case c.store.redirected(err) && !c.moved && !c.acked:
			c.moved = true
			c.again("evalsha", c.script.digest)
			return c.wait(ctx, limit)
		}
	}
	if c.store.redirected(err) {
		if c.acked {
			c.store.routes.nodes.stale()
		}
		err = &vainError{err}
	}
	if fateOf(err) != Answered && c.store.cluster != nil {
		c.store.routes.nodes.stale() // another node may have taken over
	}
	return nil, fateOf(err), c.store.advised(c.route.health.explain(err))
}

// redirect prepares the call for the node that a redirection names, if that is known.
func (c *call) redirect(err error) bool {
	to, ask := c.store.routes.nodes.target(err)
	if to == nil {
		return false
	}
	c.moved, c.route = true, &to.route
	c.again("eval", c.script.source)
	c.cmd.asking = ask
	return true
}

// judge takes from the end of a call what it says about its node.
func (c *call) judge(err error) {
	switch {
	case err == nil || fateOf(err) == Answered:
		c.route.health.answered()
	case !errors.Is(err, ErrSilent):
		c.route.health.doubt()
	}
}

// late is the reply of a call that wait has given up, if it has come.
func (c *call) late() (any, Fate, error) {
	if c.state != queued {
		return nil, fateOf(c.err), c.err
	}
	if !c.cmd.until(c.store.over) {
		return nil, Unknown, errPending
	}
	if err := c.cmd.settled(); err != nil {
		c.state, c.err = finished, err
		return nil, fateOf(err), err
	}
	return c.cmd.Cmd.Val(), Answered, nil
}

// errPending says that an answer is still awaited.
var errPending = errors.New("no answer so far")

// Pending reports whether an error of Late means that there may be another answer later.
func Pending(err error) bool { return errors.Is(err, errPending) }

// Settle makes Wait take an answer as it is, also that the script is not known:
// nobody wants the call executed any more.
func (c *call) Settle() { c.last = true }

// interruptedError is the end of a wait by its context or limit, told apart from
// anything that Redis said: the cause of a context may be any error.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string { return e.cause.Error() }
func (e *interruptedError) Unwrap() error { return e.cause }

func (c *call) run(ctx context.Context, limit time.Time) error {
	switch c.state {
	case finished:
		return c.err
	case queued:
		return c.cmd.await(ctx, limit)
	case prepared:
	}
	if err := c.findRoute(); err != nil {
		c.state, c.err = finished, unsent(err)
		return c.err
	}
	cmd := c.cmd
	if c.acked {
		ack, err := c.route.acker.prepare(ctx, limit, c.store.slot(c.key))
		if err != nil {
			c.state, c.err = finished, unsent(err)
			return c.err
		}
		ack.asking = cmd.asking
		cmd.ack = ack
	}
	c.route.health.sent(c.Sent)
	cmd.route, cmd.at, cmd.ctx.caller, cmd.limit = c.route, c.Sent, ctx, limit
	return c.start()
}

// start sends the command through the hooks of the caller's client. One that follows a
// redirection has them around its pipeline, where it has no caller's context.
func (c *call) start() (err error) {
	switch {
	case c.moved && c.acked:
		err = c.cmd.through(c.route.hooks)
	case c.moved:
		err = c.cmd.transmit()
	default:
		err = c.cmd.through(c.store.hooks)
	}
	c.state, c.err = finished, err
	if c.cmd.pending() {
		c.state = queued
	}
	return err
}

// within is the limit, or the deadline of ctx if that is earlier.
func within(ctx context.Context, limit time.Time) time.Time {
	if until, has := ctx.Deadline(); has && until.Before(limit) {
		return until
	}
	return limit
}

// findRoute finds the way to the node of the key, unless that is silent.
func (c *call) findRoute() (err error) {
	if c.moved && c.acked {
		return c.route.health.err()
	}
	if c.route, err = c.store.routes.of(c.key); err != nil {
		return fmt.Errorf("no node of the cluster is known: %w", err)
	}
	if c.moved {
		c.route = &route{redirected: c.store.routes.nodes.redirected}
	}
	return c.route.health.err()
}

// unsentError says that there is no node to send to, or that it is silent.
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }
func (e *unsentError) Unwrap() error { return e.cause }

// lostError is the end of a connection on which commands were under way. Whatever it was, an
// error of dialing in a tunnel, say, it says nothing about them.
type lostError struct{ cause error }

func (e *lostError) Error() string { return e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// lost marks such an error where that is to be seen.
func lost(err error) error {
	if fateOf(err) == Unknown {
		return err
	}
	return &lostError{err}
}

// vainError is a redirection of a Cluster that is the answer after others were followed: its
// nodes are not of one mind yet. Outside a Cluster there is nothing to follow, ever.
type vainError struct{ cause error }

func (e *vainError) Error() string { return e.cause.Error() }
func (e *vainError) Unwrap() error { return e.cause }

// fateOf tells an error of go-redis apart.
func fateOf(err error) Fate {
	var op *net.OpError
	var interrupted *interruptedError
	var unsent *unsentError
	var lost *lostError
	var explained *explainedError
	var unreadable *unreadableError
	switch {
	case err == nil, Short(err):
		return Answered
	case errors.As(err, &explained):
		return fateOf(explained.err)
	case errors.As(err, &unreadable):
		return Answered
	case errors.As(err, &interrupted):
		return Unknown
	case errors.As(err, &unsent):
		return NotSent
	case errors.As(err, &lost):
		return Unknown
	case errors.Is(err, redis.ErrAutoPipelineQueueFull), errors.Is(err, redis.ErrClosed), errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return NotSent
	case errors.As(err, &op) && op.Op == "dial":
		return NotSent
	}
	if reply, answered := replyOf(err); answered && meaningOf(reply) != unanswered {
		return Answered
	}
	return Unknown
}

// Answer reports whether an error is an answer of Redis.
func Answer(err error) bool { return fateOf(err) == Answered }

// Transient reports whether the next attempt may have another result: there was no connection or no
// answer, a redirection led nowhere, or the error [Passes]. WRONGTYPE, NOPERM and OOM are not transient.
func Transient(err error) bool {
	if _, vain := errors.AsType[*vainError](err); vain {
		return true
	}
	if byHook(err) {
		return false
	}
	return fateOf(err) != Answered || Passes(err)
}

// Rejects reports whether an error is a reply that says that the script changed nothing, and
// never will.
func Rejects(err error) bool {
	var unreadable *unreadableError
	return err != nil && !Transient(err) && !Short(err) && !errors.As(err, &unreadable)
}

// WrongType reports whether Redis has answered that the key holds something of another type,
// such as a text: it says nothing about Redis, and everything about the key.
func WrongType(err error) bool { return Answer(err) && meaningOf(err) == wrongType }

// Apart reports whether an endpoint that is not a Cluster to its client has refused a script because its keys
// are in several slots, or because its text does not show their slots.
func Apart(err error) bool {
	means := meaningOf(err)
	return Answer(err) && (means == apart || means == unchecked)
}

// learn remembers for good that keys have to be sent one by one, if err says so, and reports whether it does.
func (s *Store) learn(err error) bool {
	if s.cluster != nil || !Apart(err) {
		return false
	}
	s.keyByKey.Store(true)
	return true
}

// Passes reports whether Redis has answered that it is there and will serve, but not now: it loads
// data, runs a script of another client, has too few replicas or too many clients, or is not the
// master yet; or a Cluster or its links are in motion.
func Passes(err error) bool {
	if fateOf(err) != Answered {
		return false
	}
	switch meaningOf(err) {
	case passes, inMotion, replica:
		return true
	default:
		return false
	}
}
