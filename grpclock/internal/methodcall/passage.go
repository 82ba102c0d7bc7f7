package methodcall

import (
	"context"
	"reflect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// passage records that a call has passed a guard, with or without a lock. The context of the handler
// carries the passages of all guards, the innermost first.
type passage struct {
	passageID

	outer  *passage        // the passage of the guard around this one; nil for the first guard
	caller context.Context //nolint:containedctx // Caller returns it
	hold   *core.Hold      // nil without a lock
	status string          // the lock status that the guard wrote to the header
	token  int64           // the fencing token that it wrote to the header, or 0
}

// passageID identifies a call at a guard.
type passageID struct {
	guard    *methodrules.Methods
	method   string
	request  any // the request of a unary call
	identity any // see Call.Identity
}

type passageKey struct{}

// newPassage returns the passage of a call that reached a guard with ctx.
func newPassage(ctx context.Context, id passageID) passage {
	return passage{passageID: id, outer: passageOf(ctx), caller: ctx}
}

// attach returns the context of the handler, which carries the passage.
func (p *passage) attach(ctx context.Context) context.Context {
	return context.WithValue(ctx, passageKey{}, p)
}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage) //nolint:errcheck // nil is a valid result
	return p
}

// hasPassed reports whether a call has already passed the guard, because the guard is installed twice. It
// reports false if the call got a lock that core.Detach now hides.
func hasPassed(ctx context.Context, id passageID) bool {
	return passageOf(ctx).find(func(p *passage) bool {
		return p.guard == id.guard && p.method == id.method && equal(p.request, id.request) &&
			equal(p.identity, id.identity) && (p.hold == nil || !isDetached(ctx))
	}) != nil
}

// Within reports whether ctx belongs to the handler of a method that has passed a guard.
func Within(ctx context.Context, method string) bool {
	return passageOf(ctx).find(func(p *passage) bool { return p.method == method }) != nil
}

// equal reports whether a == b. Values that cannot be compared are not equal.
func equal(a, b any) bool {
	return a == nil && b == nil || reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// isDetached reports whether core.Detach hides the locks of ctx.
func isDetached(ctx context.Context) bool { return ctx.Value(core.ContextKey) == nil }

// find returns the innermost passage for which match returns true, or nil.
func (p *passage) find(match func(*passage) bool) *passage {
	for p != nil && !match(p) {
		p = p.outer
	}
	return p
}

func hasHold(p *passage) bool { return p.hold != nil }

// Hold returns the lock that the handler of ctx runs with, or nil.
func Hold(ctx context.Context) *core.Hold {
	if p := passageOf(ctx).find(hasHold); p != nil && !isDetached(ctx) {
		return p.hold
	}
	return nil
}

// Caller returns the context that the call had before the guard of [Hold], or ctx itself if the handler runs
// without a lock.
func Caller(ctx context.Context) context.Context {
	if p := passageOf(ctx).find(hasHold); p != nil {
		return p.caller
	}
	return ctx
}
