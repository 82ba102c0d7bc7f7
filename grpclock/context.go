package grpclock

import (
	"context"

	"github.com/interlock-go/interlock/core"
)

// Hold gives the lock under which the handler of ctx runs; of several rules that of
// the last one. The handler may release it early, refresh it or hand it over: see
// [core.Hold]. It reports false where the handler runs without a lock. For a lock by
// its name use [core.Held].
func Hold(ctx context.Context) (*core.Hold, bool) {
	g := grantedTo(ctx)
	if g == nil || ctx.Value(core.ContextKey) == nil { // hidden by core.Detach
		return nil, false
	}
	return g.hold, true
}

// Caller gives the context of the call as it came to the interceptor: what a handler
// goes on with after it released its lock early, when its own context has ended. It
// carries no lock of this guard. Without a lock it is ctx itself.
func Caller(ctx context.Context) context.Context {
	if g := grantedTo(ctx); g != nil {
		return g.caller
	}
	return ctx
}

// granted is what the context of a handler leads to.
type granted struct {
	hold   *core.Hold
	caller context.Context //nolint:containedctx // it is looked up through the handler's
}

type grantedKey struct{}

func grantedTo(ctx context.Context) *granted {
	g, _ := ctx.Value(grantedKey{}).(*granted) //nolint:errcheck // nil is the answer
	return g
}

// withGranted makes the handler's context.
func withGranted(ctx context.Context, g *granted) context.Context {
	return context.WithValue(ctx, grantedKey{}, g)
}
