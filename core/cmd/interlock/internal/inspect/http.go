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

// checkHTTP checks the rules of each HTTP route of the program. If the routes are not known, it checks the rules of each
// HTTP endpoint in the set.
func checkHTTP(i *inspector) {
	if i.in.Routes == nil {
		for _, rules := range byEndpoint(i.in.Set, ruleset.TransportHTTP) {
			e := rules[0].Endpoint
			i.check(httpSite(i.in.Routes, routes.Route{Method: e.Method, Path: e.Path}, rules))
		}
		return
	}
	judge := aspect.Judge{Transport: ruleset.TransportHTTP, Changes: httpcall.Changes}
	for _, r := range i.in.Routes.Routes {
		judge.Endpoints = append(judge.Endpoints, r.Endpoint())
		if rules := i.in.Set.Match(r.Endpoint()); len(rules) > 0 {
			i.check(httpSite(i.in.Routes, r, rules))
		}
	}
	judge.Judge(&i.findings.Report, i.in.Set)
}

// httpSite returns the site of route r. If the routes of the program are not known, known is nil.
func httpSite(known *routes.Table, r routes.Route, rules []*ruleset.Resolved) *site {
	s := &site{endpoint: r.Endpoint(), rules: rules, anyVariable: known == nil}
	if !s.anyVariable {
		s.fallbacks, s.routed = known.Fallbacks, true
	}
	s.anyParam = s.anyVariable && strings.HasSuffix(r.Path, "*")
	s.schema = func(more unknownNames) (*keyexpr.Schema, error) {
		c := httpvars.Config{PathParams: append(routes.Params(r.Path), more.params...)}
		for _, name := range more.variables {
			c.Registered = append(c.Registered, keyexpr.Variable{Name: name, Type: keyexpr.TypeFor[any]()})
		}
		return known.At(c, r.Body)
	}
	return s
}
