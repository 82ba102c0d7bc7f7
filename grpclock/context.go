package grpclock

import (
	"context"

	"github.com/interlock-go/interlock/core"
)

// Hold gives the lock under which the handler of ctx runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is [core.ErrNotHeld].
//
// The handler may release it early, after which its context has ended (see [Caller]),
// refresh it, or hand it over to work that outlives the call. The guard then leaves it
// alone.
func Hold(ctx context.Context) *core.Hold {
	g := grantedTo(ctx)
	if g == nil || ctx.Value(core.ContextKey) == nil { // hidden by core.Detach
		return nil
	}
	return g.hold
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
