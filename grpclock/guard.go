package grpclock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Guard runs gRPC methods under the locks of rules. Create it with [New],
// give both interceptors to the server, and call [Guard.Check] after registering its services.
// It is safe for concurrent use, owns no goroutine and needs no Close. If its set is a [ruleset.Live], the
// guard follows every reload until the Live is closed.
type Guard struct {
	methods *methodrules.Methods

	unary, streams atomic.Bool // whether the program called the method that returns the interceptor
	mismatches     nameMismatches
}

// New returns a guard that takes its locks from a lock client. The caller closes the client. The error
// contains every problem of the options, and every problem of the rules that does not depend on a
// method.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	g := &Guard{}
	var err error
	if g.methods, err = methodrules.New("grpclock", "", g.unguarded, locks, opts); err != nil {
		return nil, err
	}
	return g, nil
}

// unguarded returns a message if methods of the shape s run without the guard. Otherwise it returns "".
func (g *Guard) unguarded(s methodrules.Shape) string {
	const format = "nothing guards %s methods: give guard.%s() to grpc.%s before Check"
	switch unary := !s.Client && !s.Server; {
	case unary && !g.unary.Load():
		return fmt.Sprintf(format, "unary", "UnaryServerInterceptor", "ChainUnaryInterceptor")
	case !unary && !g.streams.Load():
		return fmt.Sprintf(format, "streaming", "StreamServerInterceptor", "ChainStreamInterceptor")
	default:
		return ""
	}
}

// Aspect returns the aspect that compiles and runs the rules of the guard. Its [aspect.Aspect.Suspend] is the kill switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.methods.Aspect }

// UnaryServerInterceptor returns an interceptor that runs unary methods under their rules.
func (g *Guard) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	g.unary.Store(true)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		e := g.unaryRules(ctx, info.FullMethod)
		if e == nil {
			return handler(ctx, req)
		}
		return methodcall.Unary(ctx, g.methods, e, &unaryCall{call: call{ctx: ctx, method: info.FullMethod}, req: req, handler: handler})
	}
}

// unaryRules returns the rules of a unary method, nil if it has none. It returns an entry with an error if it cannot apply
// the rules of the method that the server matched.
func (g *Guard) unaryRules(ctx context.Context, method string) *methodrules.Entry {
	if matched, differs := matchedMethod(ctx, method); differs && g.methods.Unregistered(methodrules.Key{Path: matched}) != nil {
		return g.mismatches.entry(matched, method)
	}
	return g.methods.Registered(methodrules.Key{Path: method})
}

// matchedMethod returns the method that the server matched, and whether the handler of the call names another method. If a
// service is registered under another name, its generated handler names the method in the .proto file. A call inside
// another call also names another method, because it has the context of the outer call. That does not count, because the
// outer call has passed its guard or Lock already.
func matchedMethod(ctx context.Context, named string) (matched string, differs bool) {
	matched, known := grpc.Method(ctx)
	return matched, known && matched != named && !methodcall.Within(ctx, matched)
}

// nameMismatches holds an entry with an error for each handler that names another method than the server matched. The rules of
// the matched method cannot be applied to it.
type nameMismatches struct{ entries sync.Map } // from the method that the handler names to a *methodrules.Entry

// entry returns the entry of a handler.
func (m *nameMismatches) entry(matched, named string) *methodrules.Entry {
	e, _ := m.entries.LoadOrStore(named, &methodrules.Entry{
		Endpoint: ruleset.GRPC(matched),
		Err:      fmt.Errorf("the server has matched %s, but its handler names %s: give the rule to %[2]s, or register the service under the name in its .proto file", matched, named),
	})
	return e.(*methodrules.Entry) //nolint:errcheck,forcetypeassert // the map has no other values
}

// StreamServerInterceptor returns an interceptor that runs streaming methods of all three shapes under
// their rules.
func (g *Guard) StreamServerInterceptor() grpc.StreamServerInterceptor {
	g.streams.Store(true)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		e := g.streamRules(srv, info)
		if e == nil {
			return handler(srv, stream)
		}
		ctx := stream.Context()
		return methodcall.Stream(ctx, g.methods, e, &streamCall{
			call: call{ctx: ctx, method: info.FullMethod}, srv: srv, stream: stream, handler: handler,
		})
	}
}

// streamRules returns the rules of a streaming method, or nil if it has none. A handler of unknown
// services has no srv.
func (g *Guard) streamRules(srv any, info *grpc.StreamServerInfo) *methodrules.Entry {
	k := methodrules.Key{Path: info.FullMethod, Shape: methodrules.Shape{Client: info.IsClientStream, Server: info.IsServerStream}}
	if srv == nil {
		return g.methods.Unregistered(k)
	}
	return g.methods.Registered(k)
}

// Server returns its registered services, for [Guard.Check]. A *grpc.Server implements it.
type Server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// Check compiles the rules of all registered methods of the servers. It returns every problem as one
// [*ruleset.InvalidError]:
//
//   - mistakes in the options of .proto files;
//   - mistakes in the key, condition, response or fallback for a method;
//   - rules that take one key as locks of different kinds, see [ruleset.MixedKinds];
//   - no rules at all: no options of .proto files, no WithSet, no WithRules, and no [Lock] of the client.
//
// Check warns observers of a [Lock] whose method none of the servers has.
//
// Call Check once, with all servers that use the guard, after the registrations and before Serve. It
// does not check rules for other transports.
//
// Rules that match no method, and methods that may modify data and have no rule, depend on the
// [ruleset.Settings] of the set: Check returns them as errors, reports them to the observers or ignores them.
// Health checking and reflection need no rule.
//
// The guard checks later sets of a [ruleset.Live] in the same way and refuses a set that does not
// pass.
//
// A rule for a unary method is an error if the program did not call
// [Guard.UnaryServerInterceptor]. The same holds for streaming methods and
// [Guard.StreamServerInterceptor].
//
// Check cannot determine which side of a bidirectional method sends first, because that depends on the
// handler (see [WithServerFirst]). Nor does it see which server has the interceptors. For a method without a
// descriptor it checks only the shape. Methods that an unknown-service handler serves are not registered.
// Check would report rules for them, so do not call Check for such a server.
func (g *Guard) Check(servers ...Server) error {
	var keys []methodrules.Key
	for _, s := range servers {
		for service, info := range s.GetServiceInfo() {
			for _, m := range info.Methods {
				shape := methodrules.Shape{Client: m.IsClientStream, Server: m.IsServerStream}
				keys = append(keys, methodrules.Key{Path: "/" + service + "/" + m.Name, Shape: shape})
			}
		}
	}
	return g.methods.Check(keys)
}

// Hold returns the lock under which the handler of ctx runs. If there are several, it returns the lock that was taken
// last; [core.Held] finds the others. It returns nil outside a guard and if the handler runs without a lock. Release of
// a nil Hold returns [core.ErrNotHeld].
//
// With [ruleset.Fenced], or with Token in a rule, the Token of the lock is larger than the token of
// every earlier holder. A store that keeps it can refuse the write of a holder that was paused beyond
// its lease. Package [github.com/interlock-go/interlock/core/fence] does that for SQL and for Redis:
//
//	orders := fence.Table{Name: "orders", Key: "id", Token: "token", Placeholder: "$"}
//	err := orders.Do(ctx, db, id, grpclock.Hold(ctx).Token(), func(tx *sql.Tx) error { … })
//
// The handler may release the lock early, which cancels its context (see [Caller]). It may refresh the
// lock, or hand it over to work that outlives the call. The guard does not release a lock that was
// handed over.
func Hold(ctx context.Context) *core.Hold { return methodcall.Hold(ctx) }

// Caller returns the context that the call had before the interceptor. A handler that has released its lock
// early continues with it, because its own context is canceled. The returned context carries no lock of
// this guard. Without a lock, Caller returns ctx itself.
func Caller(ctx context.Context) context.Context { return methodcall.Caller(ctx) }
