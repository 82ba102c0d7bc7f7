package methodcall

import (
	"context"
	"errors"
	"io"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
	"github.com/interlock-go/interlock/keyexpr"
)

// Messages are the messages of a stream. Receive is not called beside itself, nor Send;
// at the end Receive gives an error that matches [io.EOF].
type Messages interface {
	Send(m any) error
	Receive(m any) error
}

// StreamCall is one streaming call.
type StreamCall interface {
	Call
	Messages

	// Handle runs the handler on messages that take the place of its own.
	Handle(ctx context.Context, messages Messages) error

	// Fallback likewise runs a fallback of the library.
	Fallback(ctx context.Context, handler any, messages Messages) error
}

// Stream runs a call under the rules of its method.
func Stream(ctx context.Context, m *methodrules.Methods, e *methodrules.Entry, call StreamCall) error {
	c := stream{guarded: guarded{Call: call, methods: m, entry: e, ctx: ctx}, call: call, messages: call}
	if e.Err != nil {
		return c.broken()
	}
	if passed(ctx, m, call, nil) {
		return call.Handle(ctx, call)
	}
	c.passage = newPassage(ctx, m, call, nil)
	return c.ended(c.run())
}

// stream is one streaming call: the [aspect.Call].
type stream struct {
	guarded
	call     StreamCall
	messages Messages      // replays the first one once that was received
	first    *firstMessage // nil until it was received
	locked   *lockedStream // nil until the handler runs with a lock
}

// run runs the call and answers.
func (c *stream) run() error {
	method := c.entry.Extra
	if method.Reads && !c.methods.Aspect.Suspended() {
		c.receiveFirst()
		if err := c.first.err; err != nil && !errors.Is(err, io.EOF) {
			return err // the call is over, not refused
		}
	}
	out := c.entry.Point.Run(c.ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return out.Err
	case aspect.VerdictAnswered:
		c.marked(out.Reply.Mark)
		if !method.Replies() {
			return nil
		}
		return c.call.Send(method.Reply(&out))
	default:
		return c.refused(out.Refusal())
	}
}

// receiveFirst waits for the first message; from then on the stream replays it.
func (c *stream) receiveFirst() {
	c.first = &firstMessage{message: c.entry.Extra.NewRequest()}
	c.first.err = c.call.Receive(c.first.message)
	c.messages = &replayStream{Messages: c.call, first: c.first, worded: c.worded}
}

func (c *stream) Env(context.Context) keyexpr.Env {
	if c.first == nil && c.entry.Extra.Reads { // the kill switch was just taken back
		c.receiveFirst()
	}
	return c.entry.Extra.Variables.Call(c.first.received(), &c.guarded)
}

func (c *stream) Handle(ctx context.Context, g aspect.Grant) error {
	ctx = c.handler(ctx, g)
	if g.Hold == nil {
		return c.call.Handle(ctx, c.messages)
	}
	c.locked = &lockedStream{Messages: c.messages, ctx: ctx, fail: c.lost, worded: c.worded}
	if err := c.call.Handle(ctx, c.locked); err != nil {
		return err
	}
	return c.locked.failed() // a message was kept back: this is no success
}

// lost is the error for a stream whose lock is lost.
func (c *stream) lost(cause error) error { return c.refused(lossOf(c.entry.Point, cause)) }

func (c *stream) Fallback(ctx context.Context, name string) error {
	return c.call.Fallback(ctx, c.methods.Config.StreamFallbacks[name], c.messages)
}

// Canceled recognises a cancellation in the library's words, and the error that the
// stream itself gave the handler after a loss.
func (c *stream) Canceled(err error) bool {
	if c.locked != nil {
		if failure := c.locked.failed(); failure != nil && errors.Is(err, failure) {
			return true
		}
	}
	return c.Call.Canceled(err)
}
