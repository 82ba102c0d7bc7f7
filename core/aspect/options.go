package aspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Option configures an [Aspect].
type Option func(*config) error

type config struct {
	sources   Sources        // where the rules of wrapped functions come from
	fallbacks map[string]any // name -> func(context.Context, In) (Out, error)
}

// Apply applies the options of an adapter to its configuration and returns their problems. A nil option is also a
// problem; its message begins with name.
func Apply[C any, O ~func(*C) error](name string, c *C, opts []O) (problems []error) {
	for _, opt := range opts {
		if opt == nil {
			problems = append(problems, errors.New(name+"nil Option"))
			continue
		}
		problems = append(problems, opt(c))
	}
	return problems
}

// WithSet lays the func: rules of a set over the rules given to [Wrap]; see there. It ignores rules for other
// transports. A reload of a [ruleset.Live] changes the rules of the wrapped functions. WithSet excludes
// [WithProfile]: give profiles to the set instead.
func WithSet(p ruleset.Provider) Option {
	return func(c *config) error {
		if err := c.sources.Set(p); err != nil {
			return fmt.Errorf("aspect: %w", err)
		}
		return nil
	}
}

// WithFallback registers a function that [Wrap] runs instead of the wrapped function if the strategy of a rule is
// fallback and its Fallback is name. fn must have the types of the wrapped function; Wrap checks that. In fn,
// [OutcomeFrom] returns the cause. Adapters of transports have separate options for fallbacks.
func WithFallback[In, Out any](name string, fn func(context.Context, In) (Out, error)) Option {
	return func(c *config) error {
		switch {
		case name == "":
			return errors.New(`aspect: WithFallback: no name: write WithFallback("queue", …)`)
		case fn == nil:
			return fmt.Errorf("aspect: WithFallback(%q): the function is nil", name)
		case c.fallbacks[name] != nil:
			return fmt.Errorf("aspect: WithFallback(%q): given twice: remove one", name)
		}
		if c.fallbacks == nil {
			c.fallbacks = make(map[string]any)
		}
		c.fallbacks[name] = fn
		return nil
	}
}

// WithProfile adds a profile for rules given to [Registry.Compile] and [Wrap], as [ruleset.WithProfile] does for a set.
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error { return c.sources.Resolving(ruleset.WithProfile(name, r)) }
}
