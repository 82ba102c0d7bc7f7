package grpclock

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Option configures a [Guard].
type Option func(*methodrules.Config) error

// WithRules declares rules in Go. Each needs an Endpoint made with [ruleset.GRPC]:
// a full method, "/pkg.Service/*" or "*". The options of a method override them field by field.
// WithRules may be given several times, but not together with [WithSet].
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Rules(rules...) }
}

// WithSet gives the guard the gRPC rules of a set. They override the options of the methods, field by field. The set is
// a [*ruleset.Set] or a [*ruleset.Live]. The guard follows the reloads of a Live. It ignores rules for other
// transports. WithSet cannot be combined with [WithRules] and [WithProfile]: give [ruleset.WithRules] and
// [ruleset.WithProfile] to the set instead.
func WithSet(set ruleset.Provider) Option {
	return func(c *methodrules.Config) error { return c.Set(set) }
}

// WithProfile adds a profile for the rules of [WithRules] and of .proto files.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Profile(name, r) }
}

// WithVariable registers a variable for keys and conditions, for example the principal
// that authentication puts into the context. fn receives the context of the call and
// runs only for calls whose rules use the variable. T is a string, bool, integer,
// list or struct (fields by their Go names).
//
// If fn returns an error, nil or an empty string, the program is at fault and not the client. The caller then gets INTERNAL,
// and the error on the server names the variable. A common reason is that the guard runs before authentication.
func WithVariable[T any](name string, fn func(ctx context.Context) (T, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddVariable(c, name, fn) }
}

// WithFallback registers a handler for unary methods. fn has the form of a method of a generated server. It runs instead of
// the guarded handler, without a lock, if the strategy of a rule is fallback and its Fallback is name. [aspect.OutcomeFrom]
// returns the cause from its context. Req and Res must be the message types of the method; [Guard.Check] compares them. The
// type proto.Message fits any method.
//
// One name may have both a handler for unary methods and a handler for streams.
func WithFallback[Req, Res proto.Message](name string, fn func(ctx context.Context, req Req) (Res, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddFallback(c, name, fn) }
}

// WithStreamFallback is like [WithFallback], but registers a handler for streaming methods. The handler gets the
// implementation of the server and the stream. It receives all messages from the stream, including a first message that
// the guard has read for the key.
func WithStreamFallback(name string, handler grpc.StreamHandler) Option {
	return func(c *methodrules.Config) error { return c.StreamFallback(name, handler, handler == nil) }
}

// WithTokenHeader makes the guard send clients the fencing token of the lock under which the method runs, in the header
// metadata [failpolicy.TokenHeader]. A client can pass it on to a store that refuses smaller tokens.
//
// Locks of the kind [ruleset.Fenced] have a token. So does every other kind that only one call holds at a
// time, if its rule sets Token. If there are several locks, the header contains the token of the last lock
// that has a token. Nested guards each add their token, the innermost last. The guard adds the header
// before the method runs, so clients get it even if the lock is lost later.
//
// The token reveals when the lock was taken, or how often. Do not show it to clients that must
// not know how busy the service is. Off by default.
func WithTokenHeader() Option {
	return func(c *methodrules.Config) error { return c.TokenHeader() }
}

// WithDescriptors adds descriptors of services that are not registered globally, for example a *protoregistry.Files that was
// loaded at run time. The guard searches them in the given order, and then the global registry. It reads the options of a
// method from the first descriptor that it finds. If that descriptor has source information, problems have line numbers. A
// method without a descriptor can have rules, but these cannot use req, and they cannot answer with empty replies.
func WithDescriptors(resolvers ...protodesc.Resolver) Option {
	return func(c *methodrules.Config) error { return c.Descriptors(resolvers...) }
}

// WithServerFirst names bidirectional methods on which the server may send before it receives, in the form
// "/pkg.Service/Method". The guard must not wait for a message there, so the rules of these methods cannot use req.
func WithServerFirst(fullMethods ...string) Option {
	return func(c *methodrules.Config) error { return c.ServerFirst(fullMethods...) }
}
