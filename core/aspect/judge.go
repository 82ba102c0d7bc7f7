package aspect

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Judge compares sets of rules with the endpoints of a program. It finds rules that match no endpoint and endpoints
// that should have a rule but do not. Every adapter and the command line use it.
type Judge struct {
	// Transport is the transport of the endpoints. Judge ignores rules for other transports.
	Transport ruleset.Transport

	// Noun is the word for an endpoint. "" means the usual word of the transport.
	Noun string

	// Concerns reports whether Judge is responsible for a rule with the given endpoint. Judge does not report an unmatched
	// rule that concerns another adapter. If Concerns is nil, Judge is responsible for every rule of the transport.
	Concerns func(ruleset.Endpoint) bool

	// Endpoints lists all endpoints that exist.
	Endpoints []ruleset.Endpoint

	// Changes reports whether calls of an endpoint may modify data, so that it should have a rule. If it is nil, no endpoint
	// needs a rule.
	Changes func(ruleset.Endpoint) bool

	// Below reports whether an endpoint has rules in layers below the sets. Wildcards of sets do not apply to such an
	// endpoint. If Below is nil, no endpoint has such rules.
	Below func(ruleset.Endpoint) bool

	// Beside reports whether an endpoint has rules from [Registry.Place]. If it is nil, no endpoint has such rules.
	Beside func(ruleset.Endpoint) bool

	// Hint is the advice for a rule that matches no endpoint and is similar to none. "" means the usual advice of the
	// transport.
	Hint string
}

// Judge adds to r the problems of the sets, with the severity that the settings of the sets select.
func (j *Judge) Judge(r *Report, sets ...*ruleset.Set) {
	for _, set := range sets {
		r.addAs(set.Settings().Unmatched, j.unmatched(set)...)
	}
	if strictest := strictestOf(sets); strictest != nil {
		r.addAs(strictest.Settings().Uncovered, j.uncovered(strictest, sets)...)
	}
}

// matchedRules returns the rules of a set that apply to an endpoint of j.
func (j *Judge) matchedRules(set *ruleset.Set) map[*ruleset.Resolved]bool {
	matched := map[*ruleset.Resolved]bool{}
	anyMethod := map[string]bool{} // paths of patterns without a method
	for _, e := range j.Endpoints {
		anyMethod[e.Path] = anyMethod[e.Path] || e.Method == "*"
		for _, rule := range set.Lookup(e) {
			if rule.Endpoint == e || !has(j.Below, e) || !strings.HasSuffix(rule.Endpoint.Path, "*") {
				matched[rule] = true
			}
		}
	}
	for _, rule := range set.Rules() {
		if rule.Endpoint.Transport == j.Transport && anyMethod[rule.Endpoint.Path] {
			matched[rule] = true // the pattern serves any method, even a method that a client invents
		}
	}
	return matched
}

func has(ask func(ruleset.Endpoint) bool, e ruleset.Endpoint) bool { return ask != nil && ask(e) }

// unmatched returns a problem for each rule of a set that applies to no endpoint of j.
func (j *Judge) unmatched(set *ruleset.Set) []*ruleset.Problem {
	matched := j.matchedRules(set)
	var list []*ruleset.Problem
	for _, rule := range set.Rules() {
		if rule.Endpoint.Transport == j.Transport && !matched[rule] && (j.Concerns == nil || j.Concerns(rule.Endpoint)) {
			list = append(list, rule.Problem("endpoint", j.Missing(rule.Endpoint)))
		}
	}
	return list
}

// Missing returns the message for a rule whose endpoint the program does not have. It also suggests what to write.
func (j *Judge) Missing(e ruleset.Endpoint) string {
	noun := j.noun()
	switch near := j.nearest(e); {
	case strings.HasSuffix(e.Path, "*") && (near == "" || near == e.Label()):
		return fmt.Sprintf("applies to no %s: the wildcard matches none, or each one has a more specific rule: remove the rule%s", noun, j.adapterHint(e))
	case near != "" && near != e.Label():
		return fmt.Sprintf("matches no %s: did you mean %q?", noun, near)
	case j.Hint != "":
		return fmt.Sprintf("matches no %s: %s", noun, j.Hint)
	default:
		return fmt.Sprintf("matches no %s: %s", noun, j.usualHint(e))
	}
}

// nearest returns the label of the endpoint that is most similar to e, "" if none is similar. The full names of gRPC
// methods resemble each other, so nearest requires that either the method or the service is the same.
func (j *Judge) nearest(e ruleset.Endpoint) string {
	labels := j.labels()
	if j.Transport != ruleset.TransportGRPC {
		return failpolicy.Nearest(e.Label(), labels)
	}
	service, method := path.Split(e.Path)
	for _, full := range labels {
		s, m := path.Split(full)
		switch {
		case s == service && failpolicy.Nearest(method, []string{m}) != "":
			return full
		case (m == method || method == "*") && s != service && failpolicy.Nearest(path.Base(service), []string{path.Base(s)}) != "":
			return s + method
		}
	}
	return ""
}

func (j *Judge) labels() []string {
	labels := make([]string, len(j.Endpoints))
	for i, e := range j.Endpoints {
		labels[i] = e.Label()
	}
	return labels
}

// noun returns the word for an endpoint.
func (j *Judge) noun() string {
	switch {
	case j.Noun != "":
		return j.Noun
	case j.Transport == ruleset.TransportGRPC:
		return "method"
	case j.Transport == ruleset.TransportFunc:
		return "wrapped function"
	default:
		return "route"
	}
}

// fewEndpoints limits examples in messages: if there are more endpoints, a message names none of them.
const fewEndpoints = 10

// usualHint returns the advice for a rule whose endpoint is similar to no existing one.
func (j *Judge) usualHint(e ruleset.Endpoint) string {
	switch {
	case j.Noun != "":
		return "remove the rule, or give Check the endpoint that it names"
	case e.Transport == ruleset.TransportGRPC:
		return "remove the rule, or register the service before Check"
	case e.Transport == ruleset.TransportFunc:
		return fmt.Sprintf("remove the rule, or wrap the function with Endpoint: ruleset.Func(%q)%s", e.Path, j.adapterHint(e))
	case len(j.Endpoints) == 0:
		return "no route is registered yet: call Check after all routes are registered"
	default:
		example := ""
		if len(j.Endpoints) <= fewEndpoints {
			example = fmt.Sprintf(", such as %q", j.Endpoints[0].Label())
		}
		return "write the method and the path as registered, including the base path of the group" + example + ", or delete the rule"
	}
}

// adapterHint returns more advice for a rule of a function whose name has a prefix. The rule may belong to an adapter that
// does not exist yet: see [Adapter].Prefix.
func (j *Judge) adapterHint(e ruleset.Endpoint) string {
	prefix, _, found := strings.Cut(e.Path, "/")
	if j.Noun != "" || e.Transport != ruleset.TransportFunc || !found {
		return ""
	}
	return ", or create the adapter for " + prefix + "/ before Check"
}

// uncovered returns a problem for each endpoint that may modify data and has no rule in any set or other layer. The problem
// names the file of the strictest set.
func (j *Judge) uncovered(strictest *ruleset.Set, sets []*ruleset.Set) []*ruleset.Problem {
	var source ruleset.Source
	if file := strictest.File(); file != "" {
		source = ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	text := fmt.Sprintf("missing, and the %s may modify data: add a rule, or write `none: true` if it needs no lock", j.noun())
	if j.Transport == ruleset.TransportGRPC {
		text += " (or, if the method changes nothing, set idempotency_level = NO_SIDE_EFFECTS in the .proto)"
	}
	var list []*ruleset.Problem
	for _, e := range j.Endpoints {
		inSet := func(set *ruleset.Set) bool { return set.Lookup(e) != nil }
		if has(j.Changes, e) && !has(j.Below, e) && !has(j.Beside, e) && !slices.ContainsFunc(sets, inSet) {
			list = append(list, &ruleset.Problem{Endpoint: e, Source: source, Message: text})
		}
	}
	return list
}

// strictestOf returns the set that treats endpoints without a rule most strictly, nil if all sets ignore them.
func strictestOf(sets []*ruleset.Set) *ruleset.Set {
	for _, severity := range []ruleset.Severity{ruleset.SeverityError, ruleset.SeverityWarn} {
		for _, set := range sets {
			if set.Settings().Uncovered == severity {
				return set
			}
		}
	}
	return nil
}
