package image

import (
	"errors"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Overlay lays the rules of a set over the options of a method, wildcards included where nothing
// names the method. The error is a [*ruleset.InvalidError] with every problem.
func Overlay(set *ruleset.Set, m protorules.Method) ([]*ruleset.Resolved, error) {
	if err := ruleset.Invalid(m.Problems...); err != nil {
		return nil, err
	}
	return set.Overlay(ruleset.GRPC(m.FullMethod), m.Rules...)
}

// All are the rules of a set in their order, where a method has options with those
// under them, and then those of the methods that the set says nothing of.
func (i *Image) All(set *ruleset.Set) ([]*ruleset.Resolved, error) {
	laid := map[ruleset.Endpoint][]*ruleset.Resolved{} // over the options
	var problems []*ruleset.Problem
	var order []*ruleset.Resolved // of them
	for _, m := range i.methods {
		if !HasOptions(m) {
			continue
		}
		rules, err := Overlay(set, m)
		if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
			problems = append(problems, invalid.Problems...)
		}
		if len(rules) > 0 {
			laid[ruleset.GRPC(m.FullMethod)] = rules
			order = append(order, rules...)
		}
	}
	var all []*ruleset.Resolved
	for _, r := range append(set.Rules(), order...) {
		rules, found := laid[r.Endpoint]
		if !found {
			all = append(all, r)
			continue
		}
		laid[r.Endpoint] = nil // once
		all = append(all, rules...)
	}
	return all, ruleset.Invalid(problems...)
}
