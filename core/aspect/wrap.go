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
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Wrap puts a rule around a function. Keys and conditions see the argument as
// `in`, with Go's field names: "order:#{in.OrderID}". The rule's Name is the label
// in metrics; default: its Endpoint, then the function's own name.
//
// With [WithSet] the rules that the set has for the Endpoint are laid over the one
// given, and a reload changes them. A rule with nothing but an Endpoint or a Name
// leaves all to the set, which then must have a rule there.
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
	schema, err := keyexpr.Argument(reflect.TypeFor[In]())
	if err != nil {
		return nil, fmt.Errorf("aspect: Wrap: rule of %s: %w", rule.Endpoint, err)
	}
	site := Site{Endpoint: rule.Endpoint, Schema: schema, Fallbacks: slices.Collect(maps.Keys(a.cfg.fallbacks))}
	w := &wrapped[In, Out]{aspect: a, site: site, rule: rule, fn: fn}
	if err := a.place(rule.Endpoint, w.prepare); err != nil {
		return nil, err
	}
	return w.call, nil
}

// wrapped is one function with its rules, which a reload replaces.
type wrapped[In, Out any] struct {
	aspect  *Aspect
	site    Site
	rule    ruleset.Rule
	fn      func(context.Context, In) (Out, error)
	inForce atomic.Pointer[wrapping[In, Out]]
}

// wrapping is the rules of a function, compiled.
type wrapping[In, Out any] struct {
	point     *Point
	fallbacks map[string]func(context.Context, In) (Out, error)
}

func (w *wrapped[In, Out]) call(ctx context.Context, in In) (Out, error) {
	now := w.inForce.Load()
	c := functionCall[In, Out]{in: in, fn: w.fn, fallbacks: now.fallbacks}
	outcome := now.point.Run(ctx, &c)
	return c.out, outcome.Result()
}

// prepare compiles the rules of the function under a set; see [ruleset.Prepare].
func (w *wrapped[In, Out]) prepare(set *ruleset.Set) (commit func(), err error) {
	rules, err := w.aspect.overlay(set, w.rule)
	if err != nil {
		return nil, err
	}
	fallbacks, wrongType := fallbacksOf[In, Out](w.aspect, rules)
	if wrongType != nil {
		return nil, fmt.Errorf("aspect: Wrap: rule of %s: %w", w.rule.Endpoint, wrongType)
	}
	point, err := w.aspect.Prepare(w.site, rules...)
	if err != nil {
		return nil, err
	}
	if err := rekeyed(w.point(), set, rules); err != nil {
		return nil, err
	}
	return func() {
		if old := w.inForce.Swap(&wrapping[In, Out]{point, fallbacks}); old != nil {
			old.point.Retract(point)
		}
		point.Announce()
	}, nil
}

// point is the rules in force, nil before the first.
func (w *wrapped[In, Out]) point() *Point {
	if now := w.inForce.Load(); now != nil {
		return now.point
	}
	return nil
}

// fallbacksOf finds the registered fallbacks of rules and checks their types.
func fallbacksOf[In, Out any](a *Aspect, rules []*ruleset.Resolved) (map[string]func(context.Context, In) (Out, error), error) {
	found := make(map[string]func(context.Context, In) (Out, error))
	for _, r := range rules {
		registered := a.cfg.fallbacks[r.Fallback]
		if registered == nil {
			continue // Prepare reports it where it is needed
		}
		fallback, ok := registered.(func(context.Context, In) (Out, error))
		if !ok {
			return nil, fmt.Errorf("fallback %q is a %T: register a %T for this function", r.Fallback, registered, fallback)
		}
		found[r.Fallback] = fallback
	}
	return found, nil
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
	in        In
	out       Out
	fn        func(context.Context, In) (Out, error)
	fallbacks map[string]func(context.Context, In) (Out, error)
}

// Env implements [Call].
func (c *functionCall[In, Out]) Env(context.Context) keyexpr.Env { return c }

// Handle implements [Call].
func (c *functionCall[In, Out]) Handle(ctx context.Context, _ Grant) (err error) {
	c.out, err = c.fn(ctx, c.in)
	return err
}

// Fallback implements [Call].
func (c *functionCall[In, Out]) Fallback(ctx context.Context, name string) (err error) {
	c.out, err = c.fallbacks[name](ctx, c.in)
	return err
}

// Value implements [keyexpr.Env]: the one variable is the argument.
func (c *functionCall[In, Out]) Value(int) (any, error) { return c.in, nil }

// Item implements [keyexpr.Env]: there is no keyed variable.
func (c *functionCall[In, Out]) Item(int, string, int) (string, int, error) { return "", 0, nil }
