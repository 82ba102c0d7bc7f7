package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// command is one sending of a script, as the hooks of the caller's client see it.
//
//	prepared -> sending  the innermost hook, which belongs to this package, sends it
//	sending  -> over     it has an outcome, or its caller left
//	prepared -> refused  the hooks returned without sending it
//
// Only transmit and outcome change the phase. A hook may run the next hook in a goroutine that continues
// after the first one returned. So the outcome is read only in the phase over.
type command struct {
	redis.Cmd

	ctx   hookContext
	phase atomic.Int32
	size  int32     // in bytes on the wire; placed here, it fills padding
	given []any     // the arguments to send; hooks see, and may change, a copy in Cmd
	room  [2][8]any // memory for given and the copy in Cmd, enough for most scripts
	seen  error     // the outcome as changed by hooks

	// How to send it.
	to      destination
	health  *health          // the health of the node
	ack     *acknowledgement // nil: replicas need not acknowledge it
	asking  bool             // an ASKING is sent before it
	batched bool             // its caller sends more commands before it reads a reply
	at      time.Time        // when it was sent, or a little before
	limit   time.Time        // end of the wait for the answer

	answer
	waiting bool  // its caller left before the answer came
	err     error // the outcome
}

// The phases of a command.
const (
	commandPrepared int32 = iota
	commandSending
	commandOver
	commandRefused
)

// keyPosition is the position of the first key in EVALSHA and EVAL.
const keyPosition = 3

// destination is the node to which commands are sent.
type destination interface {
	// send passes commands to the node. A refused command contains its error.
	send(cmds []*command)
	// clientHooks returns the hooks of the node's client; nil: it has none.
	clientHooks() hooks
}

// newCommand returns a command that was not sent yet.
func newCommand(verb string, body any, args []any) *command {
	c := &command{}
	c.given = append(append(c.room[0][:0], verb, body), args...)
	c.Cmd = *redis.NewCmd(&c.ctx, append(c.room[1][:0], c.given...)...)
	c.Cmd.SetFirstKeyPos(keyPosition)
	c.Cmd.SetStepCount(1) // otherwise a ClusterClient asks any node, dead or alive, for the position of the keys
	return c
}

// internal returns a command that no hook sees. If then is not nil, no caller waits for the answer: the answer calls
// then instead.
func internal(then func(), args ...any) *command {
	c := &command{given: args}
	c.then = then
	return c
}

// NoRetry keeps go-redis from sending the command again.
func (*command) NoRetry() bool { return true }

// Err returns the outcome for hooks. Unlike the method of go-redis it does not wait.
func (c *command) Err() error {
	if c.seen == nil && c.phase.Load() == commandOver {
		return c.err
	}
	return c.seen
}

// SetErr records the error that go-redis or a hook sets. Only hooks see this error.
func (c *command) SetErr(err error) { c.seen = err }

// Val returns the reply for hooks. It does not wait.
func (c *command) Val() any {
	if c.phase.Load() == commandSending || c.waiting {
		return nil
	}
	return c.Cmd.Val()
}

// Result returns Val and Err.
func (c *command) Result() (any, error) { return c.Val(), c.Err() }

// String returns the command with its arguments, for the logs of hooks.
func (c *command) String() string { return fmt.Sprint(c.Args()...) }

// outcome returns the outcome of the command after the hooks returned said. Hooks can only prevent the
// command from being sent, or make it fail although it was answered.
func (c *command) outcome(said error) error {
	if c.phase.CompareAndSwap(commandPrepared, commandRefused) {
		if said != nil {
			return &unsentError{said}
		}
		return nil // the hook supplied an answer
	}
	if c.phase.Load() != commandOver {
		return &interruptedError{errors.Join(errHookLeft, said)}
	}
	if c.err == nil && said != nil {
		return &interruptedError{said}
	}
	return c.err
}

// transmit sends the commands to one node, once, and waits for their answers, inside the hooks. A
// hook that runs transmit again, for example to retry, gets the same outcome. It returns the first
// error.
func transmit(cmds ...*command) error {
	for _, c := range cmds {
		if c.phase.Load() == commandPrepared && !slices.Equal(c.Args(), c.given) {
			return errChanged
		}
	}
	for i, c := range cmds {
		if !c.phase.CompareAndSwap(commandPrepared, commandSending) {
			if i == 0 && c.phase.Load() == commandOver {
				return c.err
			}
			return errNotAgain
		}
	}
	cmds[0].to.send(cmds)
	var first error
	for _, c := range cmds {
		if c.err == nil {
			c.err = c.await(c.ctx.caller, c.limit)
		}
		if first == nil {
			first = c.err
		}
		_, c.waiting = errors.AsType[*interruptedError](c.err)
		c.phase.Store(commandOver)
	}
	return first
}

// pending reports whether an answer may come later.
func (c *command) pending() bool { return c.phase.Load() == commandOver && c.waiting }

// answer is the answer that a command waits for. At first its caller waits for nothing else, which is cheap.
// When the answer is slow, the caller waits for its context and its limit as well.
//
//	soon -> over  the pipeline completed it
//	soon -> slow  it takes long
//	slow -> over  the pipeline completed it
//
// The answer is completed once, and only its caller reads it afterwards. An answer becomes slow only under the
// mutex of a pipeline, while its command is in the queue of that pipeline. The answer is completed after the
// command left the queue.
type answer struct {
	soon    sync.WaitGroup // counts 1 until the answer is completed or slow
	wake    chan struct{}  // for a slow answer
	isOver  atomic.Bool
	hung    atomic.Int32 // whether its connection hangs and the caller was interrupted
	reply   any
	failure error
	then    func() // called instead for an internal command
}

// The values of answer.hung. Each step happens at most once.
const (
	notHung   int32 = iota
	hungNews        // the connection hangs, and the caller has to be interrupted
	hungKnown       // the caller was interrupted and may wait again for longer
)

// prepare makes a command ready to be submitted for a caller that has time until limit.
func (c *command) prepare(limit time.Time) {
	if limit.Sub(c.at) < longestMoment+2*moment {
		c.wake = make(chan struct{}, 1)
		return
	}
	c.soon.Add(1)
}

// complete delivers the answer.
func (a *answer) complete(reply any, err error) {
	a.reply, a.failure = reply, err
	slow := a.wake != nil
	a.isOver.Store(true)
	switch {
	case a.then != nil:
		a.then()
	case slow:
		wake(a.wake)
	default:
		a.soon.Done()
	}
}

// slow makes the caller wait for its context and its limit as well.
func (a *answer) slow() {
	if a.wake == nil && a.then == nil {
		a.wake = make(chan struct{}, 1)
		a.soon.Done()
	}
}

// hangs interrupts the caller, once, because its connection hangs.
func (a *answer) hangs() {
	if a.then == nil && a.hung.CompareAndSwap(notHung, hungNews) {
		a.slow()
		wake(a.wake)
	}
}

// over reports whether there is an answer.
func (a *answer) over() bool { return a.isOver.Load() }

// takeAnswer copies the answer to the fields that hooks see.
func (c *command) takeAnswer() error {
	if c.failure == nil {
		c.Cmd.SetVal(c.reply)
	}
	return c.failure
}

// await waits in two steps. Nearly every reply arrives during the first step, which ignores ctx. Only
// for a slow reply the caller pays for a timer and observes ctx.
func (c *command) await(ctx context.Context, limit time.Time) error {
	c.soon.Wait()
	if c.over() || c.ack != nil && c.awaitReplicas() {
		return c.takeAnswer()
	}
	return c.awaitSlow(ctx, limit)
}

// awaitReplicas waits for the time that replicas usually take. It reports whether the answer came.
func (c *command) awaitReplicas() bool {
	timer := time.NewTimer(longestMoment)
	defer timer.Stop()
	select {
	case <-c.wake:
	case <-timer.C:
	}
	return c.over()
}

// awaitSlow waits until ctx is done, limit passes, or the node is silent. The contexts of all callers
// that wait for a node have one parent. When the node falls silent, canceling the parent ends all
// waits without a goroutine for each.
func (c *command) awaitSlow(ctx context.Context, limit time.Time) error {
	speaks, done := c.health.startWaiting()
	defer done()
	waits, end := context.WithCancelCause(speaks)
	defer end(nil)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	}
	err := c.untilBy(waits, limit)
	if errors.Is(err, errNoAnswer) && wokeAfter(limit) && wokeAfter(c.at) {
		err = c.untilBy(waits, time.Now().Add(waking)) // this process did not run in the meantime
	}
	if err == nil {
		return c.takeAnswer()
	}
	return err
}

// untilBy waits for an answer, but not longer than limit. If no answer came, it returns why the wait ended.
func (c *command) untilBy(waits context.Context, limit time.Time) error {
	bounded, cancel := context.WithDeadlineCause(waits, limit, errNoAnswer)
	defer cancel()
	for !c.over() && c.hung.Load() != hungNews {
		select {
		case <-c.wake:
			continue
		case <-bounded.Done():
		}
		break
	}
	switch {
	case c.over():
		return nil
	case c.hung.CompareAndSwap(hungNews, hungKnown):
		return &interruptedError{errHangs}
	default:
		return &interruptedError{context.Cause(bounded)}
	}
}

// within returns limit, or the deadline of ctx if that is earlier.
func within(ctx context.Context, limit time.Time) time.Time {
	if until, has := ctx.Deadline(); has && until.Before(limit) {
		return until
	}
	return limit
}

// hookContext is the context that hooks receive with a command. It contains the values of the caller's context,
// such as the parent span. The end of the caller's context does not cancel it.
type hookContext struct {
	caller context.Context //nolint:containedctx // the caller's, which waits for the answer
}

// Deadline returns no deadline.
func (*hookContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil: the context is never canceled.
func (*hookContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (*hookContext) Err() error { return nil }

// Value returns the value of the caller's context.
func (c *hookContext) Value(key any) any {
	if c.caller == nil {
		return nil
	}
	return context.WithoutCancel(c.caller).Value(key)
}

// acknowledgement holds the number of replicas that have to acknowledge commands that are sent
// together, and the result. The result is written before the commands are completed.
type acknowledgement struct {
	slots  []int
	wanted int
	wait   time.Duration
	short  *ShortfallError // nil: enough replicas acknowledged, or no answer came
}

// command returns the WAIT for the replicas. It can safely be executed twice.
func (a *acknowledgement) command() []any {
	return []any{"wait", a.wanted, max(a.wait.Milliseconds(), 1)}
}

// hooks runs commands through the present hooks of a client. Commands are sent on connections of this
// package, but the caller's client may have hooks, for example for tracing. A command runs through
// those hooks first. The innermost hook, which belongs to this package, sends it.
type hooks interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}
