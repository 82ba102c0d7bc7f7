package methodcall

import (
	"context"
	"reflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// passage is one guard that a call has passed, with or without a lock. The context of
// the handler leads to it.
type passage struct {
	outer    *passage // nil around the first guard
	guard    *methodrules.Methods
	method   string
	request  any    // of a unary call
	identity any    // of the call
	status   string // what the guard has put into the header about the lock
	token    int64  // likewise, 0 without one

	hold   *core.Hold      // nil without a lock
	caller context.Context //nolint:containedctx // it is looked up through the handler's
}

type passageKey struct{}

// newPassage is the passage of a call that has come to a guard with ctx.
func newPassage(ctx context.Context, m *methodrules.Methods, call Call, request any) passage {
	return passage{outer: passageOf(ctx), guard: m, method: call.Method(), request: request, identity: call.Identity(), caller: ctx}
}

// with is the handler's context.
func (p *passage) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, passageKey{}, p)
}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage) //nolint:errcheck // nil is the answer
	return p
}

// passed reports whether a call, which has come with ctx, has passed the guard before
// and still stands under its lock, if it has one: the guard is installed twice.
func passed(ctx context.Context, m *methodrules.Methods, call Call, request any) bool {
	return passageOf(ctx).innermost(func(p *passage) bool {
		return p.guard == m && p.method == call.Method() && same(p.request, request) &&
			same(p.identity, call.Identity()) && (p.hold == nil || !detached(ctx))
	}) != nil
}

// Within reports whether ctx is of the handler of a method that has passed a guard.
func Within(ctx context.Context, method string) bool {
	return passageOf(ctx).innermost(func(p *passage) bool { return p.method == method }) != nil
}

// same is a == b for what may not be comparable.
func same(a, b any) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// detached reports whether core.Detach hides the locks of ctx.
func detached(ctx context.Context) bool { return ctx.Value(core.ContextKey) == nil }

// innermost is the first passage from the inside of which something is true, nil if there
// is none.
func (p *passage) innermost(is func(*passage) bool) *passage {
	for p != nil && !is(p) {
		p = p.outer
	}
	return p
}

func locked(p *passage) bool { return p.hold != nil }

// Hold is the lock under which the handler of ctx runs, nil without one.
func Hold(ctx context.Context) *core.Hold {
	if p := passageOf(ctx).innermost(locked); p != nil && !detached(ctx) {
		return p.hold
	}
	return nil
}

// Caller is the context with which the call came to the guard of [Hold], ctx itself
// without one.
func Caller(ctx context.Context) context.Context {
	if p := passageOf(ctx).innermost(locked); p != nil {
		return p.caller
	}
	return ctx
}
