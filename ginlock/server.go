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

// server compiles the rules of routes and serves requests under them. It does not depend on how the rules were bound to
// the routes.
type server struct {
	aspect  *aspect.Aspect
	cfg     config
	routing routing
	routes  *registry // the routes of Handle and Middleware
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
	if err := checkEndpoints(route, rules); err != nil {
		return &httpcall.Entry{Endpoint: route, Err: errors.Join(err, e.Err)}
	}
	return e
}

// checkEndpoints reports rules that name another route than the given one, on which the program puts them.
func checkEndpoints(route ruleset.Endpoint, rules []ruleset.Rule) error {
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

// find returns the entry in force for the route of a request, nil if there are no rules. For a known route, find takes
// no lock and does not allocate.
func (s *server) find(t *table, c *gin.Context) (*httpcall.Entry, *ambiguousError) {
	r, unknown := s.routing.match(c)
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

// at returns the entry in force for a route, nil if there are no rules. It compiles a route that was not given to
// [Guard.Check].
func (s *server) at(t *table, r *route) *httpcall.Entry {
	if e, known := t.Find(r.Endpoint); known {
		return e
	}
	if r != noRoute {
		s.routing.recordParams(*r)
	}
	return t.At(r.Endpoint)
}

// handlerFor returns a handler that serves requests under the rules of a table.
func (s *server) handlerFor(t *table) gin.HandlerFunc {
	return func(c *gin.Context) {
		switch e, unknown := s.find(t, c); {
		case unknown != nil:
			s.refuseAmbiguous(c, unknown)
		case e != nil:
			serve(c, &s.cfg, e, t)
		}
	}
}

// refuse answers a request whose rules cannot be determined.
func (s *server) refuse(c *gin.Context, at ruleset.Endpoint, err error) {
	serve(c, &s.cfg, &httpcall.Entry{Endpoint: at, Err: err}, nil)
}

// refuseAmbiguous answers a request whose route cannot be determined, and warns observers once for each path.
func (s *server) refuseAmbiguous(c *gin.Context, err *ambiguousError) {
	if s.routing.firstWarning(err.path) {
		s.aspect.Warn(&ruleset.Problem{Endpoint: ruleset.Route("*", err.path), Message: err.advice()})
	}
	s.refuse(c, ruleset.Route("*", err.path), err)
}

// chainHandler is the handler that [Guard.Handler] or [Lock] returns. It compiles its rules for a route when Check finds
// the handler on the chain of the route, and otherwise at the first request.
type chainHandler struct {
	server   *server
	numbers  *httpcall.Numbers
	rules    []ruleset.Rule
	where    string // "Handler at file:line", for problems
	places   httpcall.Places
	problems func() []*ruleset.Problem // returns the problems that the rules have on every route
	handler  gin.HandlerFunc
}

func newChainHandler(s *server, n *httpcall.Numbers, where string, rules []ruleset.Rule) *chainHandler {
	h := &chainHandler{server: s, numbers: n, where: where, rules: slices.Clone(rules)}
	h.handler, h.problems = h.serve, sync.OnceValue(h.findProblems)
	return h
}

func (h *chainHandler) serve(c *gin.Context) {
	r, unknown := h.server.routing.match(c)
	if unknown != nil {
		h.server.refuseAmbiguous(c, unknown)
		return
	}
	if e := h.at(r); e != nil {
		serve(c, &h.server.cfg, e, h)
	}
}

// at returns the entry of the handler for a route, nil if it does not guard it.
func (h *chainHandler) at(r *route) *httpcall.Entry {
	return h.places.At(r.Endpoint, func() *httpcall.Entry { return h.place(r) })
}

// place compiles the rules for a route and puts them into force. It returns nil for requests without a route if the rules
// read a path, because those requests have none.
func (h *chainHandler) place(r *route) *httpcall.Entry {
	if r.Endpoint != noRoute.Endpoint {
		h.server.routing.recordParams(*r)
	}
	e := h.server.compileFor(r.Endpoint, h.numbers.Name(h, r.Endpoint, h.rules))
	// r.Any and groups have routes of several methods.
	e.Extra.AnyMethod = !slices.ContainsFunc(h.rules, func(r ruleset.Rule) bool { return !r.Endpoint.IsZero() })
	if r.Endpoint == noRoute.Endpoint && e.Err == nil && (e.Point.Uses("path") || e.Point.Uses("route")) {
		return nil
	}
	h.server.routes.Place(e)
	return e
}

// findProblems returns the problems that the rules have on every route.
func (h *chainHandler) findProblems() []*ruleset.Problem {
	return httpcall.ProblemsAt(h.where, h.server.routes.Compile(noRoute.Endpoint, h.rules...).Err)
}
