package grpclock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Option configures a [Guard].
type Option func(*config) error

// ErrorMapper makes the error that a refused caller gets, in place of the one that
// [Status] describes. The retry hint in the trailer is set already. Nil means the
// default: a refusal never becomes a success. What refused wraps is not for clients.
type ErrorMapper func(ctx context.Context, refused *aspect.RefusedError) error

// config is what the options say. The rules are collected as declarations, because
// several places may declare the same rule: code is the lowest layer of them.
type config struct {
	declared        []ruleset.Declared
	resolving       []ruleset.Option
	set             ruleset.Provider
	observers       []aspect.Option
	variables       []variable
	unaryFallbacks  map[string]unaryFallback
	streamFallbacks map[string]streamFallback
	mapper          ErrorMapper
	descriptors     []protodesc.Resolver
	serverFirst     map[string]bool
	showToken       bool
}

// WithRules declares rules in Go. Each needs an Endpoint made with [ruleset.GRPC]:
// a full method, "/pkg.Service/*" or "*". What the options of a method say is laid
// over them. May be given several times. Not together with [WithSet].
func WithRules(rules ...ruleset.Rule) Option {
	return func(c *config) error {
		var errs []error
		for _, r := range rules {
			if t := r.Endpoint.Transport; t == ruleset.TransportHTTP || t == ruleset.TransportFunc {
				errs = append(errs, fmt.Errorf("grpclock: WithRules: the rule of %s is for no gRPC method: write Endpoint: ruleset.GRPC(%q), or remove it",
					r.Endpoint, "/shop.v1.Orders/Pay"))
				continue
			}
			c.declared = append(c.declared, ruleset.Code(r))
		}
		return errors.Join(errs...)
	}
}

// WithSet uses the gRPC rules of a set, laid over the options of the methods: a
// [*ruleset.Set], or a [*ruleset.Live], whose reloads the guard follows. Its rules for
// other transports are left alone. Not together with [WithRules], [WithDefaults] and
// [WithProfile], which belong into the making of the set: see [ruleset.WithRules].
func WithSet(set ruleset.Provider) Option {
	return func(c *config) error {
		if err := ruleset.CheckProvider(set); err != nil {
			return fmt.Errorf("grpclock: WithSet: %w", err)
		}
		if c.set != nil {
			return errors.New("grpclock: WithSet: given twice: make one set of both")
		}
		c.set = set
		return nil
	}
}

// WithDefaults replaces built-in defaults of the rules given to [WithRules] and of
// those in .proto files.
func WithDefaults(r ruleset.Rule) Option {
	return func(c *config) error {
		c.resolving = append(c.resolving, ruleset.WithDefaults(r))
		return nil
	}
}

// WithProfile adds a profile for the rules given to [WithRules] and for those in
// .proto files.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error {
		c.resolving = append(c.resolving, ruleset.WithProfile(name, r))
		return nil
	}
}

// WithObserver adds observers: values that implement one or more of the observer
// interfaces of core/aspect. May be given several times; the order is kept. A value
// that implements none is an error.
func WithObserver(values ...any) Option {
	return func(c *config) error {
		c.observers = append(c.observers, aspect.WithObserver(values...))
		return nil
	}
}

// WithTokenHeader shows clients the fencing token of the lock under which the method
// runs, in the header metadata [HeaderLockToken]: for those that pass it on to a store
// which refuses smaller ones. [ruleset.Fenced] has a token, and so has every other kind that
// one call holds at a time where its rule says Token; of several locks it is that of the last
// one with a token. Of guards inside each other each adds its own, the innermost last. The
// header is there before the method runs, and so also when the lock is lost later.
//
// The token tells when the lock was taken, or how often: do not show it to those who must
// not know how busy a shop is. Off by default.
func WithTokenHeader() Option {
	return func(c *config) error {
		c.showToken = true
		return nil
	}
}

// WithErrorMapper replaces the errors that refused callers get.
func WithErrorMapper(mapper ErrorMapper) Option {
	return func(c *config) error {
		switch {
		case mapper == nil:
			return errors.New("grpclock: WithErrorMapper(nil): leave it out for the default")
		case c.mapper != nil:
			return errors.New("grpclock: WithErrorMapper: given twice: remove one")
		}
		c.mapper = mapper
		return nil
	}
}

// WithDescriptors adds descriptors of services that are not registered globally,
// such as those loaded at run time. They are asked before the global registry, in
// the order given. A *protoregistry.Files is one. The options of a method are those
// of the first descriptor that is found; one with source information gives problems
// their lines. A method that has no descriptor can have rules, but without req, and
// without empty replies.
func WithDescriptors(resolvers ...protodesc.Resolver) Option {
	return func(c *config) error {
		for _, r := range resolvers {
			if r == nil {
				return errors.New("grpclock: WithDescriptors(nil): give a *protoregistry.Files")
			}
		}
		c.descriptors = append(c.descriptors, resolvers...)
		return nil
	}
}

// WithServerFirst names bidirectional methods, as "/pkg.Service/Method", on which
// the server may send before it receives. Their keys must not wait for a message:
// req is then unknown in their rules.
func WithServerFirst(fullMethods ...string) Option {
	return func(c *config) error {
		for _, method := range fullMethods {
			if strings.Count(method, "/") != 2 || !strings.HasPrefix(method, "/") {
				return fmt.Errorf("grpclock: WithServerFirst: %q is no full method: write one such as %q", method, "/shop.v1.Orders/Watch")
			}
			c.serverFirst[method] = true
		}
		return nil
	}
}

// newConfig applies the options and reports every problem of them.
func newConfig(opts []Option) (*config, error) {
	c := &config{
		unaryFallbacks:  map[string]unaryFallback{},
		streamFallbacks: map[string]streamFallback{},
		serverFirst:     map[string]bool{},
	}
	var errs []error
	for _, opt := range opts {
		if opt == nil {
			errs = append(errs, errors.New("grpclock: New: nil Option"))
			continue
		}
		errs = append(errs, opt(c))
	}
	return c, errors.Join(append(errs, c.checkSet(), c.checkVariables())...)
}

func (c *config) checkSet() error {
	if c.set == nil {
		return nil
	}
	var errs []error
	if len(c.declared) > 0 {
		errs = append(errs, errors.New("grpclock: WithRules beside WithSet: give the rules to the set, with ruleset.WithRules"))
	}
	if len(c.resolving) > 0 {
		errs = append(errs, errors.New("grpclock: WithDefaults or WithProfile beside WithSet: give ruleset's options of that name to the making of the set"))
	}
	return errors.Join(errs...)
}

// rules are the rules of the program: a set of its own, or one of those in code.
func (c *config) rules() (ruleset.Provider, error) {
	if c.set != nil {
		return c.set, nil
	}
	set, err := ruleset.BuildSet(c.declared, c.resolving...)
	if err != nil {
		return nil, fmt.Errorf("grpclock: %w", err)
	}
	return set, nil
}
