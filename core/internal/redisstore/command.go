package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// command is one sending of a script, and what the hooks of the caller's client see of it.
//
//	prepared -> sending  the innermost hook, which is ours, sends it
//	sending  -> over     it has an outcome, or its caller has left
//	prepared -> refused  the hooks have returned without that
//
// Only transmit and through change the phase. A hook may run what is below it in a
// goroutine that it leaves behind; so the outcome is read only when the command is over.
type command struct {
	redis.Cmd

	ctx   carried
	phase atomic.Int32
	size  int32     // on the wire; here it takes no room
	given []any     // the arguments to send; hooks see a copy in Cmd, and may change it
	room  [2][8]any // for both, of most scripts
	seen  error     // what hooks have made of the outcome

	// How to send it.
	route  *route
	ack    *acknowledgement // nil: replicas need not have it
	asking bool             // with an ASK before it
	at     time.Time        // the time, or a little before
	limit  time.Time        // of the wait for the answer

	answer
	waiting bool  // its caller has left before the answer
	err     error // the outcome
}

// The phases of a command.
const (
	commandPrepared int32 = iota
	commandSending
	commandOver
	commandRefused
)

// newCommand makes a command that is nowhere yet.
func newCommand(verb string, body any, args []any) *command {
	c := &command{}
	c.given = append(append(c.room[0][:0], verb, body), args...)
	c.Cmd = *newCmd(&c.ctx, append(c.room[1][:0], c.given...))
	return c
}

// newCmd makes a go-redis command of EVALSHA or EVAL.
func newCmd(ctx context.Context, args []any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(keyPosition)
	cmd.SetStepCount(1) // else a ClusterClient asks any node, dead or not, for it
	return cmd
}

// keyPosition is where EVALSHA and EVAL have their first key.
const keyPosition = 3

// once is a command that go-redis must not send again by itself: it would hide
// from this package that the command may have been executed twice.
type once struct{ *redis.Cmd }

// NoRetry opts out of every retry of go-redis.
func (once) NoRetry() bool { return true }

// Args returns a copy: hooks have left the same command as it was before a redirection, and cannot change it now.
func (o once) Args() []any { return slices.Clone(o.Cmd.Args()) }

// NoRetry is for hooks that ask.
func (*command) NoRetry() bool { return true }

// Err is the outcome for hooks. Unlike that of go-redis it waits for nothing.
func (c *command) Err() error {
	if c.seen == nil && c.phase.Load() == commandOver {
		return c.err
	}
	return c.seen
}

// SetErr is what go-redis and hooks do with an outcome. It stays theirs.
func (c *command) SetErr(err error) { c.seen = err }

// Val is the reply for hooks; it waits for nothing.
func (c *command) Val() any {
	if c.phase.Load() == commandSending || c.waiting {
		return nil
	}
	return c.Cmd.Val()
}

// Result is both.
func (c *command) Result() (any, error) { return c.Val(), c.Err() }

// String is for logs of hooks.
func (c *command) String() string { return fmt.Sprint(c.Args()...) }

// through runs the hooks around the command. What became of the command is its outcome,
// whatever they make of it: only that a hook refuses, or fails afterwards, is theirs to say.
func (c *command) through(h hooks) error {
	said := contained(func() error { return c.process(h) })
	if c.phase.CompareAndSwap(commandPrepared, commandRefused) {
		if said != nil {
			return &unsentError{said}
		}
		return nil // the hook has answered itself
	}
	if c.phase.Load() != commandOver {
		return &interruptedError{errors.Join(errHookLeft, said)}
	}
	if c.err == nil && said != nil {
		return &interruptedError{said}
	}
	return c.err
}

// process has hooks see the command, or the pipeline in which it travels.
func (c *command) process(h hooks) error {
	if c.ack == nil {
		return h.Process(&c.ctx, c)
	}
	return inPipeline(&c.ctx, h, []redis.Cmder{c, c.ack.waitCommand(&c.ctx)})
}

// errHookLeft is the cause when a hook has not waited for what it runs.
var errHookLeft = errors.New("a hook of the redis client did not wait for the command")

// contained makes an error of the panic of a hook: the goroutine may be anybody's.
func contained(hooks func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a hook of the redis client has panicked: %v", r)
		}
	}()
	return hooks()
}

// transmit is what the hooks are around: it sends the command, once. A hook that runs it
// again, as one that retries does, gets the same outcome.
func (c *command) transmit() error {
	if c.phase.Load() == commandPrepared && !slices.Equal(c.Args(), c.given) {
		return errChanged
	}
	if !c.phase.CompareAndSwap(commandPrepared, commandSending) {
		if c.phase.Load() == commandOver {
			return c.err
		}
		return errNotAgain
	}
	c.err = c.send()
	c.phase.Store(commandOver)
	return c.err
}

// errNotAgain refuses what a hook runs behind the back of the lock.
var errNotAgain = errors.New("this lock command was sent already, or is not wanted any more")

// send sends the command and waits for its answer.
func (c *command) send() error {
	switch {
	case c.ack != nil:
		if err := c.route.acker.submit(c); err != nil {
			return err
		}
	case c.route.redirected != nil:
		c.follow(c.route.redirected.Submit(context.Background(), once{&c.Cmd})) //nolint:forbidigo // it outlives its caller
	default:
		c.prepare(within(c.ctx.caller, c.limit))
		if err := c.route.pipelines.submit(c); err != nil {
			return err
		}
	}
	err := c.await(c.ctx.caller, c.limit)
	if err != nil {
		var interrupted *interruptedError
		c.waiting = errors.As(err, &interrupted)
	}
	return err
}

// pending reports whether an answer may come later.
func (c *command) pending() bool { return c.phase.Load() == commandOver && c.waiting }

// await waits in two steps. Nearly every reply comes within the first, in which a call
// waits for nothing else; only a slow one, which is notified, pays for a timer of its own
// and listens to its caller.
func (c *command) await(ctx context.Context, limit time.Time) error {
	if c.awaitSoon() || c.ack != nil && c.awaitReplicas() {
		return c.settled()
	}
	return c.awaitSlow(ctx, limit)
}

// awaitReplicas waits for as long as replicas may take while nothing is wrong.
func (c *command) awaitReplicas() bool {
	timer := time.NewTimer(mostPatience)
	defer timer.Stop()
	select {
	case <-c.wake:
	case <-timer.C:
	}
	return c.over()
}

// awaitSlow waits until ctx or limit ends, or until the node is known to be silent. When
// it falls silent many wait, so that this, and not ctx, is what ends them without a
// goroutine for each.
func (c *command) awaitSlow(ctx context.Context, limit time.Time) error {
	speaks, done := c.route.health.waits()
	defer done()
	waits, end := context.WithCancelCause(speaks)
	defer end(nil)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	}
	err := c.untilBy(waits, limit)
	if errors.Is(err, errNoAnswer) && wokeAfter(limit) && wokeAfter(c.at) {
		err = c.untilBy(waits, time.Now().Add(waking)) // this process did not run meanwhile
	}
	if err == nil {
		return c.settled()
	}
	return err
}

// untilBy waits for an answer, at most until limit; its error says what has come instead.
func (c *command) untilBy(waits context.Context, limit time.Time) error {
	bounded, cancel := context.WithDeadlineCause(waits, limit, errNoAnswer)
	defer cancel()
	switch {
	case c.until(bounded):
		return nil
	case c.told():
		return &interruptedError{errHangs}
	default:
		return &interruptedError{context.Cause(bounded)}
	}
}

// errNoAnswer is the cause of a wait that reached its limit.
var errNoAnswer = errors.New("no answer from redis in time")

// Unanswered reports whether err says that the limit of a wait came before an answer, and nothing
// more of Redis.
func Unanswered(err error) bool { return errors.Is(err, errNoAnswer) }

// carried is the context in which hooks see a command: it has the values of the caller's,
// such as the span that the command belongs below, but does not end with it.
type carried struct {
	caller context.Context //nolint:containedctx // who waits for the answer
}

// Deadline is none.
func (*carried) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done is never.
func (*carried) Done() <-chan struct{} { return nil }

// Err is nil.
func (*carried) Err() error { return nil }

// Value is the caller's.
func (c *carried) Value(key any) any {
	if c.caller == nil {
		return nil
	}
	return context.WithoutCancel(c.caller).Value(key)
}
