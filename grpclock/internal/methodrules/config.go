package methodrules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Config is what the options of a guard say; each method is one, and its error names
// it.
type Config struct {
	ShowToken       bool                                 // in a header
	Values          []func(context.Context) (any, error) // of the registered variables
	Fallbacks       map[string]Fallback                  // for unary methods
	StreamFallbacks map[string]any                       // for streams, in the type of the library

	pkg         string // whose options they are, for errors
	hint        string // for rules that match no method
	unguarded   func(Shape) string
	sources     aspect.Sources
	registered  []keyexpr.Variable
	descriptors []protodesc.Resolver
	serverFirst map[string]bool
}

// errorf makes an error of an option.
func (c *Config) errorf(format string, args ...any) error {
	return fmt.Errorf(c.pkg+": "+format, args...)
}

// prefixed are errors of options.
func (c *Config) prefixed(problems ...error) error {
	for i, err := range problems {
		if err != nil {
			problems[i] = c.errorf("%w", err)
		}
	}
	return errors.Join(problems...)
}

// Rules is WithRules.
func (c *Config) Rules(rules ...ruleset.Rule) error {
	return c.prefixed(c.sources.Rules(ruleset.GRPC("/shop.v1.Orders/Pay"), rules...)...)
}

// Set is WithSet.
func (c *Config) Set(set ruleset.Provider) error { return c.prefixed(c.sources.Set(set)) }

// Resolving is WithProfile.
func (c *Config) Resolving(opt ruleset.Option) error { return c.sources.Resolving(opt) }

// TokenHeader is WithTokenHeader.
func (c *Config) TokenHeader() error {
	c.ShowToken = true
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
