// Package overlay lays rule files over the options of .proto files.
package overlay

import (
	"errors"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// At are the rules of a method, wildcards of the set included where nothing names
// the method. The error is a [*ruleset.InvalidError] with every problem.
func At(set *ruleset.Set, m protorules.Method) ([]*ruleset.Resolved, error) {
	if err := ruleset.Invalid(m.Problems...); err != nil {
		return nil, err
	}
	return set.Overlay(ruleset.GRPC(m.FullMethod), m.Rules...)
}

// All are the rules of a set in their order, where a method has options with those
// under them, and then those of the methods that the set says nothing of.
func All(set *ruleset.Set, methods []protorules.Method) ([]*ruleset.Resolved, error) {
	laid, problems := laidOver(set, methods)
	if err := ruleset.Invalid(problems...); err != nil {
		return nil, err
	}
	var rules []*ruleset.Resolved
	shown := map[ruleset.Endpoint]bool{}
	for _, r := range set.Rules() {
		over, found := laid[r.Endpoint]
		switch {
		case !found:
			rules = append(rules, r)
		case !shown[r.Endpoint]:
			rules = append(rules, over...)
			shown[r.Endpoint] = true
		}
	}
	for _, m := range methods {
		if e := ruleset.GRPC(m.FullMethod); !shown[e] {
			rules = append(rules, laid[e]...)
		}
	}
	return rules, nil
}

// laidOver are the rules of the methods that have options and take a lock.
func laidOver(set *ruleset.Set, methods []protorules.Method) (map[ruleset.Endpoint][]*ruleset.Resolved, []*ruleset.Problem) {
	laid := map[ruleset.Endpoint][]*ruleset.Resolved{}
	var problems []*ruleset.Problem
	for _, m := range methods {
		if len(m.Rules) == 0 && len(m.Problems) == 0 {
			continue
		}
		rules, err := At(set, m)
		if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
			problems = append(problems, invalid.Problems...)
		}
		if len(rules) > 0 {
			laid[ruleset.GRPC(m.FullMethod)] = rules
		}
	}
	return laid, problems
}
