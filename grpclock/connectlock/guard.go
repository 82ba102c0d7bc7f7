package connectlock

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Guard runs the procedures of Connect handlers under the locks that rules ask for. Make
// it with [New] and give its interceptor to every handler. It is safe for concurrent
// use, owns no goroutine and needs no Close: over a [ruleset.Live] it follows every
// reload until that is closed.
type Guard struct {
	methods *methodrules.Methods

	unary, streams atomic.Bool // of which a handler has the interceptor
}

// New makes a Guard over a lock client, which stays the caller's to close. The error
// has every problem of the options, and of the rules as far as they do not depend on
// a procedure.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	g := &Guard{}
	var err error
	g.methods, err = methodrules.New("connectlock", "give Check the service that it is of, such as shop.v1.Orders, or remove the rule", g.unguarded, locks, opts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// unguarded says why procedures of a shape run without the guard.
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

// Aspect is the middle on which the guard stands. Its Suspend is the kill switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.methods.Aspect }

// Check compiles the rules of all procedures that the program serves, and returns every
// problem as one [*ruleset.InvalidError]. A name is a service, "shop.v1.Orders", or the
// path that the New…Handler of generated code returns, "/shop.v1.Orders/", or one
// procedure, "/shop.v1.Orders/Pay"; generated code has constants, too. A handler tells
// nobody what it serves: rules for procedures that are not named count as unmatched.
//
// Call it when the handlers are made and before the server serves, once, with all names: a rule
// is an error while no handler of its shape has the interceptor. From then on a reload that
// would not pass is refused.
func (g *Guard) Check(names ...string) error {
	var keys []methodrules.Key
	var errs []error
	for _, name := range names {
		found, err := g.methods.Config.Keys(name)
		keys, errs = append(keys, found...), append(errs, err)
	}
	return g.methods.Check(keys, errs...)
}

// Interceptor puts the procedures of a handler under their rules: unary ones, and streams
// of all shapes. Calls of clients that are given it pass untouched.
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
		return response(methodcall.Unary(ctx, i.guard.methods, e, &unaryCall{
			call: call{spec.Procedure, req.Peer().Addr, req.Header(), func() http.Header { return headerOf(ctx) }}, req: req, next: next,
		}))
	}
}

// WrapStreamingClient leaves clients alone.
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

// rules gives the rules of a procedure, nil if it has none.
func (g *Guard) rules(spec connect.Spec) *methodrules.Entry {
	return g.methods.Registered(methodrules.Key{Path: spec.Procedure, Shape: methodrules.Shape{
		Client: spec.StreamType&connect.StreamTypeClient != 0, Server: spec.StreamType&connect.StreamTypeServer != 0,
	}})
}

// Hold gives the lock under which the handler of ctx runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and without a lock.
// The handler may release it early, after which its context has ended (see [Caller]),
// refresh it, or hand it over to work that outlives the call.
func Hold(ctx context.Context) *core.Hold { return methodcall.Hold(ctx) }

// Caller gives the context of the call as it came to the interceptor: what a handler
// goes on with after it released its lock early, when its own context has ended. It
// carries no lock of this guard. Without a lock it is ctx itself.
func Caller(ctx context.Context) context.Context { return methodcall.Caller(ctx) }
