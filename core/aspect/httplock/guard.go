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

// Guard wraps handlers so that they run under locks. Create it with [New]. One guard per process is enough; it serves
// any number of routers. It is safe for concurrent use, owns no goroutine and needs no Close. If its set is a
// [ruleset.Live], the guard follows every reload until the set is closed.
type Guard struct {
	aspect *aspect.Aspect
	cfg    config
	routes *aspect.Registry[ruleset.Endpoint, httpcall.Endpoint]
	rules  *aspect.Table[ruleset.Endpoint, httpcall.Endpoint]

	wraps   atomic.Bool                         // Middleware was called
	refused sync.Map                            // pattern of a router -> *httpcall.Entry that refuses every request
	methods atomic.Pointer[map[string][]string] // the methods of the known routes, by path

	mu      sync.Mutex
	known   map[ruleset.Endpoint][]ruleset.Declared // the known routes, with the rules that Handle put on them
	handled map[ruleset.Endpoint]bool               // the routes that Handle registered; method "*" for any method
	failed  []error                                 // the errors of Handle when it registered nothing

	shared *Guard // the guard that guardOf returns; nil in that guard itself

	// The guard that guardOf returns uses the fields below.
	locks   []*lock // guarded by mu
	numbers httpcall.Numbers
}

// New returns a guard that takes its locks from a lock client. The caller closes the client. The error contains every
// problem of the options and every problem of the rules that does not depend on a route.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks)
	problems = append(problems, err)
	rules, err := cfg.sources.Provider()
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	shared, err := guardOf(locks)
	if err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	g := newGuard(observed, cfg)
	g.shared = shared
	g.routes.Include(shared.routes)
	if g.rules, err = g.routes.Table(rules); err != nil {
		return nil, fmt.Errorf("httplock: New: %w", err)
	}
	return g, nil
}

// newGuard returns a guard without a set.
func newGuard(a *aspect.Aspect, cfg config) *Guard {
	g := &Guard{aspect: a, cfg: cfg, known: map[ruleset.Endpoint][]ruleset.Declared{}, handled: map[ruleset.Endpoint]bool{}}
	g.methods.Store(&map[string][]string{})
	g.routes = aspect.NewRegistry(a, aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Declared:  g.declared,
		Compile:   g.compile,
		Changes:   httpcall.Changes,
		Unguarded: g.unguarded,
		Hint:      `write the pattern as it is registered, with a method: "POST /orders/{id}/pay"; give Check the patterns that Middleware guards; or delete the rule`,
	})
	return g
}

// Aspect returns the aspect that compiles and runs the rules of the guard. Its [aspect.Aspect.Suspend] is the kill
// switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// Mux registers handlers for [Guard.Handle]. A *[http.ServeMux] implements it. So does every router with the same method that
// sets the Pattern of a request, such as chi's.
type Mux interface {
	Handle(pattern string, handler http.Handler)
}

// Handle registers handler with mux.Handle and runs it under the rules of its route. The rules of the guard's set override
// the given rules, field by field. Without given rules, only the rules of the set apply. The given rules may leave Endpoint
// empty. If there are several, each needs a name.
//
// pattern has to be the whole pattern. A router below another router, such as a router of chi's Route and Mount,
// registers only a part of it. The guard then answers requests with 500, and a warning to observers recommends
// [Guard.Middleware] for that router.
//
// The error contains every problem of the rules. The route then answers 500. Without a mux, a handler or a valid
// pattern, Handle registers nothing. [Guard.Check] returns each error of Handle again. Like mux.Handle, Handle panics if
// the pattern conflicts with another pattern.
func (g *Guard) Handle(mux Mux, pattern string, handler http.Handler, rules ...ruleset.Rule) error {
	if mux == nil || handler == nil {
		return g.recordFailed(fmt.Errorf("httplock: Handle(%q): the mux or the handler is nil", pattern))
	}
	route, err := routeOf(pattern)
	if err != nil {
		return g.recordFailed(fmt.Errorf("httplock: Handle(%q): %w", pattern, err))
	}
	routes := methodsOf(route)
	for _, e := range routes {
		g.declare(e, rules)
	}
	g.mu.Lock()
	g.handled[route] = true
	g.mu.Unlock()
	var errs []error
	for _, entry := range g.rules.Renew(routes...) { // the routes may already have served requests
		if entry != nil {
			errs = append(errs, entry.Err)
		}
	}
	mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry := g.at(route, r.Method)
		if r.Pattern != pattern && !samePath(cutPattern(r.Pattern), route) {
			entry = g.refuse(r.Pattern, fmt.Sprintf("Handle has registered %q, but the router has matched %q: a router below another router does not know the whole pattern; "+
				"wrap the handler with Middleware there, as chi's With does, and give Check the whole pattern; if the router sets no Pattern, set it before Middleware", pattern, r.Pattern))
		}
		g.serve(entry, w, r, handler)
	}))
	return errors.Join(errs...)
}

// recordFailed records and returns the error of a registration that failed.
func (g *Guard) recordFailed(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed = append(g.failed, err)
	return err
}

// HandleFunc calls [Guard.Handle] for a function.
func (g *Guard) HandleFunc(mux Mux, pattern string, handler func(http.ResponseWriter, *http.Request), rules ...ruleset.Rule) error {
	return g.Handle(mux, pattern, http.HandlerFunc(handler), rules...)
}

// Middleware returns a handler that runs next under the rules that the guard's set has for the route of the request. The
// route is the Pattern that the router matched. Give that pattern to [Guard.Check]. Put Middleware around the handlers of
// routes, so that the router calls it. Around a whole [http.ServeMux], or before another router, Middleware cannot determine
// the route. It then answers 500 and warns observers, unless the set has no rules.
//
// Some routers, such as chi, leave the method out of their patterns. Middleware can then determine the rules if Check
// was given only one method of the path, or if the rules for all methods are the same. Otherwise it answers 500, too:
// write the method that the router matched into the Pattern, as examples/routers does. Middleware does not trust the
// method of the request, because a layer before the guard may have changed it.
func (g *Guard) Middleware(next http.Handler) http.Handler {
	g.wraps.Store(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := r.Pattern
		entry := g.entryFor(pattern, r.Method)
		g.serve(entry, w, r, next)
		if entry == nil && r.Pattern != pattern { // Check was given the pattern, which is also a part of other patterns
			g.warnTooEarly(pattern, g.entryFor(r.Pattern, r.Method))
		}
	})
}

// warnTooEarly warns observers, once for each pattern, that Middleware ran before another router matched a route with
// rules. later is the entry of that route, nil if it has no rules.
func (g *Guard) warnTooEarly(pattern string, later *httpcall.Entry) {
	if later == nil {
		return
	}
	g.refuse(pattern, "").WarnOnce(g.aspect, &ruleset.Problem{Endpoint: later.Endpoint, Message: fmt.Sprintf("Middleware saw a request as %q, before another router had matched it, "+
		"and took no lock there: put it around the handlers behind that router, as Handle does and chi's With", pattern)})
}

// serve serves a request under the rules of an entry. The entry is nil if there are none.
func (g *Guard) serve(entry *httpcall.Entry, w http.ResponseWriter, r *http.Request, next http.Handler) {
	if entry == nil {
		next.ServeHTTP(w, r)
		return
	}
	c := call{cfg: &g.cfg, entry: entry, w: httpcall.WriterOf(w), r: r, next: next}
	c.serve(g.aspect, g.rules)
}

// entryFor returns the entry for a request whose router matched a pattern. If the pattern does not determine the
// route, the entry refuses the request. For a known route, entryFor takes no lock and does not allocate.
func (g *Guard) entryFor(pattern, method string) *httpcall.Entry {
	route := cutPattern(pattern)
	methods := g.methodsAt(route.Path)
	switch {
	case slices.Contains(methods, route.Method), slices.Contains(methods, "*"):
		return g.at(route, method)
	case route.Method != "*" && isExact(route, g.rules.Set()): // Check was not called
		return g.at(route, method)
	case route.Method == "*" && len(methods) > 0:
		return g.commonEntry(methods, pattern)
	case !slices.ContainsFunc(g.rules.Set().Rules(), isHTTP):
		return nil
	case pattern == "":
		return g.refuse(pattern, "Middleware has met a request that has no Pattern, so that its route is not known: put Middleware around handlers behind the router, "+
			"as Handle does and chi's With; if the router sets no Pattern, set it before Middleware")
	default:
		return g.refuse(pattern, fmt.Sprintf("Middleware has met the pattern %q, which Check was not given: give Check all patterns that Middleware guards; "+
			"if another router follows, put Middleware around the handlers behind that router", pattern))
	}
}

// commonEntry returns the entry for a pattern that does not show which method the router matched. If the rules for all
// methods of the path are the same, it returns the entry of one of them. Otherwise the entry refuses the request.
func (g *Guard) commonEntry(methods []string, pattern string) *httpcall.Entry {
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

// refuse returns an entry that refuses requests whose route is not known. It returns the same entry for the same pattern, so
// that observers get one warning.
func (g *Guard) refuse(pattern, reason string) *httpcall.Entry {
	e, _ := g.refused.LoadOrStore(pattern, &httpcall.Entry{Endpoint: cutPattern(cmp.Or(pattern, "*")), Err: errors.New(reason)})
	return e.(*httpcall.Entry) //nolint:errcheck,forcetypeassert // the map has no other values
}

// unguarded implements [aspect.Adapter].Unguarded.
func (g *Guard) unguarded(_ ruleset.Provider, route ruleset.Endpoint) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wraps.Load() || g.handled[route] || g.handled[ruleset.Route("*", route.Path)] {
		return ""
	}
	return fmt.Sprintf("nothing guards %s: Handle has not registered it, and Middleware was never called: use one of them for its handler, before Check", route.Label())
}

// at returns the entry in force for a request that matched the route of a pattern; nil if there are no rules. Route and
// entry come from the same set, even during a reload. For a known route, at costs one look-up, takes no lock and does
// not allocate.
func (g *Guard) at(matched ruleset.Endpoint, method string) *httpcall.Entry {
	for {
		set := g.rules.Set()
		route := requestRoute(matched, method, set)
		entry, known := g.rules.Find(route)
		if !known {
			g.meet(route)
			entry = g.rules.At(route)
		}
		if g.rules.Set() == set { // otherwise a reload put another set into force
			return entry
		}
	}
}

// Check compares the rules of the guard with the routes of the program. It returns every problem as one
// [*ruleset.InvalidError], nil if it finds none. Call it after all routes are registered and before the server starts. The
// routes are the patterns given to [Guard.Handle] and the patterns given here. Give Check every
// pattern that [Guard.Middleware] guards: Middleware answers 500 for other patterns. A pattern without a method
// is a route for each method.
//
// A rule that matches no route is an error, a warning to observers, or ignored, as the [ruleset.Settings] of the
// set say. The same holds for a route without a rule, unless its method is GET, HEAD, OPTIONS or TRACE. A rule for a
// route that Handle did not register is an error if Middleware was never called. A guard without any rules is an
// error, unless the client has a [Lock]. So is a route for which another guard of the client has the same set. After
// Check, the guard checks every reload in the same way and refuses a reload that does not pass.
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
	report := g.routes.Check(append(all, g.namedByRules()...)...)
	g.cfg.Unmatched(report, all)
	g.mu.Lock()
	for _, err := range g.failed {
		report.Add(ruleset.Endpoint{}, err)
	}
	g.mu.Unlock()
	if len(report.Errors())+len(g.rules.Entries()) == 0 && g.cfg.sources.IsEmpty() && !g.shared.hasLocks() {
		report.Add(ruleset.Endpoint{}, errors.New("the guard has no rules: give it WithSet or WithRules, or give Handle a rule"))
	}
	return g.aspect.Conclude(report)
}

// WriteRoutes writes the names that rules of this program may use, as JSON: the routes that were given to [Guard.Handle] and
// [Guard.Check], and the variables and fallbacks of the guard. See [httpcall.Config.WriteRoutes] for the format.
// `interlock check --routes` reads it to check a rule file without the program.
func (g *Guard) WriteRoutes(w io.Writer) error {
	return g.cfg.WriteRoutes(w, g.all(), slices.Collect(maps.Keys(g.cfg.fallbacks)))
}

// hasLocks reports whether Lock was called.
func (g *Guard) hasLocks() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.locks) > 0
}

// all returns the known routes.
func (g *Guard) all() []ruleset.Endpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.known))
}

// namedByRules returns the routes that match a pattern without a method and whose method only a rule of the set names.
func (g *Guard) namedByRules() []ruleset.Endpoint {
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

// anyMethod returns the rules that Handle put on the pattern without a method that has the path of a route; nil if no
// such pattern exists.
func (g *Guard) anyMethod(route ruleset.Endpoint) []ruleset.Declared {
	return g.known[ruleset.Route("*", route.Path)]
}

// meet records the route of a request, unless [Guard.namedByRules] returns it.
func (g *Guard) meet(route ruleset.Endpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known[route] == nil && g.anyMethod(route) == nil {
		g.known[route] = []ruleset.Declared{}
	}
}

// declare records a route and the rules that Handle puts on it. It does not add a rule twice, for example for another
// mux or host.
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

// addMethod adds the method of a route to methods. The caller holds mu.
func (g *Guard) addMethod(route ruleset.Endpoint) {
	methods := maps.Clone(*g.methods.Load())
	methods[route.Path] = slices.Sorted(slices.Values(append(slices.Clip(methods[route.Path]), route.Method)))
	g.methods.Store(&methods)
}

// methodsAt returns the methods of the known routes with a path.
func (g *Guard) methodsAt(path string) []string { return (*g.methods.Load())[path] }

// declared returns the rules that Handle put on a route, and the problems of rules that name another route.
func (g *Guard) declared(route ruleset.Endpoint) (declared []ruleset.Declared, problems []*ruleset.Problem) {
	g.mu.Lock()
	defer g.mu.Unlock()
	put, known := g.known[route]
	if !known { // only a rule names its method: the rules of the pattern apply to it, too
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

// compile implements [aspect.Adapter].Compile.
func (g *Guard) compile(set *ruleset.Set, route ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	fallbacks := slices.Collect(maps.Keys(g.cfg.fallbacks))
	g.mu.Lock()
	anyMethod := g.anyMethod(route) != nil && !isNamed(route, set)
	g.mu.Unlock()
	return g.cfg.Compile(g.aspect, httpcall.Route{
		Endpoint: route, Params: httpcall.Params(route.Path), AnyParam: route == unrouted(), AnyMethod: anyMethod, Fallbacks: fallbacks,
	}, rules)
}

// Hold returns the lock under which the handler of ctx runs. If there are several, it returns the lock that was
// taken last; [core.Held] finds the others. Hold returns nil outside a guard and if the handler runs without a
// lock. Release of a nil Hold returns [core.ErrNotHeld]. The handler may release the lock early, which cancels its
// context (see [Caller]), or hand it over to work that outlives the request. The guard then leaves the lock alone.
func Hold(ctx context.Context) *core.Hold { return httpcall.FrameOf(ctx).Hold() }

// Caller returns the context that the request had before the guard whose lock [Hold] returns. A handler that released
// the lock early continues with it, because its own context is canceled. Without a lock, Caller returns ctx.
func Caller(ctx context.Context) context.Context { return httpcall.FrameOf(ctx).Caller(ctx) }

// Lost returns the loss that canceled the context of a handler, nil if its lock was not lost. A loss matches [core.ErrLost].
// After a shutdown that did not wait for the handler, it matches [core.ErrClosed]. A handler that gives up because of a
// loss writes no answer, and the guard answers.
func Lost(ctx context.Context) error { return httpcall.LossOf(ctx) }
