package inspect

import (
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// http judges the rules of HTTP endpoints: for each route of the program, or as if
// what they name were the routes.
func (i *inspector) http() {
	if i.in.Routes == nil {
		for _, rules := range byEndpoint(i.in.Set, ruleset.TransportHTTP) {
			e := rules[0].Endpoint
			i.judge(i.httpSite(routes.Route{Method: e.Method, Path: e.Path}, rules))
		}
		return
	}
	judge := aspect.Judge{Transport: ruleset.TransportHTTP, Changes: httpcall.Changes}
	for _, r := range i.in.Routes.Routes {
		judge.Endpoints = append(judge.Endpoints, r.Endpoint())
		if rules := i.in.Set.Match(r.Endpoint()); len(rules) > 0 {
			i.judge(i.httpSite(r, rules))
		}
	}
	judge.Judge(&i.findings.Report, i.in.Set)
}

// byEndpoint groups the rules of a transport that take a lock, in order.
func byEndpoint(set *ruleset.Set, t ruleset.Transport) [][]*ruleset.Resolved {
	var groups [][]*ruleset.Resolved
	index := map[ruleset.Endpoint]int{}
	for _, r := range set.Rules() {
		if r.Endpoint.Transport != t || r.None {
			continue
		}
		n, known := index[r.Endpoint]
		if !known {
			n = len(groups)
			index[r.Endpoint] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], r)
	}
	return groups
}

func (i *inspector) httpSite(r routes.Route, rules []*ruleset.Resolved) *site {
	s := &site{endpoint: r.Endpoint(), rules: rules, open: i.in.Routes == nil}
	if !s.open {
		s.fallbacks, s.routed = i.in.Routes.Fallbacks, true
	}
	s.anyParam = s.open && strings.HasSuffix(r.Path, "*")
	s.schema = func(more assumed) (*keyexpr.Schema, error) {
		c := httpvars.Config{PathParams: append(routes.Params(r.Path), more.params...)}
		for _, name := range more.variables {
			c.Registered = append(c.Registered, keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[any]()})
		}
		return i.in.Routes.At(c, r.Body)
	}
	return s
}
