package methodcall

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
	"github.com/interlock-go/interlock/keyexpr"
)

// UnaryCall is one unary call.
type UnaryCall interface {
	Call

	// Request returns the message.
	Request() any

	// Handle runs the handler.
	Handle(ctx context.Context) (reply any, err error)
}

// Unary runs a call under the rules of its method. It returns the reply of the handler or of a fallback.
// If neither ran, the reply is a [proto.Message].
func Unary(ctx context.Context, m *methodrules.Methods, e *methodrules.Entry, call UnaryCall) (any, error) {
	c := unary{guardedCall: guardedCall{Call: call, methods: m, entry: e, ctx: ctx}, call: call}
	if e.Err != nil {
		return nil, c.brokenError()
	}
	id := c.id(call.Request())
	if hasPassed(ctx, id) {
		return call.Handle(ctx)
	}
	c.passage = newPassage(ctx, id)
	reply, err := c.run()
	return reply, c.finish(err)
}

// unary is one unary call. It implements [aspect.Call].
type unary struct {
	guardedCall
	call  UnaryCall
	reply any
}

// run runs the call and returns its answer.
func (c *unary) run() (any, error) {
	out := c.entry.Point.Run(c.ctx, c)
	switch out.Verdict {
	case aspect.VerdictRan, aspect.VerdictFallback:
		return c.reply, out.Err
	case aspect.VerdictAnswered:
		c.mark(out.Reply.Mark)
		return c.entry.Extra.Reply(&out), nil
	default:
		return nil, c.refuse(out.Refusal())
	}
}

// Env implements [aspect.Call].
func (c *unary) Env(context.Context) keyexpr.Env {
	variables, message := c.entry.Extra.Variables, messageOf(c.call.Request())
	env := variables.Call(message, &c.guardedCall)
	if slot, reads := variables.RequestSlot(); reads && message == nil {
		return &unreadableEnv{Env: env, slot: slot, request: c.call.Request()}
	}
	return env
}

// Handle implements [aspect.Call].
func (c *unary) Handle(ctx context.Context, g aspect.Grant) (err error) {
	c.reply, err = c.call.Handle(c.handlerContext(ctx, g))
	return err
}

// Fallback implements [aspect.Call].
func (c *unary) Fallback(ctx context.Context, name string) (err error) {
	c.reply, err = c.methods.Config.Fallbacks[name].Run(ctx, c.call.Request())
	return c.translate(err)
}

// unreadableEnv supplies the variables of a call whose request is not a protobuf message. An expression over
// req fails. Without the error it would read a request whose fields are all missing.
type unreadableEnv struct {
	keyexpr.Env
	slot    int
	request any
}

// Value implements [keyexpr.Env].
func (u *unreadableEnv) Value(slot int) (any, error) {
	if slot == u.slot {
		return nil, fmt.Errorf("the request is a %T, not a protobuf message: use metadata", u.request)
	}
	return u.Env.Value(slot)
}
