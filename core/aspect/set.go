package aspect

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// WithSet lays the func: rules of a set over the rules given to [Wrap]; see there.
// Its rules for other transports are left alone. A reload of a [ruleset.Live] set
// changes the functions that were wrapped. Not together with [WithProfile],
// which belongs into the making of the set.
func WithSet(p ruleset.Provider) Option {
	return func(c *config) error {
		if err := c.sources.Set(p); err != nil {
			return fmt.Errorf("aspect: %w", err)
		}
		return nil
	}
}

// function is one function that was wrapped: what a [Registry] knows it by.
type function struct {
	rule  ruleset.Rule
	site  Site
	check func([]*ruleset.Resolved) error // the types of fallbacks
}

// functions are how functions are compiled: there is nothing to serve one but its rules.
func (a *Aspect) functions() Adapter[*function, struct{}] {
	return Adapter[*function, struct{}]{
		Transport: ruleset.TransportFunc,
		Endpoint:  func(f *function) ruleset.Endpoint { return f.rule.Endpoint },
		Declared:  func(f *function) ([]ruleset.Declared, []*ruleset.Problem) { return a.declared(f), nil },
		Compile: func(set *ruleset.Set, f *function, rules []*ruleset.Resolved) (*Point, struct{}, error) {
			if len(rules) == 0 {
				return nil, struct{}{}, ruleset.Invalid(noRule(set, f.rule.Endpoint))
			}
			point, err := a.Prepare(f.site, rules...)
			return point, struct{}{}, errors.Join(f.check(rules), err)
		},
	}
}

// declared is the rule in the program, if it says anything, or no set could say it.
func (a *Aspect) declared(f *function) []ruleset.Declared {
	bare := ruleset.Rule{Endpoint: f.rule.Endpoint, Name: f.rule.Name}
	if a.cfg.sources.set != nil && reflect.DeepEqual(f.rule, bare) {
		return nil
	}
	return []ruleset.Declared{{Rule: f.rule}}
}

// noRule says that a function has no rule, and in which file one may be meant for it.
func noRule(set *ruleset.Set, e ruleset.Endpoint) *ruleset.Problem {
	var names []string
	for _, r := range set.Rules() {
		if r.Endpoint.Transport == ruleset.TransportFunc {
			names = append(names, r.Endpoint.Path)
		}
	}
	text := "neither the program nor the set has a rule: "
	if near := failpolicy.Nearest(e.Path, names); near != "" {
		text += fmt.Sprintf("did you mean %q? Else ", near)
	}
	p := &ruleset.Problem{Endpoint: e, Message: text + "add one for func: " + e.Path + "; disabled: true lets it run unlocked"}
	if file := set.File(); file != "" {
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	return p
}

// Check reports what is wrong with the functions that were wrapped and the func: rules
// of the set of [WithSet]: above all rules that no function was wrapped for, as severe as
// the set says. Call it when all functions are wrapped. From then on a reload is judged
// likewise.
func (a *Aspect) Check() error { return a.Conclude(a.registry.Check()) }
