package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Overlay returns the rules that apply to a call of the exact endpoint e when lower
// is declared for it in lower layers, such as the options of its method in a .proto:
// those of the set that name exactly e are laid over them. Where neither declares
// anything for exactly e, the set's wildcards apply, as in [Set.Match]. nil when
// there are no rules, or one that says None. The error is an [*InvalidError] with
// every problem; the rules with it are for finding more of them only.
//
// It is for start-up: what it returns is not remembered.
func (s *Set) Overlay(e Endpoint, lower ...Declared) ([]*Resolved, error) {
	if len(lower) == 0 && !slices.ContainsFunc(s.orEmpty().exact[e], (*Resolved).Partial) {
		return s.alone(e)
	}
	r := s.base().again()
	r.requireEndpoint = true
	rules := r.resolveAll(slices.Concat(lower, s.orEmpty().declared[e]))
	explainNames(r.problems, lower)
	if err := Invalid(r.problems...); err != nil || len(rules) != 1 || !rules[0].None {
		return rules, err
	}
	return nil, nil
}

// alone are the rules of an endpoint without lower layers. What those could have brought was
// left open when the set was made, and is judged here.
func (s *Set) alone(e Endpoint) ([]*Resolved, error) {
	rules := s.Match(e)
	return rules, Invalid(MixedKinds(rules)...)
}

// base is what the set was resolved with.
func (s *Set) base() *resolver {
	if r := s.orEmpty().resolver; r != nil {
		return r
	}
	return newResolver(newConfig(nil))
}

// explainNames says, where a rule has no key, that one of another name has: most
// likely it was meant.
func explainNames(problems []*Problem, lower []Declared) {
	var names []string
	for _, d := range lower {
		if d.Rule.Name != "" {
			names = append(names, fmt.Sprintf("%q", d.Rule.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	for _, p := range problems {
		if errors.Is(p, errKeyMissing) && !slices.Contains(names, fmt.Sprintf("%q", p.Rule)) {
			p.Message += "; or, to change the rule of the .proto or the program, give its name: " + strings.Join(names, " or ")
		}
	}
}
