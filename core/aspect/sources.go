package aspect

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Sources are where the rules of an adapter are from, as its options say: one set, or rules
// in Go with defaults and profiles of their own. The zero value has no rules.
type Sources struct {
	set       ruleset.Provider
	declared  []ruleset.Declared
	resolving []ruleset.Option
}

// Set is option WithSet.
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

// Rules is option WithRules, for rules of HTTP or of gRPC as the example is: others would
// do nothing.
func (s *Sources) Rules(example ruleset.Endpoint, rules ...ruleset.Rule) (problems []error) {
	what, write := "HTTP route", "ruleset.HTTP"
	if example.Transport == ruleset.TransportGRPC {
		what, write = "gRPC method", "ruleset.GRPC"
	}
	for _, r := range rules {
		if r.Endpoint.IsZero() || r.Endpoint.Transport == example.Transport {
			s.declared = append(s.declared, ruleset.Declared{Rule: r})
			continue
		}
		problems = append(problems, fmt.Errorf("WithRules: the rule of %s is for no %s: write Endpoint: %s(%q), or remove it", r.Endpoint, what, write, example.Label()))
	}
	return problems
}

// Resolving is option WithProfile.
func (s *Sources) Resolving(opt ruleset.Option) error {
	s.resolving = append(s.resolving, opt)
	return nil
}

// Check finds what is wrong with the options together.
func (s *Sources) Check() (problems []error) {
	if s.set != nil && len(s.declared) > 0 {
		problems = append(problems, errors.New("WithRules beside WithSet: give the rules to the set, with ruleset.WithRules"))
	}
	if s.set != nil && len(s.resolving) > 0 {
		problems = append(problems, errors.New("WithProfile beside WithSet: give ruleset's option of that name to the making of the set"))
	}
	return problems
}

// Provider is the set, or one of the rules in Go.
func (s *Sources) Provider() (ruleset.Provider, error) {
	if s.set != nil {
		return s.set, nil
	}
	return ruleset.BuildSet(s.declared, s.resolving...)
}
