package httplock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard makes handlers that take locks. Make it with [New]; one per process is enough,
// and it serves any number of routers. It is safe for concurrent use, owns no goroutine
// and needs no Close: over a [ruleset.Live] it follows every reload until that is closed.
type Guard struct {
	aspect *aspect.Aspect
	cfg    config
	routes *aspect.Registry[ruleset.Endpoint, httpcall.Endpoint]
	rules  *aspect.Table[ruleset.Endpoint, httpcall.Endpoint]

	mu    sync.Mutex
	known map[ruleset.Endpoint][]ruleset.Declared // the routes, with the rules put on them
}

// New makes a guard over a lock client, which stays the caller's to close. The error has
// every problem of the options, and of the rules as far as they do not depend on a route.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks, cfg.observers...)
	problems = append(problems, err)
	rules, err := cfg.sources.Provider()
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	g := &Guard{aspect: observed, cfg: cfg, known: map[ruleset.Endpoint][]ruleset.Declared{}}
	g.routes = aspect.NewRegistry(observed, aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Declared:  g.declared,
		Compile:   g.compile,
		Changes:   httpcall.Changes,
		Hint:      `write the pattern as it is registered, with a method: "POST /orders/{id}/pay"; Check is given those that Middleware guards`,
	})
	if g.rules, err = g.routes.Table(rules); err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	return g, nil
}

// Aspect is what compiles and runs the rules of the guard. It has the kill switch:
// [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// Mux is what [Guard.Handle] registers a handler with: a *[http.ServeMux], or a router
// that has its method, such as chi's.
type Mux interface {
	Handle(pattern string, handler http.Handler)
}

// Handle is mux.Handle with the rules of the pattern's route around the handler: those
// given, which need names if there are several, with those of the guard's set laid over
// them; or those of the set alone. Rules given here may leave Endpoint empty.
//
// The error has every problem of the rules; the route then answers 500, and
// [Guard.Check] returns the problems again. As mux.Handle it panics where the pattern
// conflicts with another one.
func (g *Guard) Handle(mux Mux, pattern string, handler http.Handler, rules ...ruleset.Rule) error {
	if mux == nil || handler == nil {
		return fmt.Errorf("httplock: Handle(%q): the mux or the handler is nil", pattern)
	}
	route, err := routeOf(pattern)
	if err != nil {
		return fmt.Errorf("httplock: Handle(%q): %w", pattern, err)
	}
	routes := methodsOf(route)
	for _, e := range routes {
		g.declare(e, rules)
	}
	var errs []error
	for _, entry := range g.rules.Renew(routes...) { // they may have served requests
		if entry != nil {
			errs = append(errs, entry.Err)
		}
	}
	mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.serve(route, w, r, handler)
	}))
	return errors.Join(errs...)
}

// HandleFunc is [Guard.Handle] for a function.
func (g *Guard) HandleFunc(mux Mux, pattern string, handler func(http.ResponseWriter, *http.Request), rules ...ruleset.Rule) error {
	return g.Handle(mux, pattern, http.HandlerFunc(handler), rules...)
}

// Middleware runs a handler under the rules that the guard's set has for the route of a
// request, which is told by its Pattern: so the router must have matched it before.
// Around a whole [http.ServeMux] nothing is locked; see the package comment. A request
// without a Pattern, and a route without rules, pass.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := r.Pattern
		if pattern == "" {
			next.ServeHTTP(w, r)
		} else {
			g.serve(cutPattern(pattern), w, r, next)
		}
		if r.Pattern != pattern {
			g.warnTooEarly(requested(cutPattern(r.Pattern), r.Method, g.rules.Set()))
		}
	})
}

// warnTooEarly warns once of a route whose router has matched it behind [Guard.Middleware].
func (g *Guard) warnTooEarly(route ruleset.Endpoint) {
	if entry := g.rules.At(route); entry != nil {
		entry.Once(func() {
			g.aspect.Warn(&ruleset.Problem{Endpoint: route, Message: "Middleware saw a request before its router had matched it, and took no lock there: " +
				"put it around the handler, as Handle does and chi's With, not around the router"})
		})
	}
}

// serve serves a request of a route. A route that is known costs one look-up, which takes
// no lock and does not allocate.
func (g *Guard) serve(matched ruleset.Endpoint, w http.ResponseWriter, r *http.Request, next http.Handler) {
	entry := g.at(matched, r.Method)
	if entry == nil || !httpcall.Serve(entry, g.rules, &call{guard: g, entry: entry, w: httpcall.WriterOf(w), r: r, next: next}) {
		next.ServeHTTP(w, r)
	}
}

// at is what is in force for a request that matched a pattern's route: the route and its
// rules are of one set.
func (g *Guard) at(matched ruleset.Endpoint, method string) *httpcall.Entry {
	for {
		set := g.rules.Set()
		route := requested(matched, method, set)
		entry, known := g.rules.Find(route)
		if !known {
			g.meet(route)
			entry = g.rules.At(route)
		}
		if g.rules.Set() == set { // else it may be of a set that a reload has just put into force
			return entry
		}
	}
}

// Check returns every problem of the guard's rules with the routes that there are, as
// one [*ruleset.InvalidError]; nil if there is none. Call it when all routes are
// registered and before the server starts. The routes are the patterns given to
// [Guard.Handle] and those given here, for routers that have them: what
// [Guard.Middleware] guards.
//
// Rules that match no route, and routes with a method other than GET, HEAD, OPTIONS and
// TRACE that have no rule, are errors, warnings to observers, or nothing, as the set's
// [ruleset.Settings] say. From then on a reload is judged likewise, and refused if it
// would not pass. A pattern without a method is a route for each.
func (g *Guard) Check(patterns ...string) error {
	for _, pattern := range patterns {
		route, err := routeOf(pattern)
		if err != nil {
			return fmt.Errorf("httplock: Check: %q: %w", pattern, err)
		}
		for _, e := range methodsOf(route) {
			g.declare(e, nil)
		}
	}
	all := g.all()
	report := g.routes.Check(append(all, g.named()...)...)
	g.cfg.Unmatched(report, all)
	return g.aspect.Conclude(report)
}

// WriteRoutes writes what rules may refer to in this program, as JSON: the routes that
// [Guard.Check] knows, and the variables and fallbacks of the guard; see
// [httpcall.Config.WriteRoutes]. It is what `interlock check --routes` reads, to judge a rule
// file without the program.
func (g *Guard) WriteRoutes(w io.Writer) error {
	return g.cfg.WriteRoutes(w, g.all(), slices.Collect(maps.Keys(g.cfg.fallbacks)))
}

// all are the routes that there are.
func (g *Guard) all() []ruleset.Endpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Keys(g.known), httpcall.ByPath)
}

// named are the routes of methods that only a rule of the set names, of patterns without a
// method.
func (g *Guard) named() []ruleset.Endpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	var routes []ruleset.Endpoint
	for _, rule := range g.rules.Set().Rules() {
		if _, known := g.known[rule.Endpoint]; !known && g.anyMethod(rule.Endpoint) != nil {
			routes = append(routes, rule.Endpoint)
		}
	}
	return routes
}

// anyMethod are the rules of the pattern without a method that has a route; nil if there is
// none.
func (g *Guard) anyMethod(route ruleset.Endpoint) []ruleset.Declared {
	return g.known[ruleset.Route("*", route.Path)]
}

// meet remembers the route of a request, unless it is one of [Guard.named].
func (g *Guard) meet(route ruleset.Endpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[route] == nil && g.anyMethod(route) == nil {
		g.known[route] = []ruleset.Declared{}
	}
}

// declare remembers a route, and rules that are put on it, but for those that are there
// from another mux or host.
func (g *Guard) declare(route ruleset.Endpoint, rules []ruleset.Rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.known[route]
	declared := append([]ruleset.Declared{}, before...)
	for _, r := range rules {
		if r.Endpoint.IsZero() {
			r.Endpoint = route
		}
		d := ruleset.Code(r)
		if !slices.ContainsFunc(before, func(b ruleset.Declared) bool { return reflect.DeepEqual(b, d) }) {
			declared = append(declared, d)
		}
	}
	g.known[route] = declared
}

// declared are the rules that are put on a route.
func (g *Guard) declared(route ruleset.Endpoint) (declared []ruleset.Declared, problems []*ruleset.Problem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	put, known := g.known[route]
	if !known { // a method that only a rule names: what is put on the pattern holds for it, too
		put = g.anyMethod(route)
	}
	for _, d := range put {
		if !known && d.Rule.Endpoint.Method == "*" {
			d.Rule.Endpoint = route
		}
		if d.Rule.Endpoint == route {
			declared = append(declared, d)
			continue
		}
		problems = append(problems, &ruleset.Problem{
			Rule: d.Rule.Name, Endpoint: d.Rule.Endpoint, Field: "endpoint", Source: d.Source,
			Message: fmt.Sprintf("the rule is put on %s: leave Endpoint empty there, or give it to WithRules", route),
		})
	}
	return declared, problems
}

// compile compiles the rules of a route; see [aspect.Adapter].
func (g *Guard) compile(set *ruleset.Set, route ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	fallbacks := slices.Collect(maps.Keys(g.cfg.fallbacks))
	g.mu.Lock()
	anyMethod := g.anyMethod(route) != nil && !isNamed(route, set)
	g.mu.Unlock()
	return g.cfg.Compile(g.aspect, httpcall.Route{
		Endpoint: route, Params: httpcall.Params(route.Path), AnyMethod: anyMethod, Fallbacks: fallbacks,
	}, rules)
}

// Hold gives the lock under which the handler of a request's context runs: of several
// the one taken last; of further ones [core.Held] tells. It is nil outside a guard and
// where the handler runs without a lock; Release of nil is [core.ErrNotHeld]. The handler
// may release it early, after which its context has ended (see [Caller]), or hand it over
// to work that outlives the request. The guard then leaves it alone.
func Hold(ctx context.Context) *core.Hold { return httpcall.FrameOf(ctx).Hold() }

// Caller gives the context of the request as it came to the guard whose lock [Hold]
// gives: what a handler goes on with after it released that early, when its own context
// has ended. Without a lock it is ctx itself.
func Caller(ctx context.Context) context.Context { return httpcall.FrameOf(ctx).Caller(ctx) }
