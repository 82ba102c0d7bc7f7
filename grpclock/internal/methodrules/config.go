package methodrules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/keyexpr"
)

// Config collects the options of a guard. Each of its methods implements one option; its error
// names the option.
type Config struct {
	ShowToken       bool                                 // send the fencing token in a header
	Values          []func(context.Context) (any, error) // return the values of the registered variables
	Fallbacks       map[string]Fallback                  // for unary methods
	StreamFallbacks map[string]any                       // for streams, in the type of the library

	pkg         string // the package of the options, for errors
	hint        string // the advice for rules that match no method
	unguarded   func(Shape) string
	sources     aspect.Sources
	registered  []keyexpr.Variable
	descriptors []protodesc.Resolver
	serverFirst map[string]bool
}

// newConfig returns the configuration of package pkg without options.
func newConfig(pkg string) *Config {
	return &Config{pkg: pkg, Fallbacks: map[string]Fallback{}, StreamFallbacks: map[string]any{}, serverFirst: map[string]bool{}}
}

// errorf returns the error of an option.
func (c *Config) errorf(format string, args ...any) error {
	return fmt.Errorf(c.pkg+": "+format, args...)
}

// joinErrors joins the errors of options.
func (c *Config) joinErrors(errs ...error) error {
	for i, err := range errs {
		if err != nil {
			errs[i] = c.errorf("%w", err)
		}
	}
	return errors.Join(errs...)
}

// Rules implements WithRules.
func (c *Config) Rules(rules ...ruleset.Rule) error {
	return c.joinErrors(c.sources.Rules(ruleset.GRPC("/shop.v1.Orders/Pay"), rules...)...)
}

// Set implements WithSet.
func (c *Config) Set(set ruleset.Provider) error { return c.joinErrors(c.sources.Set(set)) }

// Profile implements WithProfile.
func (c *Config) Profile(name string, r ruleset.Rule) error {
	return c.sources.Resolving(ruleset.WithProfile(name, r))
}

// TokenHeader implements WithTokenHeader.
func (c *Config) TokenHeader() error {
	c.ShowToken = true
	return nil
}

// Descriptors implements WithDescriptors.
func (c *Config) Descriptors(resolvers ...protodesc.Resolver) error {
	for _, r := range resolvers {
		if r == nil {
			return c.errorf("WithDescriptors(nil): give a *protoregistry.Files")
		}
	}
	c.descriptors = append(c.descriptors, resolvers...)
	return nil
}

// ServerFirst implements WithServerFirst.
func (c *Config) ServerFirst(fullMethods ...string) error {
	for _, method := range fullMethods {
		if strings.Count(method, "/") != 2 || !strings.HasPrefix(method, "/") {
			return c.errorf("WithServerFirst: %q is not a full method: write one such as %q", method, "/shop.v1.Orders/Watch")
		}
		c.serverFirst[method] = true
	}
	return nil
}

// AddVariable implements WithVariable.
func AddVariable[T any](c *Config, name string, fn func(ctx context.Context) (T, error)) error {
	if fn == nil {
		return c.errorf("WithVariable(%q): the function is nil", name)
	}
	c.registered = append(c.registered, keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[T]()})
	c.Values = append(c.Values, func(ctx context.Context) (any, error) { return fn(ctx) })
	return nil
}

// checkVariables reports registered variables with an invalid name or type, or with the name of
// a standard variable.
func (c *Config) checkVariables() error {
	if len(c.registered) == 0 {
		return nil
	}
	anyRequest := (*emptypb.Empty)(nil).ProtoReflect().Descriptor()
	if _, err := protovars.New(protovars.Config{Request: anyRequest, Registered: c.registered}); err != nil {
		return c.errorf("WithVariable: %w", err)
	}
	return nil
}

// Fallback is a handler for unary calls. An empty message name fits every method.
type Fallback struct {
	request, reply protoreflect.FullName

	// Run runs the handler. It returns a [*MisconfiguredError] for a request of another type.
	Run func(ctx context.Context, req any) (any, error)
}

// AddFallback implements WithFallback.
func AddFallback[Req, Res proto.Message](c *Config, name string, fn func(ctx context.Context, req Req) (Res, error)) error {
	_, twice := c.Fallbacks[name]
	if err := c.checkFallback("WithFallback", name, fn == nil, twice); err != nil {
		return err
	}
	c.Fallbacks[name] = Fallback{
		request: messageName[Req](),
		reply:   messageName[Res](),
		Run: func(ctx context.Context, req any) (any, error) {
			typed, ok := req.(Req)
			if !ok {
				return nil, &MisconfiguredError{c.errorf("fallback %q takes %T, the call has %T", name, typed, req)}
			}
			reply, err := fn(ctx, typed)
			if err == nil && any(reply) == nil {
				return nil, &MisconfiguredError{c.errorf("fallback %q returned no reply", name)}
			}
			return reply, err
		},
	}
	return nil
}

// StreamFallback implements WithStreamFallback, for a handler in the type of the library.
func (c *Config) StreamFallback(name string, handler any, isNil bool) error {
	err := c.checkFallback("WithStreamFallback", name, isNil, c.StreamFallbacks[name] != nil)
	if err == nil {
		c.StreamFallbacks[name] = handler
	}
	return err
}

func (c *Config) checkFallback(option, name string, missing, twice bool) error {
	switch {
	case name == "":
		return c.errorf("%s: no name: write %s(\"queue\", …)", option, option)
	case missing:
		return c.errorf("%s(%q): the handler is nil", option, name)
	case twice:
		return c.errorf("%s(%q): given twice: remove one", option, name)
	default:
		return nil
	}
}

// fallbackNames returns the names of the fallbacks that can run for methods of a shape.
func (c *Config) fallbackNames(s Shape) []string {
	if s.unary() {
		return slices.Sorted(maps.Keys(c.Fallbacks))
	}
	return slices.Sorted(maps.Keys(c.StreamFallbacks))
}

// messageName returns the name of a generated message type. It returns "" for an interface and for
// dynamic messages, because these Go types do not determine the message.
func messageName[M proto.Message]() protoreflect.FullName {
	var none M
	switch any(none).(type) {
	case nil, *dynamicpb.Message:
		return ""
	default:
		return none.ProtoReflect().Descriptor().FullName()
	}
}
