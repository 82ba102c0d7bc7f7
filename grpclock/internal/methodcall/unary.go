package methodcall

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
	"github.com/interlock-go/interlock/keyexpr"
)

// UnaryCall is one unary call.
type UnaryCall interface {
	Call

	// Request is the message.
	Request() any

	Handle(ctx context.Context) (reply any, err error)
}

// Unary runs a call under the rules of its method. The reply is the handler's or that of
// a fallback, or a [proto.Message] in its place.
func Unary(ctx context.Context, m *methodrules.Methods, e *methodrules.Entry, call UnaryCall) (any, error) {
	c := unary{guarded: guarded{Call: call, methods: m, entry: e, ctx: ctx}, call: call}
	if e.Err != nil {
		return nil, c.broken()
	}
	if passed(ctx, m, call, call.Request()) {
		return call.Handle(ctx)
	}
	c.passage = newPassage(ctx, m, call, call.Request())
	reply, err := c.run()
	return reply, c.ended(err)
}

// unary is one unary call: the [aspect.Call].
type unary struct {
	guarded
	call  UnaryCall
	reply any
}

// run runs the call and answers.
func (c *unary) run() (any, error) {
	out := c.entry.Point.Run(c.ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return c.reply, out.Err
	case aspect.VerdictAnswered:
		c.marked(out.Reply.Mark)
		return c.entry.Extra.Reply(&out), nil
	default:
		return nil, c.refused(out.Refusal())
	}
}

func (c *unary) Env(context.Context) keyexpr.Env {
	variables, message := c.entry.Extra.Variables, messageOf(c.call.Request())
	env := variables.Call(message, &c.guarded)
	if slot, reads := variables.RequestSlot(); reads && message == nil {
		return &unreadable{Env: env, slot: slot, request: c.call.Request()}
	}
	return env
}

func (c *unary) Handle(ctx context.Context, g aspect.Grant) (err error) {
	c.reply, err = c.call.Handle(c.handler(ctx, g))
	return err
}

func (c *unary) Fallback(ctx context.Context, name string) (err error) {
	c.reply, err = c.methods.Config.Fallbacks[name].Run(ctx, c.call.Request())
	return c.worded(err)
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
