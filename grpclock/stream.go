package grpclock

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/keyexpr"
)

// streamCall is one streaming call, as core/aspect sees it.
type streamCall struct {
	host
	passage passage

	method  *method
	srv     any
	stream  grpc.ServerStream // replays the first message once that was received
	first   *firstMessage     // nil until it was received
	handler grpc.StreamHandler
	locked  *lockedStream // nil until the handler runs with a lock
}

// run runs the call and answers.
func (c *streamCall) run() error {
	if c.method.reads && !c.guard.aspect.Suspended() {
		c.receiveFirst()
		if err := c.first.err; err != nil && !errors.Is(err, io.EOF) {
			return err // the call is over, not refused
		}
	}
	out := c.method.point.Run(c.ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return out.Err
	case aspect.VerdictSkipped:
		return c.finish(LockSkipped, c.method.emptyReply)
	case aspect.VerdictNull:
		return c.finish(LockNull, func() any { return c.method.nullReply(out.Index) })
	default:
		refused := out.Refusal()
		c.stream.SetTrailer(pushback(refused))
		return c.guard.refuse(c.ctx, refused)
	}
}

// finish ends the call well, though the handler did not run.
func (c *streamCall) finish(value string, reply func() any) error {
	c.header(value)
	if !c.method.called().replies() {
		return nil
	}
	return c.stream.SendMsg(reply())
}

// header marks the answer, unless a guard outside has done so. It can only fail when
// the headers were sent already.
func (c *streamCall) header(value string) {
	if c.passage.says(value) {
		return
	}
	c.passage.status = value
	_ = c.stream.SetHeader(lockStatus(value)) //nolint:errcheck // the answer counts
}

// receiveFirst waits for the first message; from then on the stream replays it.
func (c *streamCall) receiveFirst() {
	c.first = &firstMessage{message: newMessage(c.method.descriptor.Input())}
	c.first.err = c.stream.RecvMsg(c.first.message)
	c.stream = &replayStream{ServerStream: c.stream, first: c.first}
}

// Env gives the variables.
func (c *streamCall) Env(context.Context) keyexpr.Env {
	if c.first == nil && c.method.reads { // the kill switch was just taken back
		c.receiveFirst()
	}
	return c.method.variables.Call(c.first.received(), &c.host)
}

// Handle runs the handler.
func (c *streamCall) Handle(ctx context.Context, g aspect.Grant) error {
	if g.Unlocked == aspect.UnlockedProceed {
		c.header(LockUnlocked)
	}
	if shown := c.guard.showToken(&c.passage, g); shown != nil {
		_ = c.stream.SetHeader(shown) //nolint:errcheck // the answer counts
	}
	c.passage.hold = g.Hold
	ctx = c.passage.with(ctx)
	if g.Hold == nil {
		return c.handler(c.srv, &contextStream{ServerStream: c.stream, ctx: ctx})
	}
	c.locked = &lockedStream{ServerStream: c.stream, ctx: ctx, fail: c.lost}
	if err := c.handler(c.srv, c.locked); err != nil {
		return err
	}
	return c.locked.failed() // a message was kept back: this is no success
}

// lost is the error for a stream whose lock is lost.
func (c *streamCall) lost(cause error) error {
	return c.guard.refuse(c.ctx, c.method.lossOf(cause))
}

// Fallback runs a fallback.
func (c *streamCall) Fallback(ctx context.Context, name string) error {
	return c.guard.config.streamFallbacks[name](c.srv, &contextStream{ServerStream: c.stream, ctx: ctx})
}

// Canceled recognises a cancellation in gRPC's words, and the error that the stream
// itself gave the handler after a loss.
func (c *streamCall) Canceled(err error) bool {
	if c.locked != nil {
		if failure := c.locked.failed(); failure != nil && errors.Is(err, failure) {
			return true
		}
	}
	return canceled(err)
}

// contextStream is a stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // Context gives it
}

// Context is that context.
func (s *contextStream) Context() context.Context { return s.ctx }
