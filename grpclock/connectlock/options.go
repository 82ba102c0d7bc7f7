package connectlock

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Option configures a [Guard]. Each is as the one of that name in package grpclock.
type Option func(*methodrules.Config) error

// WithRules declares rules in Go. Each needs an Endpoint made with [ruleset.GRPC]: a
// procedure, "/pkg.Service/*" or "*". What the options of a method say is laid over
// them. May be given several times. Not together with [WithSet].
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Rules(rules...) }
}

// WithSet uses the gRPC rules of a set, laid over the options of the methods: a
// [*ruleset.Set], or a [*ruleset.Live], whose reloads the guard follows. Not together
// with [WithRules] and [WithProfile], which belong into its making.
func WithSet(set ruleset.Provider) Option {
	return func(c *methodrules.Config) error { return c.Set(set) }
}

// WithProfile adds a profile for rules in Go and in .proto files.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Profile(name, r) }
}

// WithVariable registers a variable for keys and conditions, such as the principal
// that the authentication put into the context. fn gets the caller's context and runs
// only for calls whose rules use it. T is a string, bool, integer, list or struct. An
// error, nil or an empty string is the application's mistake: CodeInternal.
func WithVariable[T any](name string, fn func(ctx context.Context) (T, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddVariable(c, name, fn) }
}

// WithFallback registers a handler for unary procedures, on messages: one function fits
// a gRPC server and a Connect handler. It runs in place of the handler where a rule's
// strategy is fallback and its Fallback is name; no lock is held then.
// [aspect.OutcomeFrom] of its context tells the cause, [connect.CallInfoForHandlerContext]
// has the headers. The types must be those of the method, which [Guard.Check] compares;
// with proto.Message in their place any method fits.
func WithFallback[Req, Res proto.Message](name string, fn func(ctx context.Context, req Req) (Res, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddFallback(c, name, fn) }
}

// WithStreamFallback registers a handler for streams; otherwise as [WithFallback]. It
// receives all messages, a first one that was needed for the key included.
func WithStreamFallback(name string, handler connect.StreamingHandlerFunc) Option {
	return func(c *methodrules.Config) error { return c.StreamFallback(name, handler, handler == nil) }
}

// WithTokenHeader shows clients the fencing token of the lock under which the procedure
// runs, in [failpolicy.TokenHeader]. It tells how often the lock was taken. Off by default.
func WithTokenHeader() Option {
	return func(c *methodrules.Config) error { return c.TokenHeader() }
}

// WithDescriptors adds descriptors of services that are not registered globally. They
// are asked before the global registry. A *protoregistry.Files is one. A procedure
// without a descriptor can have rules, but without req, and without empty replies.
func WithDescriptors(resolvers ...protodesc.Resolver) Option {
	return func(c *methodrules.Config) error { return c.Descriptors(resolvers...) }
}

// WithServerFirst names bidirectional procedures on which the server may send before it
// receives. Their keys must not wait for a message: req is then unknown in their rules.
func WithServerFirst(procedures ...string) Option {
	return func(c *methodrules.Config) error { return c.ServerFirst(procedures...) }
}
