package grpclock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard runs gRPC methods under the locks that rules ask for. Make it with [New],
// put both interceptors into the server, and call [Guard.Check] once its services
// are registered. It is safe for concurrent use, owns no goroutine and needs no
// Close: over a [ruleset.Live] it follows every reload until that is closed.
type Guard struct {
	config *config
	aspect *aspect.Aspect
	rules  ruleset.Provider

	current  atomic.Pointer[table]
	learning sync.Mutex // one compiles what is not in the table
	swapping sync.Mutex // one replaces the table and tells the observers; short

	registered atomic.Pointer[[]methodKey] // that Check has seen
}

// New makes a Guard over a lock client, which stays the caller's to close. The error
// has every problem of the options, and of the rules as far as they do not depend on
// a method.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	c, err := newConfig(opts)
	errs := []error{err}
	middle, err := aspect.New(locks, c.observers...)
	if err != nil {
		errs = append(errs, fmt.Errorf("grpclock: New: %w", err))
	}
	rules, err := c.rules()
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	g := &Guard{config: c, aspect: middle, rules: rules}
	if _, err := rules.Subscribe(g.prepare); err != nil { // for as long as the rules are loaded anew
		return nil, fmt.Errorf("grpclock: New: %w", err)
	}
	return g, nil
}

// Aspect is the middle on which the guard stands. Its Suspend is the kill switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// UnaryServerInterceptor puts unary methods under their rules.
func (g *Guard) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		m := g.method(info.FullMethod, shape{}, true)
		if m == nil {
			return handler(ctx, req)
		}
		if m.err != nil {
			g.warnOnce(m, m.problems...)
			return nil, misconfigured(m.err)
		}
		if passed(ctx, g, info.FullMethod, req) {
			return handler(ctx, req)
		}
		c := &unaryCall{
			host: host{guard: g, ctx: ctx, fullMethod: info.FullMethod}, passage: newPassage(ctx, g, info.FullMethod, req),
			method: m, req: req, handler: handler,
		}
		reply, err := c.run(ctx)
		g.warnIfSpoilt(m, info.FullMethod, err)
		return reply, err
	}
}

// StreamServerInterceptor puts streaming methods of all three shapes under their
// rules.
func (g *Guard) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		m := g.method(info.FullMethod, shapeOf(info), srv != nil)
		if m == nil {
			return handler(srv, stream)
		}
		if m.err != nil {
			g.warnOnce(m, m.problems...)
			return misconfigured(m.err)
		}
		ctx := stream.Context()
		if passed(ctx, g, info.FullMethod, nil) {
			return handler(srv, stream)
		}
		c := &streamCall{
			host: host{guard: g, ctx: ctx, fullMethod: info.FullMethod}, passage: newPassage(ctx, g, info.FullMethod, nil),
			method: m, srv: srv, stream: stream, handler: handler,
		}
		err := c.run()
		g.warnIfSpoilt(m, info.FullMethod, err)
		return err
	}
}
