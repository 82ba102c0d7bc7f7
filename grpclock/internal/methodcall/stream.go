package methodcall

import (
	"context"
	"errors"
	"io"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
	"github.com/interlock-go/interlock/keyexpr"
)

// StreamCall is one streaming call.
type StreamCall interface {
	Call
	Messages

	// Handle runs the handler with the given messages instead of the messages of the call.
	Handle(ctx context.Context, messages Messages) error

	// SharesWindow reports whether unreceived messages keep other calls of the connection from sending.
	SharesWindow() bool

	// Fallback runs a fallback of the library with the given messages.
	Fallback(ctx context.Context, handler any, messages Messages) error
}

// Stream runs a call under the rules of its method.
func Stream(ctx context.Context, m *methodrules.Methods, e *methodrules.Entry, call StreamCall) error {
	c := stream{guardedCall: guardedCall{Call: call, methods: m, entry: e, ctx: ctx}, call: call, messages: call}
	if e.Err != nil {
		return c.brokenError()
	}
	id := c.id(nil)
	if hasPassed(ctx, id) {
		return call.Handle(ctx, call)
	}
	c.passage = newPassage(ctx, id)
	if call.SharesWindow() && e.Extra.Described() {
		c.ahead = &aheadStream{Messages: call, method: e.Extra, methods: m, translate: c.translate}
		c.messages = c.ahead
		defer c.stopAhead()
	}
	return c.finish(c.run())
}

// stream is one streaming call. It implements [aspect.Call].
type stream struct {
	guardedCall
	call     StreamCall
	messages Messages      // replays the first message after it was received
	ahead    *aheadStream  // nil unless messages may be received during a wait
	first    *firstMessage // nil until it was received
	locked   *lockedStream // nil until the handler runs with a lock
}

// run runs the call and sends its answer.
func (c *stream) run() error {
	method := c.entry.Extra
	if method.Reads && !c.methods.Aspect.Suspended() {
		c.receiveFirst()
		if err := c.first.err; err != nil && !errors.Is(err, io.EOF) {
			return err // the call has ended; it was not refused
		}
	}
	out := c.entry.Point.Run(c.ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return out.Err
	case aspect.VerdictAnswered:
		c.mark(out.Reply.Mark)
		if !method.Replies() {
			return nil
		}
		return c.call.Send(method.Reply(&out))
	default:
		return c.refuse(out.Refusal())
	}
}

// receiveFirst waits for the first message. After that, messages replays it.
func (c *stream) receiveFirst() {
	c.first = &firstMessage{message: c.entry.Extra.NewRequest()}
	c.first.err = c.messages.Receive(c.first.message)
	c.messages = &replayStream{Messages: c.messages, first: c.first, translate: c.translate}
}

// Env implements [aspect.Call].
func (c *stream) Env(context.Context) keyexpr.Env {
	if c.first == nil && c.entry.Extra.Reads { // run did not receive, because the aspect was suspended; it has been resumed since
		c.receiveFirst()
	}
	return c.entry.Extra.Variables.Call(c.first.request(), &c.guardedCall)
}

// Handle implements [aspect.Call].
func (c *stream) Handle(ctx context.Context, g aspect.Grant) error {
	c.stopAhead()
	ctx = c.handlerContext(ctx, g)
	if g.Hold == nil {
		return c.call.Handle(ctx, c.messages)
	}
	c.locked = &lockedStream{Messages: c.messages, ctx: ctx, onLoss: c.lossError, translate: c.translate}
	if err := c.call.Handle(ctx, c.locked); err != nil {
		return err
	}
	return c.locked.reportedLoss() // the handler could not send or receive a message, so the call did not succeed
}

// stopAhead ends receiving ahead, because the handler receives the rest.
func (c *stream) stopAhead() {
	if c.ahead != nil {
		c.ahead.stop()
	}
}

// lossError returns the error for a stream whose lock is lost.
func (c *stream) lossError(cause error) error { return c.refuse(lossRefusal(c.entry.Point, cause)) }

// Fallback implements [aspect.Call].
func (c *stream) Fallback(ctx context.Context, name string) error {
	c.stopAhead()
	return c.call.Fallback(ctx, c.methods.Config.StreamFallbacks[name], c.messages)
}

// Canceled reports whether an error means that the call was canceled. The error that the stream returned
// to the handler after a loss means that, too.
func (c *stream) Canceled(err error) bool {
	if c.locked != nil {
		if loss := c.locked.reportedLoss(); loss != nil && errors.Is(err, loss) {
			return true
		}
	}
	return c.Call.Canceled(err)
}
