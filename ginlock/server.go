package ginlock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

type (
	registry = aspect.Registry[ruleset.Endpoint, httpcall.Endpoint]
	table    = aspect.Table[ruleset.Endpoint, httpcall.Endpoint]
	adapter  = aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]
)

// server compiles the rules of routes and serves requests under them. It does not know who bound the rules to the
// routes.
type server struct {
	aspect  *aspect.Aspect
	cfg     config
	routing routing
	routes  *registry // of Handle and Middleware
}

// adapter returns the description of gin's routes to a registry.
func (s *server) adapter() adapter {
	return adapter{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Compile:   s.compile,
		Changes:   httpcall.Changes,
	}
}

// compile implements [aspect.Adapter].Compile.
func (s *server) compile(_ *ruleset.Set, route ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	return s.cfg.Compile(s.aspect, httpcall.Route{
		Endpoint: route, Params: s.routing.paramsOf(route), AnyParam: route == noRoute.Endpoint,
		Fallbacks: slices.Collect(maps.Keys(s.cfg.fallbacks)),
	}, rules)
}

// compileFor compiles rules written in Go for the route on which the program puts them. It does not put them into
// force.
func (s *server) compileFor(route ruleset.Endpoint, rules []ruleset.Rule) *httpcall.Entry {
	e := s.routes.Compile(route, rules...)
	if err := misplaced(route, rules); err != nil {
		return &httpcall.Entry{Endpoint: route, Err: errors.Join(err, e.Err)}
	}
	return e
}

// misplaced reports rules that name another route than the one they are put on.
func misplaced(route ruleset.Endpoint, rules []ruleset.Rule) error {
	var problems []*ruleset.Problem
	for _, r := range rules {
		if r.Endpoint.IsZero() || canonical(r.Endpoint) == route {
			continue
		}
		problems = append(problems, &ruleset.Problem{
			Rule: r.Name, Endpoint: r.Endpoint, Field: "endpoint", Source: ruleset.Source{Layer: ruleset.LayerCode},
			Message: fmt.Sprintf("the rule is put on %s: leave Endpoint empty there, or use Middleware for rules that name their routes", route),
		})
	}
	return ruleset.Invalid(problems...)
}

// find returns the entry in force for the route of a request, nil without rules. For a known route, find takes no
// lock and does not allocate.
func (s *server) find(t *table, c *gin.Context) (*httpcall.Entry, *ambiguousError) {
	r, unknown := s.routing.of(c)
	switch {
	case r == noRoute:
		return nil, nil
	case unknown == nil:
		return s.at(t, r), nil
	case len(unknown.routes) > 0 && !slices.ContainsFunc(unknown.routes, func(r *route) bool { return s.at(t, r) != nil }):
		return nil, nil // none of the possible routes has rules
	default:
		return nil, unknown
	}
}

// at returns the entry in force for a route, nil without rules. It compiles a route that [Guard.Check] has not
// seen.
func (s *server) at(t *table, r *route) *httpcall.Entry {
	if e, known := t.Find(r.Endpoint); known {
		return e
	}
	if r != noRoute {
		s.routing.remember(*r)
	}
	return t.At(r.Endpoint)
}

// through returns a handler that serves requests under the rules of a table.
func (s *server) through(t *table) gin.HandlerFunc {
	return func(c *gin.Context) {
		switch e, unknown := s.find(t, c); {
		case unknown != nil:
			s.refuseAmbiguous(c, unknown)
		case e != nil:
			serve(c, &s.cfg, e, t)
		}
	}
}

// refuse answers a request whose rules cannot be known.
func (s *server) refuse(c *gin.Context, at ruleset.Endpoint, why error) {
	serve(c, &s.cfg, &httpcall.Entry{Endpoint: at, Err: why}, nil)
}

// refuseAmbiguous answers a request whose route cannot be known, and warns observers once for each path.
func (s *server) refuseAmbiguous(c *gin.Context, why *ambiguousError) {
	if s.routing.firstWarning(why.path) {
		s.aspect.Warn(&ruleset.Problem{Endpoint: ruleset.Route("*", why.path), Message: why.advice()})
	}
	s.refuse(c, ruleset.Route("*", why.path), why)
}

// chained is a handler of [Guard.Handler]. Its rules learn their routes from requests.
type chained struct {
	server  *server
	numbers *numbers
	rules   []ruleset.Rule
	where   string // file:line of the call of Handler
	routes  *table // the routes that requests have met
	handler gin.HandlerFunc
}

func newChained(s *server, n *numbers, where string, rules []ruleset.Rule) *chained {
	h := &chained{server: s, numbers: n, where: where, rules: slices.Clone(rules)}
	h.handler = h.serve
	learning := s.adapter()
	learning.Compile = h.compile
	none, _ := ruleset.NewSet(nil)                                   //nolint:errcheck // an empty set has no problems
	h.routes, _ = aspect.NewRegistry(s.aspect, learning).Table(none) //nolint:errcheck // a set accepts every subscriber
	return h
}

func (h *chained) serve(c *gin.Context) {
	r, unknown := h.server.routing.of(c)
	if unknown != nil {
		h.server.refuseAmbiguous(c, unknown)
		return
	}
	if e := h.server.at(h.routes, r); e != nil {
		serve(c, &h.server.cfg, e, h)
	}
}

// compile compiles the rules for a route. It returns no point for requests without a route if the rules read a
// path, because those requests have none.
func (h *chained) compile(_ *ruleset.Set, route ruleset.Endpoint, _ []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	e := h.server.compileFor(route, h.named(route))
	// r.Any and groups have routes of several methods.
	e.Extra.AnyMethod = !slices.ContainsFunc(h.rules, func(r ruleset.Rule) bool { return !r.Endpoint.IsZero() })
	if route == noRoute.Endpoint && e.Err == nil && (e.Point.Uses("path") || e.Point.Uses("route")) {
		return nil, e.Extra, nil
	}
	return e.Point, e.Extra, e.Err
}

// named gives a rule without a name a name that no other Handler has on the route.
func (h *chained) named(route ruleset.Endpoint) []ruleset.Rule {
	if len(h.rules) != 1 || h.rules[0].Name != "" {
		return h.rules
	}
	n := h.numbers.of(h, route)
	if n == 1 {
		return h.rules
	}
	rule := h.rules[0]
	rule.Name = fmt.Sprintf("%s (%d)", route.Label(), n)
	return []ruleset.Rule{rule}
}

// numbers counts the Handlers without a name on each route.
type numbers struct {
	mu     sync.Mutex
	routes map[ruleset.Endpoint][]*chained // in the order in which the route met them
}

// of returns the number of a Handler on a route, from 1. Whether the Handler runs for every request of the route
// does not matter.
func (n *numbers) of(h *chained, route ruleset.Endpoint) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.routes[route], h)
	if i < 0 {
		i = len(n.routes[route])
		n.routes[route] = append(n.routes[route], h)
	}
	return i + 1
}
