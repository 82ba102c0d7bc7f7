package grpclock

import (
	"context"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/interlock-go/interlock/keyexpr/protovars"
)

// variable is one registered variable.
type variable struct {
	name  string
	typ   reflect.Type
	value func(context.Context) (any, error)
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
	return func(c *config) error {
		if fn == nil {
			return fmt.Errorf("grpclock: WithVariable(%q): the function is nil", name)
		}
		c.variables = append(c.variables, variable{
			name:  name,
			typ:   reflect.TypeFor[T](),
			value: func(ctx context.Context) (any, error) { return fn(ctx) },
		})
		return nil
	}
}

// registered declares the variables.
func (c *config) registered() []protovars.Registered {
	list := make([]protovars.Registered, len(c.variables))
	for i, v := range c.variables {
		list[i] = protovars.Registered{Name: v.name, Type: v.typ}
	}
	return list
}

// checkVariables reports bad names and types, and clashes with the standard
// variables.
func (c *config) checkVariables() error {
	if len(c.variables) == 0 {
		return nil
	}
	anyRequest := (*emptypb.Empty)(nil).ProtoReflect().Descriptor()
	if _, err := protovars.New(protovars.Config{Request: anyRequest, Registered: c.registered()}); err != nil {
		return fmt.Errorf("grpclock: WithVariable: %w", err)
	}
	return nil
}
