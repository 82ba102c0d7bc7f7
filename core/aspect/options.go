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
	sources   Sources        // of the rules of wrapped functions
	fallbacks map[string]any // name -> func(context.Context, In) (Out, error)
}

// Apply applies the options of an adapter to its configuration. It gives what is wrong with
// them, of a nil one with the name of who was given it before it.
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

// WithFallback registers a function that [Wrap] runs instead of the wrapped one
// where a rule's strategy is fallback and its Fallback is name. Its types must be
// those of the wrapped function; Wrap checks. Inside it, [OutcomeFrom] tells the
// cause. Adapters of transports have options of their own.
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

// WithProfile adds a profile for rules given to [Registry.Compile] and [Wrap], as
// [ruleset.WithProfile].
func WithProfile(name string, r ruleset.Rule) Option {
	return func(c *config) error { return c.sources.Resolving(ruleset.WithProfile(name, r)) }
}
