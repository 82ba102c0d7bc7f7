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
// a full method, "/pkg.Service/*" or "*". What the options of a method say is laid
// over them. May be given several times. Not together with [WithSet].
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Rules(rules...) }
}

// WithSet uses the gRPC rules of a set, laid over the options of the methods: a
// [*ruleset.Set], or a [*ruleset.Live], whose reloads the guard follows. Its rules for
// other transports are left alone. Not together with [WithRules] and [WithProfile],
// which belong into the making of the set: see [ruleset.WithRules].
func WithSet(set ruleset.Provider) Option {
	return func(c *methodrules.Config) error { return c.Set(set) }
}

// WithProfile adds a profile for the rules given to [WithRules] and for those in
// .proto files.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *methodrules.Config) error { return c.Profile(name, r) }
}

// WithVariable registers a variable for keys and conditions, such as the principal
// that the authentication put into the context. fn gets the caller's context and
// runs only for calls whose rules use the variable. T is a string, bool, integer,
// list or struct (fields by their Go names).
//
// An error, nil or an empty string is the application's mistake, not the client's:
// the caller gets INTERNAL, and the error on the server says which variable was
// not set. Typically the lock was installed before the authentication.
func WithVariable[T any](name string, fn func(ctx context.Context) (T, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddVariable(c, name, fn) }
}

// WithFallback registers a handler for unary methods, of the form of a method of a
// generated server. It runs in place of the handler where a rule's strategy is
// fallback and its Fallback is name; no lock is held then. [aspect.OutcomeFrom] of
// its context tells the cause. The types must be those of the method, which
// [Guard.Check] compares; with proto.Message in their place any method fits.
//
// One name may have a handler for unary methods and one for streams.
func WithFallback[Req, Res proto.Message](name string, fn func(ctx context.Context, req Req) (Res, error)) Option {
	return func(c *methodrules.Config) error { return methodrules.AddFallback(c, name, fn) }
}

// WithStreamFallback registers a handler for streaming methods; otherwise as
// [WithFallback]. It gets the server's implementation and the stream, from which it
// receives all messages, a first one that was needed for the key included.
func WithStreamFallback(name string, handler grpc.StreamHandler) Option {
	return func(c *methodrules.Config) error { return c.StreamFallback(name, handler, handler == nil) }
}

// WithTokenHeader shows clients the fencing token of the lock under which the method
// runs, in the header metadata [failpolicy.TokenHeader]: for those that pass it on to a store
// which refuses smaller ones. [ruleset.Fenced] has a token, and so has every other kind that
// one call holds at a time where its rule says Token; of several locks it is that of the last
// one with a token. Of guards inside each other each adds its own, the innermost last. The
// header is there before the method runs, and so also when the lock is lost later.
//
// The token tells when the lock was taken, or how often: do not show it to those who must
// not know how busy a shop is. Off by default.
func WithTokenHeader() Option {
	return func(c *methodrules.Config) error { return c.TokenHeader() }
}

// WithDescriptors adds descriptors of services that are not registered globally,
// such as those loaded at run time. They are asked before the global registry, in
// the order given. A *protoregistry.Files is one. The options of a method are those
// of the first descriptor that is found; one with source information gives problems
// their lines. A method that has no descriptor can have rules, but without req, and
// without empty replies.
func WithDescriptors(resolvers ...protodesc.Resolver) Option {
	return func(c *methodrules.Config) error { return c.Descriptors(resolvers...) }
}

// WithServerFirst names bidirectional methods, as "/pkg.Service/Method", on which
// the server may send before it receives. Their keys must not wait for a message:
// req is then unknown in their rules.
func WithServerFirst(fullMethods ...string) Option {
	return func(c *methodrules.Config) error { return c.ServerFirst(fullMethods...) }
}
