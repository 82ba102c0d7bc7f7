package grpclock

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/keyexpr"
)

// unaryCall is one unary call, as core/aspect sees it.
type unaryCall struct {
	host
	passage passage

	method  *method
	req     any
	handler grpc.UnaryHandler
	reply   any
}

// run runs the call and answers.
func (c *unaryCall) run(ctx context.Context) (any, error) {
	out := c.method.point.Run(ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return c.reply, out.Err
	case aspect.VerdictSkipped:
		c.header(LockSkipped)
		return c.method.emptyReply(), nil
	case aspect.VerdictNull:
		c.header(LockNull)
		return c.method.nullReply(out.Index), nil
	default:
		refused := out.Refusal()
		_ = grpc.SetTrailer(ctx, pushback(refused)) //nolint:errcheck // a hint; the answer counts
		return nil, c.guard.refuse(ctx, refused)
	}
}

// header marks the answer, unless a guard outside has done so. It can only fail when
// the headers were sent already.
func (c *unaryCall) header(value string) {
	if c.passage.says(value) {
		return
	}
	c.passage.status = value
	_ = grpc.SetHeader(c.ctx, lockStatus(value)) //nolint:errcheck // the answer counts
}

// Env gives the variables.
func (c *unaryCall) Env(context.Context) keyexpr.Env {
	message := messageOf(c.req)
	env := c.method.variables.Call(message, &c.host)
	if slot, reads := c.method.variables.Schema().Slot(requestVariable); reads && message == nil {
		return &unreadable{Env: env, slot: slot, request: c.req}
	}
	return env
}

// unreadable is the variables of a call whose request is no message. That is not
// the same as a message without the fields, which a condition takes for empty ones.
type unreadable struct {
	keyexpr.Env
	slot    int
	request any
}

// Value is an error for the request.
func (u *unreadable) Value(slot int) (any, error) {
	if slot == u.slot {
		return nil, fmt.Errorf("the request is a %T, no protobuf message: use metadata", u.request)
	}
	return u.Env.Value(slot)
}

// Size implements [keyexpr.Sized].
func (u *unreadable) Size() int { return keyexpr.SizeOf(u.Env) }

// Handle runs the handler.
func (c *unaryCall) Handle(ctx context.Context, g aspect.Grant) (err error) {
	if g.Unlocked == aspect.UnlockedProceed {
		c.header(LockUnlocked)
	}
	if shown := c.guard.showToken(&c.passage, g); shown != nil {
		_ = grpc.SetHeader(c.ctx, shown) //nolint:errcheck // the answer counts
	}
	c.passage.hold = g.Hold
	c.reply, err = c.handler(c.passage.with(ctx), c.req)
	return err
}

// Fallback runs a fallback.
func (c *unaryCall) Fallback(ctx context.Context, name string) (err error) {
	c.reply, err = c.guard.config.unaryFallbacks[name].run(ctx, c.req)
	return err
}

// Canceled recognises a cancellation in gRPC's words.
func (c *unaryCall) Canceled(err error) bool { return canceled(err) }

// messageOf is the request as a message, nil where a codec of its own made it
// something else.
func messageOf(req any) proto.Message {
	switch m := req.(type) {
	case proto.Message:
		return m
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m)
	default:
		return nil
	}
}
