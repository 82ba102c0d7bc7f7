package methodrules

import (
	"context"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/interlock-go/interlock/grpclock/internal/protovars"
	"github.com/interlock-go/interlock/keyexpr"
)

// AddVariable is WithVariable.
func AddVariable[T any](c *Config, name string, fn func(ctx context.Context) (T, error)) error {
	if fn == nil {
		return c.errorf("WithVariable(%q): the function is nil", name)
	}
	c.registered = append(c.registered, keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[T]()})
	c.Values = append(c.Values, func(ctx context.Context) (any, error) { return fn(ctx) })
	return nil
}

// checkVariables reports bad names and types, and clashes with the standard
// variables.
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
