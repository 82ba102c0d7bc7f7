package connectlock

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Option configures a [Guard]. Each works like the option of the same name in package grpclock.
type Option func(*methodrules.Config) error

// WithRules declares rules in Go. Each needs an Endpoint made with [ruleset.GRPC]: a
// procedure, "/pkg.Service/*" or "*". The options of a method override them field by field.
// WithRules may be given several times, but not together with [WithSet].
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Rules(rules...) }
}

// WithSet uses the gRPC rules of a set. They override the options of the methods field by field. The set
// is a [*ruleset.Set], or a [*ruleset.Live], whose reloads the guard follows. WithSet cannot be
// combined with [WithRules] and [WithProfile]: give [ruleset.WithRules] and [ruleset.WithProfile] to the set
// instead.
func WithSet(set ruleset.Provider) Option {
	return func(c *methodrules.Config) error { return c.Set(set) }
}

// WithProfile adds a profile for rules in Go and in .proto files.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Profile(name, r) }
}

// WithVariable registers a variable for keys and conditions, for example the principal that authentication
// puts into the context. fn receives the context of the call and runs only for calls whose rules use the
// variable. T is a string, bool, integer, list or struct. If fn returns an error, nil or an empty string, the
// application is at fault, and the caller gets CodeInternal.
func WithVariable[T any](name string, fn func(ctx context.Context) (T, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddVariable(c, name, fn) }
}

// WithFallback registers a handler for unary procedures. fn takes and returns messages, so that one function
// fits a gRPC server and a Connect handler. It runs instead of the guarded handler, without a lock, if the
// strategy of a rule is fallback and its Fallback is name. From its context, [aspect.OutcomeFrom] returns the
// cause and [connect.CallInfoForHandlerContext] the headers. Req and Res must be the message types of the
// method; [Guard.Check] compares them. The type proto.Message fits any method.
func WithFallback[Req, Res proto.Message](name string, fn func(ctx context.Context, req Req) (Res, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddFallback(c, name, fn) }
}

// WithStreamFallback registers a handler for streams. Otherwise it works like [WithFallback]. The handler
// receives all messages, including a first message that the guard read for the key.
func WithStreamFallback(name string, handler connect.StreamingHandlerFunc) Option {
	return func(c *methodrules.Config) error { return c.StreamFallback(name, handler, handler == nil) }
}

// WithTokenHeader sends clients the fencing token of the lock that the procedure runs with, in
// [failpolicy.TokenHeader]. The token reveals how often the lock was taken. Off by default.
func WithTokenHeader() Option {
	return func(c *methodrules.Config) error { return c.TokenHeader() }
}

// WithDescriptors adds descriptors of services that are not registered globally, for example a
// *protoregistry.Files. The guard searches them before the global registry. A procedure without a descriptor
// can have rules, but these cannot use req, and they cannot answer with empty replies.
func WithDescriptors(resolvers ...protodesc.Resolver) Option {
	return func(c *methodrules.Config) error { return c.Descriptors(resolvers...) }
}

// WithServerFirst names bidirectional procedures on which the server may send before it receives. The guard
// must not wait for a message there, so the rules of these procedures cannot use req.
func WithServerFirst(procedures ...string) Option {
	return func(c *methodrules.Config) error { return c.ServerFirst(procedures...) }
}
