package ginlock

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard makes handlers that take locks. Make it with [New]; one per process is
// enough, and it serves any number of engines.
type Guard struct {
	aspect  *aspect.Aspect
	cfg     config
	routing routing
	routes  *registry   // of Handle and Middleware
	handled atomic.Bool // Handle was called

	mu          sync.Mutex
	chained     []*chained // of Handler
	middlewares map[ruleset.Provider]*middleware
	unnamed     map[ruleset.Endpoint][]*chained // the same without a name, by the routes that met them
	params      map[ruleset.Endpoint][]string   // of routes
	noted       []error
}

type (
	registry = aspect.Registry[ruleset.Endpoint, httpcall.Endpoint]
	table    = aspect.Table[ruleset.Endpoint, httpcall.Endpoint]
	adapter  = aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]
)

// New makes a guard over a lock client, which stays the caller's to close. The
// error has every problem of the options.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks, cfg.aspect...)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("ginlock: New: %w", err)
	}
	locks.ForAdapters().FindThrough(gin.ContextRequestKey)
	g := &Guard{
		aspect: observed, cfg: cfg,
		unnamed: make(map[ruleset.Endpoint][]*chained), params: make(map[ruleset.Endpoint][]string),
		middlewares: make(map[ruleset.Provider]*middleware),
	}
	g.routes = aspect.NewRegistry(observed, g.adapter())
	return g, nil
}

// Aspect is what compiles and runs the rules of the guard. It has the kill switch:
// [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// adapter is how routes are compiled.
func (g *Guard) adapter() adapter {
	return adapter{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Compile:   g.compile,
		Changes:   httpcall.Changes,
		Unguarded: g.unguarded,
	}
}

// compile compiles the rules of a route; see [aspect.Adapter].
func (g *Guard) compile(_ *ruleset.Set, route ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	return g.cfg.Compile(g.aspect, httpcall.Route{
		Endpoint: route, Params: g.paramsOf(route), AnyParam: route == noRoute.Endpoint,
		Fallbacks: slices.Collect(maps.Keys(g.cfg.fallbacks)),
	}, rules)
}

// put compiles rules written in Go for the route on which they are put. It tells nobody.
func (g *Guard) put(route ruleset.Endpoint, rules []ruleset.Rule) *httpcall.Entry {
	e := g.routes.Compile(route, rules...)
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

// remember keeps the parameters of routes.
func (g *Guard) remember(routes ...route) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range routes {
		g.params[r.Endpoint] = r.params
	}
}

func (g *Guard) paramsOf(route ruleset.Endpoint) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.params[route]
}

// note keeps a problem for Check.
func (g *Guard) note(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noted = append(g.noted, err)
}

// Handler makes a handler that runs the rest of its chain under the locks of the
// rules. Put it before the handler of a route, or on a group. The rules are
// compiled for a route at its first request; [Guard.Check] tells before whether
// they fit. Of several Handlers without a name on a route, each but the one that a
// request met first gets a number after its name there: "POST /orders (2)".
//
// Requests without a route (404, 405) are guarded too, as route "*", but not by
// rules that read path or route, which have nothing to read there. Such a request that
// yields no key stays a 404 or 405: nothing behind the guard runs, nor does a fallback,
// and gin answers. Only strategy proceed does as always.
func (g *Guard) Handler(rules ...ruleset.Rule) gin.HandlerFunc {
	return g.chainedAt(caller(), rules).handler
}

// chainedAt is what Handler makes. The same rules from the same place in the program are
// the same, so that it does no harm to call Handler within a handler.
func (g *Guard) chainedAt(where string, rules []ruleset.Rule) *chained {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.chained {
		if h.where == where && reflect.DeepEqual(h.rules, rules) {
			return h
		}
	}
	h := newChained(g, where, rules)
	g.chained = append(g.chained, h)
	return h
}

// Middleware makes a handler that runs the rest of its chain under the locks of
// the rules that p, a [*ruleset.Set] or a [*ruleset.Live], has for the route of the
// request. Routes without rules cost one lookup. Rules for other transports than HTTP
// are left alone; requests without a route (404, 405) match no rule. The same p gives
// the same handler again.
//
// [Guard.Check] returns what is wrong with the rules. Pass the handler to Use before the routes are
// registered: see Place in the chain, and for reloads Rule files, in the package comment.
//
// With a nil p, such as an ignored error leaves, every route answers 500, and Check
// says so.
func (g *Guard) Middleware(p ruleset.Provider) gin.HandlerFunc {
	if err := ruleset.CheckProvider(p); err != nil {
		return g.withoutRules(fmt.Errorf("ginlock: Middleware: %w", err))
	}
	t, err := g.routes.Table(p)
	if err != nil {
		g.note(fmt.Errorf("ginlock: Middleware: no reload will take effect: %w", err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.middlewares[p]
	if m == nil {
		m = &middleware{handler: g.through(t), missing: map[ruleset.Endpoint]bool{}}
		g.middlewares[p] = m
	}
	return m.handler
}

// through makes a handler that serves requests under the rules of a table.
func (g *Guard) through(t *table) gin.HandlerFunc {
	return func(c *gin.Context) {
		switch r, unknown := g.find(t, c); {
		case unknown != nil:
			g.refuseUnmatched(c, unknown)
		case r != nil:
			httpcall.Serve(r, t, newRouter(c, &g.cfg))
		}
	}
}

// find is what is in force for the route of a request, nil if nothing is. For a known
// route it takes no lock and does not allocate.
func (g *Guard) find(t *table, c *gin.Context) (*httpcall.Entry, *ambiguousError) {
	r, unknown := g.routing.of(c)
	switch {
	case r == noRoute:
		return nil, nil
	case unknown == nil:
		return g.at(t, r), nil
	case len(unknown.routes) > 0 && !slices.ContainsFunc(unknown.routes, func(r *route) bool { return g.at(t, r) != nil }):
		return nil, nil // whichever it is
	default:
		return nil, unknown
	}
}

// at is what is in force for a route. One that [Guard.Check] has not seen is
// compiled.
func (g *Guard) at(t *table, r *route) *httpcall.Entry {
	if e, known := t.Find(r.Endpoint); known {
		return e
	}
	if r != noRoute {
		g.remember(*r)
	}
	return t.At(r.Endpoint)
}

// withoutRules makes a handler that refuses every request of a route: which ones have
// rules is not known.
func (g *Guard) withoutRules(why error) gin.HandlerFunc {
	g.note(why)
	return func(c *gin.Context) {
		if path := c.FullPath(); path != "" {
			g.refuse(c, ruleset.Route("*", path), why)
		}
	}
}

// refuse answers a request whose rules cannot be known.
func (g *Guard) refuse(c *gin.Context, at ruleset.Endpoint, why error) {
	httpcall.Serve(&httpcall.Entry{Endpoint: at, Err: why}, nil, newRouter(c, &g.cfg))
}
