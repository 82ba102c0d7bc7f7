package consumer

import (
	"context"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/keyexpr"
)

// call adapts a message to [aspect.Call].
type call struct {
	message   *Message
	handler   Handler
	fallbacks map[string]Handler
	result    Result
}

// Env implements [aspect.Call].
func (c *call) Env(context.Context) keyexpr.Env { return &env{message: c.message} }

// Handle implements [aspect.Call].
func (c *call) Handle(ctx context.Context, g aspect.Grant) error {
	c.result.Token = g.Token
	if g.Unlocked == aspect.UnlockedProceed {
		c.result.Lock = "unlocked"
	}
	return c.handler(context.WithValue(ctx, holdKey{}, g.Hold), c.message)
}

// Fallback implements [aspect.Call].
func (c *call) Fallback(ctx context.Context, name string) error {
	return c.fallbacks[name](ctx, c.message)
}

// answer returns the result of the message.
func (c *call) answer(o *aspect.Outcome) Result {
	if o.Verdict == aspect.VerdictAnswered {
		c.result.Lock = o.Reply.Mark
	}
	c.result.Err = o.Result()
	return c.result
}

type holdKey struct{}

// Hold returns the hold of the handler of ctx, or nil.
func Hold(ctx context.Context) *core.Hold {
	hold, _ := ctx.Value(holdKey{}).(*core.Hold) //nolint:errcheck // nil if ctx has no hold
	return hold
}
