package aspect

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// function is one wrapped function. Its address is the key of the function in a [Registry].
type function struct {
	rule  ruleset.Rule
	site  Site
	check func([]*ruleset.Resolved) error // checks the types of fallbacks
}

// functions holds the wrapped functions of an [Aspect] and their rules.
type functions struct {
	registry *Registry[*function, struct{}]
	table    *Table[*function, struct{}]
}

// newFunctions returns an empty functions. rules are the rules of sources.
func newFunctions(env *environment, sources *Sources, rules ruleset.Provider) (functions, error) {
	declared := func(f *function) []ruleset.Declared {
		bare := ruleset.Rule{Endpoint: f.rule.Endpoint, Name: f.rule.Name}
		if sources.set != nil && reflect.DeepEqual(f.rule, bare) {
			return nil // the program leaves everything to the set
		}
		return []ruleset.Declared{{Rule: f.rule}}
	}
	registry := newRegistry(env, &Adapter[*function, struct{}]{
		Transport: ruleset.TransportFunc,
		Endpoint:  func(f *function) ruleset.Endpoint { return f.rule.Endpoint },
		Declared:  func(f *function) ([]ruleset.Declared, []*ruleset.Problem) { return declared(f), nil },
		Compile: func(set *ruleset.Set, f *function, rules []*ruleset.Resolved) (*Point, struct{}, error) {
			if len(rules) == 0 {
				return nil, struct{}{}, ruleset.Invalid(missingRule(set, f.rule.Endpoint))
			}
			point, err := env.prepare(f.site, rules)
			return point, struct{}{}, errors.Join(f.check(rules), err)
		},
	})
	table, err := registry.Table(rules)
	return functions{registry, table}, err
}

// begin puts the rules of a function into force. If they do not compile, it returns their problems.
func (f *functions) begin(fn *function) error { return f.registry.begin(f.table, fn) }

// missingRule returns the problem of a function without a rule. It suggests a rule of the file with a similar name.
func missingRule(set *ruleset.Set, e ruleset.Endpoint) *ruleset.Problem {
	var names []string
	for _, r := range set.Rules() {
		if r.Endpoint.Transport == ruleset.TransportFunc {
			names = append(names, r.Endpoint.Path)
		}
	}
	text := "neither the program nor the set has a rule: "
	if near := failpolicy.Nearest(e.Path, names); near != "" {
		text += fmt.Sprintf("did you mean %q? Otherwise ", near)
	}
	p := &ruleset.Problem{Endpoint: e, Message: text + "add one for func: " + e.Path + "; disabled: true lets it run unlocked"}
	if file := set.File(); file != "" {
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	return p
}
