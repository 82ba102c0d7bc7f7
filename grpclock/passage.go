package grpclock

import (
	"context"
	"reflect"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
)

// passage is one guard that a call has passed, with or without a lock. The context of
// the handler leads to it.
type passage struct {
	outer     *passage // nil around the first guard
	guard     *Guard
	method    string
	request   any                        // of a unary call
	transport grpc.ServerTransportStream // of the call
	status    string                     // what the guard has put into the header about the lock
	token     int64                      // likewise, 0 without one

	hold   *core.Hold      // nil without a lock
	caller context.Context //nolint:containedctx // it is looked up through the handler's
}

type passageKey struct{}

// newPassage is the passage of a call that has come to a guard with ctx.
func newPassage(ctx context.Context, g *Guard, method string, request any) passage {
	return passage{
		outer: passageOf(ctx), guard: g, method: method, request: request,
		transport: grpc.ServerTransportStreamFromContext(ctx), caller: ctx,
	}
}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage) //nolint:errcheck // nil is the answer
	return p
}

// with makes the handler's context.
func (p *passage) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, passageKey{}, p)
}

// passed reports whether a call, which has come with ctx, has passed the guard before
// and still stands under its lock, if it has one: the guard is installed twice.
func passed(ctx context.Context, g *Guard, method string, request any) bool {
	for p := passageOf(ctx); p != nil; p = p.outer {
		if p.guard == g && p.method == method && same(p.request, request) &&
			same(p.transport, grpc.ServerTransportStreamFromContext(ctx)) && (p.hold == nil || !detached(ctx)) {
			return true
		}
	}
	return false
}

// same is a == b for what may not be comparable.
func same(a, b any) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// detached reports whether core.Detach hides the locks of ctx.
func detached(ctx context.Context) bool { return ctx.Value(core.ContextKey) == nil }

// says reports whether a guard has put the value into the header.
func (p *passage) says(status string) bool {
	for ; p != nil; p = p.outer {
		if p.status == status {
			return true
		}
	}
	return false
}

// shows reports whether a guard has put the token into the header.
func (p *passage) shows(token int64) bool {
	for ; p != nil; p = p.outer {
		if p.token == token {
			return true
		}
	}
	return false
}

// granted is the innermost passage with a lock, nil if there is none.
func (p *passage) granted() *passage {
	for p != nil && p.hold == nil {
		p = p.outer
	}
	return p
}
