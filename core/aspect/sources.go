package aspect

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Sources holds the rules from the options of an adapter: one set, or rules in Go with separate profiles. The zero
// value holds no rules.
type Sources struct {
	set       ruleset.Provider
	declared  []ruleset.Declared
	resolving []ruleset.Option
}

// Set implements the option WithSet.
func (s *Sources) Set(p ruleset.Provider) error {
	if err := ruleset.CheckProvider(p); err != nil {
		return fmt.Errorf("WithSet: %w", err)
	}
	if s.set != nil {
		return errors.New("WithSet: given twice: make one set of both")
	}
	s.set = p
	return nil
}

// Rules implements the option WithRules for rules of the example's transport, which is HTTP or gRPC. It reports rules
// for other transports, because they would have no effect.
func (s *Sources) Rules(example ruleset.Endpoint, rules ...ruleset.Rule) (problems []error) {
	what, write := "an HTTP route", "ruleset.HTTP"
	if example.Transport == ruleset.TransportGRPC {
		what, write = "a gRPC method", "ruleset.GRPC"
	}
	for _, r := range rules {
		if r.Endpoint.IsZero() || r.Endpoint.Transport == example.Transport {
			s.declared = append(s.declared, ruleset.Declared{Rule: r})
			continue
		}
		problems = append(problems, fmt.Errorf("WithRules: the rule of %s is not for %s: write Endpoint: %s(%q), or remove it", r.Endpoint, what, write, example.Label()))
	}
	return problems
}

// Resolving implements the option WithProfile.
func (s *Sources) Resolving(opt ruleset.Option) error {
	s.resolving = append(s.resolving, opt)
	return nil
}

// IsEmpty reports whether there are no rules: neither a set nor rules in Go.
func (s *Sources) IsEmpty() bool { return s.set == nil && len(s.declared) == 0 }

// Check reports options that exclude each other.
func (s *Sources) Check() (problems []error) {
	if s.set != nil && len(s.declared) > 0 {
		problems = append(problems, errors.New("WithRules together with WithSet: give ruleset.WithRules to the set instead"))
	}
	if s.set != nil && len(s.resolving) > 0 {
		problems = append(problems, errors.New("WithProfile together with WithSet: give ruleset.WithProfile to the set instead"))
	}
	return problems
}

// Provider returns the set, or a set of the rules in Go.
func (s *Sources) Provider() (ruleset.Provider, error) {
	if s.set != nil {
		return s.set, nil
	}
	return ruleset.BuildSet(s.declared, s.resolving...)
}
