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

// Wrap puts a rule around a function. Keys and conditions read the argument as `in`, with Go's field names:
// "order:#{in.OrderID}". The key of a time.Time is its instant in UTC, whatever its zone; package keyexpr documents the
// text of other types. The rule's Name is the label in metrics. Its default is the Endpoint, or without one the name of
// the function.
//
// With [WithSet], the rules that the set has for the Endpoint are laid over the given rule, and a reload changes them. A
// rule with nothing but an Endpoint or a Name leaves everything to the set, which then must have a rule for it.
//
// Call Wrap once, at start-up: it compiles the rule and keeps it for the lifetime of a.
//
// The returned function has the semantics of [Point.Run] and is safe for concurrent use. If the call is refused or its
// lock is lost, it returns a [*RefusedError], with the result of the function if there is one. Strategies skip and
// null_response return the zero value and nil, like a function that finds nothing to do; [WithOutcome] distinguishes them.
// A function that returns no error although it has not done its work calls [CancelDebounce] if its rule has a debounce.
func Wrap[In, Out any](a *Aspect, rule ruleset.Rule, fn func(context.Context, In) (Out, error)) (func(context.Context, In) (Out, error), error) {
	if a == nil || fn == nil {
		return nil, errors.New("aspect: Wrap: the Aspect or the function is nil")
	}
	if rule.Endpoint.IsZero() {
		rule.Endpoint = ruleset.Func(functionName(rule.Name, fn))
	} else if rule.Endpoint.Transport != ruleset.TransportFunc {
		return nil, fmt.Errorf("aspect: Wrap: the rule of %s is not for a function: write Endpoint: ruleset.Func(%q), or remove it", rule.Endpoint, functionName(rule.Name, fn))
	}
	schema, err := keyexpr.Argument(reflect.TypeFor[In]())
	if err != nil {
		return nil, fmt.Errorf("aspect: Wrap: rule of %s: %w", rule.Endpoint, err)
	}
	fallbacks, wrong := fallbacksOf[In, Out](a.cfg.fallbacks)
	f := &function{
		rule:  rule,
		site:  Site{Endpoint: rule.Endpoint, Schema: schema, Fallbacks: slices.Collect(maps.Keys(a.cfg.fallbacks))},
		check: wrong.check,
	}
	if err := a.functions.begin(f); err != nil {
		return nil, err
	}
	return func(ctx context.Context, in In) (Out, error) {
		c := functionCall[In, Out]{in: in, fn: fn, fallbacks: fallbacks}
		record, recorded := ctx.Value(recordKey{}).(*Outcome)
		if recorded {
			ctx = context.WithValue(ctx, recordKey{}, nil)
		}
		var outcome Outcome
		if e := a.functions.table.At(f); e.Err != nil { // a reload broke the rules
			outcome = broken(e.Endpoint, e.Err)
		} else {
			outcome = e.Point.Run(ctx, &c)
		}
		if recorded {
			*record = outcome
		}
		return c.out, outcome.Result()
	}, nil
}

// wrongFallbacks maps each fallback whose types differ from the types of a function to an error. The error names the
// type to register.
type wrongFallbacks map[string]error

// fallbacksOf returns the registered fallbacks that have the types of a function, and errors for the others.
func fallbacksOf[In, Out any](registered map[string]any) (map[string]func(context.Context, In) (Out, error), wrongFallbacks) {
	found, wrong := map[string]func(context.Context, In) (Out, error){}, wrongFallbacks{}
	for name, f := range registered {
		if typed, ok := f.(func(context.Context, In) (Out, error)); ok {
			found[name] = typed
		} else {
			wrong[name] = fmt.Errorf("fallback %q is a %T: register a %T for this function", name, f, typed)
		}
	}
	return found, wrong
}

// check returns the error of the first wrong fallback that rules name, nil if they name none.
func (w wrongFallbacks) check(rules []*ruleset.Resolved) error {
	for _, r := range rules {
		if err := w[r.Fallback]; err != nil {
			return ruleset.Invalid(r.Problem("fallback", err.Error()))
		}
	}
	return nil
}

// functionName returns the name of the rule, or else the name of the function without its path.
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

// Value implements [keyexpr.Env]. The only variable is the argument.
func (c *functionCall[In, Out]) Value(int) (any, error) { return c.in, nil }

// Items implements [keyexpr.Env]. No variable is keyed.
func (c *functionCall[In, Out]) Items(int, string) ([]string, error) { return nil, nil }
