package methodrules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// Mapper makes the error that a refused caller gets; nil for the usual one.
type Mapper func(ctx context.Context, refused *aspect.RefusedError) error

// Config is what the options of a guard say; each method is one, and its error names
// it. The rules are collected as declarations, because several places may declare the
// same rule: code is the lowest layer of them.
type Config struct {
	ShowToken bool // in a header

	pkg             string // whose options they are, for errors
	hint            string // for rules that match no method
	declared        []ruleset.Declared
	resolving       []ruleset.Option
	set             ruleset.Provider
	observers       []aspect.Option
	registered      []protovars.Registered
	values          []func(context.Context) (any, error) // of these
	fallbacks       map[string]Fallback
	streamFallbacks map[string]any // in the type of the library
	mapper          Mapper
	descriptors     []protodesc.Resolver
	serverFirst     map[string]bool
}

// errorf makes an error of an option.
func (c *Config) errorf(format string, args ...any) error {
	return fmt.Errorf(c.pkg+": "+format, args...)
}

// Rules is WithRules.
func (c *Config) Rules(rules ...ruleset.Rule) error {
	var errs []error
	for _, r := range rules {
		if t := r.Endpoint.Transport; t == ruleset.TransportHTTP || t == ruleset.TransportFunc {
			errs = append(errs, c.errorf("WithRules: the rule of %s is for no gRPC method: write Endpoint: ruleset.GRPC(%q), or remove it",
				r.Endpoint, "/shop.v1.Orders/Pay"))
			continue
		}
		c.declared = append(c.declared, ruleset.Code(r))
	}
	return errors.Join(errs...)
}

// Set is WithSet.
func (c *Config) Set(set ruleset.Provider) error {
	if err := ruleset.CheckProvider(set); err != nil {
		return c.errorf("WithSet: %w", err)
	}
	if c.set != nil {
		return c.errorf("WithSet: given twice: make one set of both")
	}
	c.set = set
	return nil
}

// Resolving is WithDefaults and WithProfile.
func (c *Config) Resolving(opt ruleset.Option) error {
	c.resolving = append(c.resolving, opt)
	return nil
}

// Observer is WithObserver.
func (c *Config) Observer(values ...any) error {
	c.observers = append(c.observers, aspect.WithObserver(values...))
	return nil
}

// TokenHeader is WithTokenHeader.
func (c *Config) TokenHeader() error {
	c.ShowToken = true
	return nil
}

// ErrorMapper is WithErrorMapper.
func (c *Config) ErrorMapper(mapper Mapper) error {
	switch {
	case mapper == nil:
		return c.errorf("WithErrorMapper(nil): leave it out for the default")
	case c.mapper != nil:
		return c.errorf("WithErrorMapper: given twice: remove one")
	}
	c.mapper = mapper
	return nil
}

// Descriptors is WithDescriptors.
func (c *Config) Descriptors(resolvers ...protodesc.Resolver) error {
	for _, r := range resolvers {
		if r == nil {
			return c.errorf("WithDescriptors(nil): give a *protoregistry.Files")
		}
	}
	c.descriptors = append(c.descriptors, resolvers...)
	return nil
}

// ServerFirst is WithServerFirst.
func (c *Config) ServerFirst(fullMethods ...string) error {
	for _, method := range fullMethods {
		if strings.Count(method, "/") != 2 || !strings.HasPrefix(method, "/") {
			return c.errorf("WithServerFirst: %q is no full method: write one such as %q", method, "/shop.v1.Orders/Watch")
		}
		c.serverFirst[method] = true
	}
	return nil
}

// check finds what is wrong with the options together.
func (c *Config) check() error {
	var errs []error
	if c.set != nil && len(c.declared) > 0 {
		errs = append(errs, c.errorf("WithRules beside WithSet: give the rules to the set, with ruleset.WithRules"))
	}
	if c.set != nil && len(c.resolving) > 0 {
		errs = append(errs, c.errorf("WithDefaults or WithProfile beside WithSet: give ruleset's options of that name to the making of the set"))
	}
	return errors.Join(append(errs, c.checkVariables())...)
}

// rules are the rules of the program: a set of its own, or one of those in code.
func (c *Config) rules() (ruleset.Provider, error) {
	if c.set != nil {
		return c.set, nil
	}
	set, err := ruleset.BuildSet(c.declared, c.resolving...)
	if err != nil {
		return nil, c.errorf("%w", err)
	}
	return set, nil
}
