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

// Guard runs gRPC methods under the locks that rules ask for. Make it with [New],
// put both interceptors into the server, and call [Guard.Check] once its services
// are registered. It is safe for concurrent use, owns no goroutine and needs no
// Close: over a [ruleset.Live] it follows every reload until that is closed.
type Guard struct {
	methods *methodrules.Methods

	unary, streams atomic.Bool // of which the program has asked for the interceptor
	renamed        sync.Map    // full method of a handler: *methodrules.Entry that cannot work
}

// New makes a Guard over a lock client, which stays the caller's to close. The error
// has every problem of the options, and of the rules as far as they do not depend on
// a method.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	g := &Guard{}
	var err error
	if g.methods, err = methodrules.New("grpclock", "", g.unguarded, locks, opts); err != nil {
		return nil, err
	}
	return g, nil
}

// unguarded says why methods of a shape run without the guard.
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

// Aspect is the middle on which the guard stands. Its Suspend is the kill switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.methods.Aspect }

// UnaryServerInterceptor puts unary methods under their rules.
func (g *Guard) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	g.unary.Store(true)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		e := g.called(ctx, info.FullMethod)
		if e == nil {
			return handler(ctx, req)
		}
		return methodcall.Unary(ctx, g.methods, e, &unaryCall{call: call{ctx: ctx, method: info.FullMethod}, req: req, handler: handler})
	}
}

// called returns the rules of a unary method, nil if it has none. If a service is registered under another
// name, its generated handler names another method than the server has matched. Rules of the matched method
// cannot be kept then, so that the entry cannot work. A call within another call has the context of the
// outer one, and has passed a guard.
func (g *Guard) called(ctx context.Context, method string) *methodrules.Entry {
	matched, known := grpc.Method(ctx)
	if known && matched != method && !methodcall.Within(ctx, matched) && g.methods.Unregistered(methodrules.Key{Path: matched}) != nil {
		e, _ := g.renamed.LoadOrStore(method, &methodrules.Entry{
			Endpoint: ruleset.GRPC(matched),
			Err:      fmt.Errorf("the server has matched %s, but its handler says %s: give the rule to %[2]s, or register the service under the name in its .proto file", matched, method),
		})
		return e.(*methodrules.Entry) //nolint:errcheck,forcetypeassert // the map has no others
	}
	return g.methods.Registered(methodrules.Key{Path: method})
}

// StreamServerInterceptor puts streaming methods of all three shapes under their
// rules.
func (g *Guard) StreamServerInterceptor() grpc.StreamServerInterceptor {
	g.streams.Store(true)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		e := g.stream(srv, info)
		if e == nil {
			return handler(srv, stream)
		}
		ctx := stream.Context()
		return methodcall.Stream(ctx, g.methods, e, &streamCall{
			call: call{ctx: ctx, method: info.FullMethod}, srv: srv, stream: stream, handler: handler,
		})
	}
}

// stream gives the rules of a streaming method, nil if it has none. A handler of unknown
// services has no srv.
func (g *Guard) stream(srv any, info *grpc.StreamServerInfo) *methodrules.Entry {
	k := methodrules.Key{Path: info.FullMethod, Shape: methodrules.Shape{Client: info.IsClientStream, Server: info.IsServerStream}}
	if srv == nil {
		return g.methods.Unregistered(k)
	}
	return g.methods.Registered(k)
}

// Server is what [Guard.Check] asks for the registered services: a *grpc.Server.
type Server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// Check compiles the rules of all methods that the servers have registered, and
// returns every problem as one [*ruleset.InvalidError]: what is wrong with an option
// of a .proto file, and with a key, a condition, a response or a fallback for a
// method; and rules that take one key as locks of different kinds, see
// [ruleset.MixedKinds]. Call it after the registrations and before Serve, once, with all servers
// that use the guard. Rules for other transports are not judged.
//
// Rules that match no method, and methods that change something and have no rule,
// are errors, warnings for the observers, or nothing, as the set's [ruleset.Settings]
// say. Health checking and reflection need no rule.
//
// Later sets of a [ruleset.Live] are judged in the same way: what would not pass is
// not taken into force.
//
// A rule for a unary method is an error if the program has not asked for
// [Guard.UnaryServerInterceptor], and one for a streaming method without
// [Guard.StreamServerInterceptor].
//
// Check cannot know what depends on the handlers: which side speaks first on a bidirectional
// method (see [WithServerFirst]). Nor does it see which server has the interceptors. Of a
// method without a descriptor it knows the shape only. Methods that are served by an
// unknown-service handler are not registered, so rules for them are reported: such a
// server goes without Check.
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

// Hold gives the lock under which the handler of ctx runs: of several the one taken
// last; of further ones [core.Held] tells. It is nil outside a guard and where the
// handler runs without a lock; Release of nil is [core.ErrNotHeld].
//
// With [ruleset.Fenced], or with Token in a rule, its Token is larger than that of every holder
// before. A store that knows it refuses the write of a holder that was paused beyond its lease:
//
//	db.ExecContext(ctx, `UPDATE orders SET paid = true, token = $1 WHERE id = $2 AND token < $1`, grpclock.Hold(ctx).Token(), id)
//
// Where that changes no row, a later holder has written already.
//
// The handler may release it early, after which its context has ended (see [Caller]),
// refresh it, or hand it over to work that outlives the call. The guard then leaves it
// alone.
func Hold(ctx context.Context) *core.Hold { return methodcall.Hold(ctx) }

// Caller gives the context of the call as it came to the interceptor: what a handler
// goes on with after it released its lock early, when its own context has ended. It
// carries no lock of this guard. Without a lock it is ctx itself.
func Caller(ctx context.Context) context.Context { return methodcall.Caller(ctx) }
