package httplock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

	wraps   atomic.Bool                         // Middleware was called
	refused sync.Map                            // pattern of a router: *httpcall.Entry that cannot work
	methods atomic.Pointer[map[string][]string] // of the known routes, by path

	mu      sync.Mutex
	known   map[ruleset.Endpoint][]ruleset.Declared // the routes, with the rules put on them
	handled map[ruleset.Endpoint]bool               // the ones that Handle has registered, "*" for any method
}

// New makes a guard over a lock client, which stays the caller's to close. The error has
// every problem of the options, and of the rules as far as they do not depend on a route.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks)
	problems = append(problems, err)
	rules, err := cfg.sources.Provider()
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	g := &Guard{
		aspect: observed, cfg: cfg,
		known: map[ruleset.Endpoint][]ruleset.Declared{}, handled: map[ruleset.Endpoint]bool{},
	}
	g.methods.Store(&map[string][]string{})
	g.routes = aspect.NewRegistry(observed, aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Declared:  g.declared,
		Compile:   g.compile,
		Changes:   httpcall.Changes,
		Unguarded: g.unguarded,
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

// Mux is what [Guard.Handle] registers a handler with: a *[http.ServeMux], or a router that
// has its method and sets the Pattern of a request, such as chi's.
type Mux interface {
	Handle(pattern string, handler http.Handler)
}

// Handle is mux.Handle with the rules of the pattern's route around the handler: those
// given, which need names if there are several, with those of the guard's set laid over
// them; or those of the set alone. Rules given here may leave Endpoint empty.
//
// The pattern is the whole one. A router below another, such as one of chi's Route and Mount,
// registers only a part of it: requests are then answered with 500, and a warning to observers
// names [Guard.Middleware] for that place.
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
	g.mu.Lock()
	g.handled[route] = true
	g.mu.Unlock()
	var errs []error
	for _, entry := range g.rules.Renew(routes...) { // they may have served requests
		if entry != nil {
			errs = append(errs, entry.Err)
		}
	}
	mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry := g.at(route, r.Method)
		if r.Pattern != pattern && !samePath(cutPattern(r.Pattern), route) {
			entry = g.refuse(r.Pattern, fmt.Sprintf("Handle has registered %q, but the router has matched %q: a router below another does not know its whole pattern; "+
				"wrap the handler with Middleware there, as chi's With does, and give Check the whole pattern; of a router that sets no Pattern, set it before Middleware", pattern, r.Pattern))
		}
		g.serve(entry, w, r, handler)
	}))
	return errors.Join(errs...)
}

// HandleFunc is [Guard.Handle] for a function.
func (g *Guard) HandleFunc(mux Mux, pattern string, handler func(http.ResponseWriter, *http.Request), rules ...ruleset.Rule) error {
	return g.Handle(mux, pattern, http.HandlerFunc(handler), rules...)
}

// Middleware runs a handler under the rules that the guard's set has for the route of a
// request. The route is what the router has matched: the Pattern of the request, which has to
// be one of those that [Guard.Check] was given. So put Middleware around the handlers of
// routes, behind the router. Around a whole [http.ServeMux], or with another router behind it,
// it cannot know the route: while the set has rules it answers 500, and observers are warned.
//
// Of a router that leaves the method out of its patterns, such as chi, the route is known if
// Check was given one method of the path, or if one rule is for all. Otherwise the answer is
// 500, too: write the method that the router has matched into the Pattern, as examples/routers
// does. The method of a request is not what was matched, because a layer before the guard may
// have changed it.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	g.wraps.Store(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := r.Pattern
		entry := g.matched(pattern, r.Method)
		g.serve(entry, w, r, next)
		if entry == nil && r.Pattern != pattern { // the pattern is one of Check's, and a part of others
			g.warnTooEarly(pattern, g.matched(r.Pattern, r.Method))
		}
	})
}

// warnTooEarly warns once of a pattern without rules behind which another router has matched a
// route with rules.
func (g *Guard) warnTooEarly(pattern string, later *httpcall.Entry) {
	if later == nil {
		return
	}
	g.refuse(pattern, "").WarnOnce(g.aspect, &ruleset.Problem{Endpoint: later.Endpoint, Message: fmt.Sprintf("Middleware saw a request as %q, before another router had matched it, "+
		"and took no lock there: put it around the handlers behind that router, as Handle does and chi's With", pattern)})
}

// serve serves a request under the rules of an entry, nil without any.
func (g *Guard) serve(entry *httpcall.Entry, w http.ResponseWriter, r *http.Request, next http.Handler) {
	if entry == nil || !httpcall.Serve(entry, g.rules, &call{guard: g, entry: entry, w: httpcall.WriterOf(w), r: r, next: next}) {
		next.ServeHTTP(w, r)
	}
}

// matched returns the entry for a request whose router has matched a pattern. If the pattern does not
// show the route, that entry cannot work. For a known route matched takes no lock and does not allocate.
func (g *Guard) matched(pattern, method string) *httpcall.Entry {
	route := cutPattern(pattern)
	methods := g.methodsAt(route.Path)
	switch {
	case slices.Contains(methods, route.Method), slices.Contains(methods, "*"):
		return g.at(route, method)
	case route.Method != "*" && isExact(route, g.rules.Set()): // Check was not called
		return g.at(route, method)
	case route.Method == "*" && len(methods) > 0:
		return g.oneOf(methods, pattern)
	case !slices.ContainsFunc(g.rules.Set().Rules(), isHTTP):
		return nil
	case pattern == "":
		return g.refuse(pattern, "Middleware has met a request that has no Pattern, so that its route is not known: put Middleware around handlers behind the router, "+
			"as Handle does and chi's With; of a router that sets no Pattern, set it before Middleware")
	default:
		return g.refuse(pattern, fmt.Sprintf("Middleware has met the pattern %q, which Check was not given: give Check all patterns that Middleware guards; "+
			"if another router follows, put Middleware around the handlers behind that router", pattern))
	}
}

// oneOf returns the entry for the methods of a path if their rules are the same, because the pattern
// does not show which method the router has matched.
func (g *Guard) oneOf(methods []string, pattern string) *httpcall.Entry {
	first := g.at(ruleset.Route(methods[0], pattern), "")
	for _, method := range methods[1:] {
		other := g.at(ruleset.Route(method, pattern), "")
		if (other == nil) != (first == nil) || !slices.Equal(other.Rules(), first.Rules()) {
			return g.refuse(pattern, fmt.Sprintf("the router leaves the method out of its pattern %q, and the rules for its methods differ (%s): write the method that it has matched "+
				"into Request.Pattern before Middleware, such as %q, as examples/routers does for chi and echo", pattern, strings.Join(methods, ", "), methods[0]+" "+pattern))
		}
	}
	return first
}

// refuse returns an entry for requests whose route is not known. It is the same one for each request
// with a pattern, so that observers are warned once.
func (g *Guard) refuse(pattern, why string) *httpcall.Entry {
	e, _ := g.refused.LoadOrStore(pattern, &httpcall.Entry{Endpoint: cutPattern(cmp.Or(pattern, "*")), Err: errors.New(why)})
	return e.(*httpcall.Entry) //nolint:errcheck,forcetypeassert // the map has no others
}

// unguarded says why no request comes to the guard for a route; see [aspect.Adapter].
func (g *Guard) unguarded(_ ruleset.Provider, route ruleset.Endpoint) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wraps.Load() || g.handled[route] || g.handled[ruleset.Route("*", route.Path)] {
		return ""
	}
	return fmt.Sprintf("nothing guards %s: Handle has not registered it, and Middleware was never called: use one of them for its handler, before Check", route.Label())
}

// at is what is in force for a request that matched a pattern's route: the route and its
// rules are of one set. A route that is known costs one look-up, which takes no lock and does
// not allocate.
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
// [Guard.Handle] and those given here: what [Guard.Middleware] guards, which answers 500 for
// patterns that Check was not given.
//
// Rules that match no route, and routes with a method other than GET, HEAD, OPTIONS and
// TRACE that have no rule, are errors, warnings to observers, or nothing, as the set's
// [ruleset.Settings] say. A rule for a route that Handle has not registered is an error if
// Middleware was never called. From then on a reload is judged likewise, and refused if it
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
	return slices.Collect(maps.Keys(g.known))
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
		d := ruleset.Declared{Rule: r}
		if !slices.ContainsFunc(before, func(b ruleset.Declared) bool { return reflect.DeepEqual(b, d) }) {
			declared = append(declared, d)
		}
	}
	g.known[route] = declared
	if !slices.Contains(g.methodsAt(route.Path), route.Method) {
		g.addMethod(route)
	}
}

// addMethod adds the method of a route to the methods of its path.
func (g *Guard) addMethod(route ruleset.Endpoint) {
	methods := maps.Clone(*g.methods.Load())
	methods[route.Path] = slices.Sorted(slices.Values(append(slices.Clip(methods[route.Path]), route.Method)))
	g.methods.Store(&methods)
}

// methodsAt are the methods of the routes of a path.
func (g *Guard) methodsAt(path string) []string { return (*g.methods.Load())[path] }

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
