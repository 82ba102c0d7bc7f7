package inspect

import (
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// functions judges the rules of functions as far as one can: their arguments are Go
// values of which nothing is known.
func (i *inspector) functions() {
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportFunc) {
		if rules = i.whole(rules, "the program"); len(rules) > 0 {
			i.judge(&site{endpoint: rules[0].Endpoint, rules: rules, fallbacks: fallbacksOf(rules), schema: argument})
		}
	}
}

// argument is the schema of any function. It has no registered variables.
func argument([]string) (*keyexpr.Schema, error) {
	return keyexpr.NewSchema(keyexpr.Variable{Name: keyexpr.ArgumentName, Type: keyexpr.AnyType()})
}
