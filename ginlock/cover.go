package ginlock

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// all checks the rules of Handle, and those of all sets for all routes.
func (k *check) all() {
	for i, set := range k.sets {
		k.sets[i] = set.declared.complete(k.known.routes)
	}
	for i, set := range k.sets {
		k.rules(set)
		k.clashes(set, k.sets[:i])
	}
	for _, e := range k.handled {
		k.add(e.broken)
	}
	k.uncovered()
	k.mixedKinds()
}

// reload checks a set that is to replace the one that [Guard.Middleware] has now.
func (k *check) reload(next *generation) {
	others := slices.DeleteFunc(slices.Clone(k.sets), func(g *generation) bool { return g.declared == next.declared })
	k.sets = append(slices.Clone(others), next)
	k.rules(next)
	k.clashes(next, others)
	k.uncovered()
	k.mixedKinds()
}

// rules finds what does not fit a route, and what matches none.
func (k *check) rules(set *generation) {
	matched := make(map[*ruleset.Resolved]bool)
	for _, r := range k.known.routes {
		for _, rule := range set.set.Lookup(r.Endpoint) {
			matched[rule] = true
		}
		if e := set.table.at(r.Endpoint); e != nil {
			k.add(e.broken)
		}
	}
	for _, rule := range set.set.Rules() {
		if rule.Endpoint.Transport == ruleset.TransportHTTP && !matched[rule] {
			k.report(set.set.Settings().Unmatched, func() *ruleset.Problem {
				return rule.Problem("endpoint", k.unmatched(rule.Endpoint))
			})
		}
	}
}

// report notes a problem as an error or a warning, once all routes are known.
func (k *check) report(severity ruleset.Severity, problem func() *ruleset.Problem) {
	switch {
	case !k.known.checked || severity == ruleset.SeverityIgnore:
	case severity == ruleset.SeverityWarn:
		k.warnings = append(k.warnings, problem())
	default:
		k.add(problem())
	}
}

// unmatched says that no route has the endpoint, and which one may be meant.
func (k *check) unmatched(e ruleset.Endpoint) string {
	if slices.Contains(k.labels, canonical(e).Label()) && canonical(e) != e {
		return fmt.Sprintf("matches no route: write %q, without the backslash", canonical(e).Label())
	}
	if near := failpolicy.Nearest(e.Label(), k.labels); near != "" {
		return fmt.Sprintf("matches no route: did you mean %q?", near)
	}
	return "matches no route: write a method and the path as registered, the base path of the group included"
}

// uncovered finds routes that may change something and have no rule, by the
// strictest of the sets.
func (k *check) uncovered() {
	severity, source := ruleset.SeverityIgnore, ruleset.Source{}
	for _, set := range k.sets {
		if own := set.set.Settings().Uncovered; stricter(own, severity) {
			severity, source = own, fileOf(set.set)
		}
	}
	for _, r := range k.known.routes {
		if changes(r.Method) && !k.covered(r.Endpoint) {
			k.report(severity, func() *ruleset.Problem {
				return &ruleset.Problem{
					Endpoint: r.Endpoint, Source: source,
					Message: "missing, and the route may change something: add a rule, or say `none: true` if it needs no lock",
				}
			})
		}
	}
}

// fileOf is the file that a set was loaded from, as the source of what it lacks.
func fileOf(set *ruleset.Set) ruleset.Source {
	if file := set.File(); file != "" {
		return ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	return ruleset.Source{}
}

func (k *check) covered(r ruleset.Endpoint) bool {
	if len(k.placed[r]) > 0 {
		return true
	}
	return slices.ContainsFunc(k.sets, func(g *generation) bool { return g.set.Lookup(r) != nil })
}

// changes reports whether requests with the method may change something.
func changes(method string) bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, method)
}

func stricter(a, b ruleset.Severity) bool {
	order := []ruleset.Severity{ruleset.SeverityIgnore, ruleset.SeverityWarn, ruleset.SeverityError}
	return slices.Index(order, a) > slices.Index(order, b)
}

// clashes finds rules that another guard has, too, for one route.
func (k *check) clashes(set *generation, others []*generation) {
	for _, r := range k.known.routes {
		e := set.table.at(r.Endpoint)
		if e == nil || e.broken != nil {
			continue
		}
		for _, placed := range k.placed[r.Endpoint] {
			k.clash(e, placed)
		}
		for _, other := range others {
			k.clash(e, other.table.at(r.Endpoint))
		}
	}
}

// mixedKinds finds rules of different routes that take one key as locks of different kinds.
// Those of the sets come last: their file can be changed.
func (k *check) mixedKinds() {
	var rules []*ruleset.Resolved
	for _, e := range k.handled {
		rules = append(rules, e.rules()...)
	}
	for _, set := range k.sets {
		for _, r := range k.known.routes {
			rules = append(rules, set.table.at(r.Endpoint).rules()...)
		}
	}
	for _, p := range ruleset.MixedKinds(rules) {
		k.add(p)
	}
}

func (k *check) clash(e, other *endpoint) {
	if other != nil && other.broken == nil {
		k.add(e.clash(other))
	}
}
