package inspect

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
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
	for _, r := range i.in.Routes.Routes {
		rules := i.in.Set.Lookup(r.Endpoint())
		for _, rule := range rules {
			i.used[rule] = true
		}
		if rules == nil && changes(r.Method) {
			i.uncovered(r.Endpoint(), "route")
		}
		if len(rules) > 0 && !rules[0].None {
			i.judge(i.httpSite(r, rules))
		}
	}
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

// changes reports whether a method is one that changes something.
func changes(method string) bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS", "TRACE"}, method)
}

func (i *inspector) httpSite(r routes.Route, rules []*ruleset.Resolved) *site {
	c := httpvars.Config{PathParams: routes.Params(r.Path)}
	s := &site{endpoint: r.Endpoint(), rules: rules, example: "body.id", open: i.in.Routes == nil, fallbacks: fallbacksOf(rules)}
	if len(c.PathParams) > 0 {
		s.example = "path." + c.PathParams[0]
	}
	if s.open && strings.HasSuffix(r.Path, "*") {
		c.PathParams = i.guessParams(rules)
	}
	if body := i.in.Body(r); body != nil {
		c.Body, s.types = body.Go, append(s.types, body)
	}
	if i.in.Routes != nil {
		s.fallbacks = i.in.Routes.Fallbacks
		for _, v := range i.in.Routes.Registered() {
			c.Registered = append(c.Registered, httpvars.Registered{Name: v.Name, Type: v.Type.Go})
			s.types = append(s.types, v.Type)
		}
	}
	s.schema = func(more []string) (*keyexpr.Schema, error) { return httpSchema(c, more) }
	return s
}

func httpSchema(c httpvars.Config, more []string) (*keyexpr.Schema, error) {
	c.Registered = slices.Clip(c.Registered)
	for _, name := range more {
		c.Registered = append(c.Registered, httpvars.Registered{Name: name, Type: reflect.TypeFor[any]()})
	}
	v, err := httpvars.New(c)
	if err != nil {
		return nil, err
	}
	return v.Schema(), nil
}

var pathParam = regexp.MustCompile(`(?:^|[^.\w])path(?:\??\.([A-Za-z_]\w*)|\["([^"]*)"\])`)

// guessParams are the path parameters that rules of a wildcard use. Whether its
// routes have them is not known.
func (i *inspector) guessParams(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		own := len(names)
		for _, found := range pathParam.FindAllStringSubmatch(strings.Join(append(r.Templates(), r.When), " "), -1) {
			names = append(names, found[1]+found[2])
		}
		if len(names) > own {
			i.findings.addOnce(report.Note, r.Problem(keyField(r),
				"not judged: whether the routes below have the path parameters "+strings.Join(names[own:], ", ")+" (--routes tells)"))
		}
	}
	return names
}

// noRoute says that no route has the endpoint, and which one may be meant.
func (i *inspector) noRoute(e ruleset.Endpoint) string {
	var labels []string
	for _, r := range i.in.Routes.Routes {
		labels = append(labels, r.Endpoint().Label())
	}
	if near := failpolicy.Nearest(e.Label(), labels); near != "" && near != e.Label() {
		return fmt.Sprintf("matches no route: did you mean %q?", near)
	}
	if strings.HasSuffix(e.Path, "*") {
		return "applies to no route: there is none below, or each has rules of its own: remove it"
	}
	return "matches no route: write a method and the path as registered, the base path of the group included"
}
