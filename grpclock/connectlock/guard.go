package connectlock

import (
	"context"
	"fmt"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Guard runs the procedures of Connect handlers under the locks of rules. Create it with [New] and give its
// interceptor to every handler. It is safe for concurrent use, owns no goroutine and needs no Close.
// If its set is a [ruleset.Live], the guard follows every reload until the Live is closed.
type Guard struct {
	methods *methodrules.Methods

	unary, streams atomic.Bool // whether the interceptor was put on a procedure of this shape
}

// New returns a Guard that takes its locks from a lock client. The caller closes the client. The error
// contains every problem of the options, and every problem of the rules that does not depend on a
// procedure.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	g := &Guard{}
	var err error
	g.methods, err = methodrules.New("connectlock", "give Check its service, such as shop.v1.Orders, or remove the rule", g.unguarded, locks, opts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// unguarded returns a message if procedures of a shape run without the guard, otherwise "".
func (g *Guard) unguarded(s methodrules.Shape) string {
	kind, guarded := "streaming", &g.streams
	if !s.Client && !s.Server {
		kind, guarded = "unary", &g.unary
	}
	if guarded.Load() {
		return ""
	}
	return fmt.Sprintf("nothing guards %s procedures: give guard.Interceptor() to their handlers, with connect.WithInterceptors, before Check", kind)
}

// Aspect returns the aspect that the guard uses. Its Suspend is the kill switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.methods.Aspect }

// Check compiles the rules of all procedures that the program serves and returns every problem as one
// [*ruleset.InvalidError]. A name is a service, "shop.v1.Orders", or the path that the New…Handler of
// generated code returns, "/shop.v1.Orders/", or one procedure, "/shop.v1.Orders/Pay". Generated code has
// constants for them. The guard cannot ask a handler for its procedures, so rules for procedures that are not
// named count as unmatched. A guard without any rules is an error, unless the client has a [Lock].
//
// Call Check once, with all names, after creating the handlers and before serving. Check reports a rule as an
// error while no handler of its shape has the interceptor. After Check, the guard refuses a reload that Check
// would not accept.
func (g *Guard) Check(names ...string) error {
	var keys []methodrules.Key
	var errs []error
	for _, name := range names {
		found, err := g.methods.Config.Keys(name)
		keys, errs = append(keys, found...), append(errs, err)
	}
	return g.methods.Check(keys, errs...)
}

// Interceptor returns an interceptor that runs the procedures of a handler under their rules: unary
// procedures, and streams of all shapes. A client may have the interceptor, too. The interceptor does not
// change the calls that the client sends.
func (g *Guard) Interceptor() connect.Interceptor { return interceptor{g} }

type interceptor struct{ guard *Guard }

func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	i.guard.unary.Store(true)
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		spec := req.Spec()
		if spec.IsClient {
			return next(ctx, req)
		}
		e := i.guard.rules(spec)
		if e == nil {
			return next(ctx, req)
		}
		return response(methodcall.Unary(ctx, i.guard.methods, e, newUnaryCall(ctx, req, next)))
	}
}

// WrapStreamingClient returns next, because rules are for handlers.
func (i interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	i.guard.streams.Store(true)
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		spec := conn.Spec()
		e := i.guard.rules(spec)
		if e == nil {
			return next(ctx, conn)
		}
		return methodcall.Stream(ctx, i.guard.methods, e, &streamCall{
			call:     call{spec.Procedure, conn.Peer().Addr, conn.RequestHeader(), conn.ResponseHeader},
			Messages: conn, conn: conn, next: next,
		})
	}
}

// rules returns the rules of a procedure, or nil if it has none.
func (g *Guard) rules(spec connect.Spec) *methodrules.Entry {
	return g.methods.Registered(methodrules.Key{Path: spec.Procedure, Shape: methodrules.Shape{
		Client: spec.StreamType&connect.StreamTypeClient != 0, Server: spec.StreamType&connect.StreamTypeServer != 0,
	}})
}

// Hold returns the lock that the handler of ctx runs with. Of several locks it returns the last one;
// [core.Held] finds the others. It returns nil outside a guard and without a lock.
//
// The handler may release the lock early, which cancels its context (see [Caller]). It may refresh the
// lock, or hand it over to work that outlives the call.
func Hold(ctx context.Context) *core.Hold { return methodcall.Hold(ctx) }

// Caller returns the context that the call had before the interceptor. A handler that has released its lock
// early continues with it, because its own context is canceled. The returned context carries no lock of
// this guard. Without a lock, Caller returns ctx itself.
func Caller(ctx context.Context) context.Context { return methodcall.Caller(ctx) }
