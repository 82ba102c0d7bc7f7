package aspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Wrap puts a rule around a function. Keys and conditions see the argument as
// `in`, with Go's field names: "order:#{in.OrderID}". The rule's Name is the label
// in metrics; default: its Endpoint, then the function's own name.
//
// The returned function has the semantics of [Point.Run] and is safe for
// concurrent use: refused or lost it returns a [*RefusedError], with the
// function's result if there is one; skipped or null it returns the zero value
// and nil.
func Wrap[In, Out any](a *Aspect, rule ruleset.Rule, fn func(context.Context, In) (Out, error)) (func(context.Context, In) (Out, error), error) {
	if a == nil || fn == nil {
		return nil, errors.New("aspect: Wrap: the Aspect or the function is nil")
	}
	if rule.Endpoint.IsZero() {
		rule.Endpoint = ruleset.Func(functionName(rule.Name, fn))
	}
	fallback, wrongType := fallbackOf[In, Out](a, rule.Fallback)
	schema, err := keyexpr.Argument(reflect.TypeFor[In]())
	if err := errors.Join(wrongType, err); err != nil {
		return nil, fmt.Errorf("aspect: Wrap: rule of %s: %w", rule.Endpoint, err)
	}
	site := Site{Endpoint: rule.Endpoint, Schema: schema, Fallbacks: slices.Collect(maps.Keys(a.cfg.fallbacks))}
	point, err := a.Compile(site, rule)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, in In) (Out, error) {
		c := functionCall[In, Out]{in: in, fn: fn, fallback: fallback}
		outcome := point.Run(ctx, &c)
		return c.out, outcome.Result()
	}, nil
}

// fallbackOf finds a registered fallback and checks its type.
func fallbackOf[In, Out any](a *Aspect, name string) (func(context.Context, In) (Out, error), error) {
	registered := a.cfg.fallbacks[name]
	if registered == nil {
		return nil, nil //nolint:nilnil // none; Compile reports it where it is needed
	}
	fallback, ok := registered.(func(context.Context, In) (Out, error))
	if !ok {
		return nil, fmt.Errorf("fallback %q is a %T: register a %T for this function", name, registered, fallback)
	}
	return fallback, nil
}

// functionName is the name of the rule, or the function's own without its path.
func functionName(name string, fn any) string {
	if name != "" {
		return name
	}
	full := runtime.FuncForPC(reflect.ValueOf(fn).Pointer()).Name()
	return strings.TrimSuffix(full[strings.LastIndexByte(full, '/')+1:], "-fm")
}

// functionCall is one call of a wrapped function.
type functionCall[In, Out any] struct {
	in           In
	out          Out
	fn, fallback func(context.Context, In) (Out, error)
}

// Env implements [Call].
func (c *functionCall[In, Out]) Env(context.Context) keyexpr.Env { return c }

// Handle implements [Call].
func (c *functionCall[In, Out]) Handle(ctx context.Context, _ Grant) (err error) {
	c.out, err = c.fn(ctx, c.in)
	return err
}

// Fallback implements [Call].
func (c *functionCall[In, Out]) Fallback(ctx context.Context, _ string) (err error) {
	c.out, err = c.fallback(ctx, c.in)
	return err
}

// Value implements [keyexpr.Env]: the one variable is the argument.
func (c *functionCall[In, Out]) Value(int) (any, error) { return c.in, nil }

// Item implements [keyexpr.Env]: there is no keyed variable.
func (c *functionCall[In, Out]) Item(int, string, int) (string, int, error) { return "", 0, nil }
