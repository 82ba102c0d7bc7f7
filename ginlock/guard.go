package ginlock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
)

// Guard makes handlers that take locks. Make it with [New]; one per process is
// enough, and it serves any number of engines.
type Guard struct {
	aspect  *aspect.Aspect
	trial   *aspect.Aspect // without observers, to compile what may never be used
	cfg     config
	routing routing

	mu       sync.Mutex
	chained  []*chained                    // of Handler
	placed   []*endpoint                   // of Handle
	declared []*declared                   // of Middleware
	seen     map[ruleset.Endpoint][]string // routes with their parameters
	checked  bool                          // seen has all routes of an engine
	noted    []error
}

// New makes a guard over a lock client, which stays the caller's to close. The
// error has every problem of the options.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks, append(slices.Clone(cfg.rules), cfg.observers...)...)
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("ginlock: New: %w", err)
	}
	trial, err := aspect.New(locks, cfg.rules...)
	if err != nil {
		return nil, fmt.Errorf("ginlock: New: %w", err)
	}
	return &Guard{aspect: observed, trial: trial, cfg: cfg, seen: make(map[ruleset.Endpoint][]string)}, nil
}

// Aspect is what compiles and runs the rules of the guard. It has the kill switch:
// [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// compile compiles one route with its rules, by the given function.
func (g *Guard) compile(route ruleset.Endpoint, params []string, by func(aspect.Site) (*aspect.Point, error)) *endpoint {
	return g.compileWith(route, httpvars.Config{PathParams: params}, by)
}

// compileWith is compile with what is known of the path parameters.
func (g *Guard) compileWith(route ruleset.Endpoint, vars httpvars.Config, by func(aspect.Site) (*aspect.Point, error)) *endpoint {
	e := &endpoint{guard: g, route: route}
	vars.Body, vars.MaxBody = g.cfg.bodies[route], g.cfg.maxBody
	vars.CookieValue, vars.Registered = cookieValue, g.cfg.registered()
	e.vars, e.broken = httpvars.New(vars)
	if e.broken != nil {
		e.broken = fmt.Errorf("ginlock: %s: %w", route, e.broken)
		return e
	}
	e.point, e.broken = by(aspect.Site{
		Endpoint:  route,
		Schema:    e.vars.Schema(),
		Late:      lateVariables(),
		Fallbacks: slices.Collect(maps.Keys(g.cfg.fallbacks)),
	})
	if e.broken != nil {
		return e
	}
	e.buffer = g.cfg.bufferOf(route)
	return e
}

// compileRules compiles rules written in Go for the route on which they were put.
func (g *Guard) compileRules(with *aspect.Aspect, route ruleset.Endpoint, params []string, rules []ruleset.Rule) *endpoint {
	return g.compile(route, params, compiling(with, route, rules))
}

func compiling(with *aspect.Aspect, route ruleset.Endpoint, rules []ruleset.Rule) func(aspect.Site) (*aspect.Point, error) {
	return func(site aspect.Site) (*aspect.Point, error) {
		point, err := with.Compile(site, rules...)
		return point, errors.Join(misplaced(route, rules), err)
	}
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

// Handler makes a handler that runs the rest of its chain under the locks of the
// rules. Put it before the handler of a route, or on a group. The rules are
// compiled for a route at its first request; [Guard.Check] tells before whether
// they fit. A rule without a name that is within another such Handler on a route gets
// a number after its name there: "POST /orders (2)".
//
// Requests without a route (404, 405) are guarded too, as route "*", but not by
// rules that read path, which have nothing to read there.
func (g *Guard) Handler(rules ...ruleset.Rule) gin.HandlerFunc {
	h := newChained(g, caller(), rules)
	g.mu.Lock()
	g.chained = append(g.chained, h)
	g.mu.Unlock()
	return h.serve
}

// Middleware makes a handler that runs the rest of its chain under the locks of
// the rules that p, a [*ruleset.Set] or a [*ruleset.Live], has for the route of the
// request. Routes without rules cost one lookup. Rules for other transports than HTTP
// are left alone; requests without a route (404, 405) match no rule. The same p gives
// the same handler again.
//
// What is wrong with the rules is for [Guard.Check] to return. A reload of a Live set
// is refused, and the old rules stay, if Check would have something to say about the
// new ones: it compiles them for all routes of the engines that Check was given, and
// for others that had a request. All routes change at once; a request ends under the
// rules that it began with. The guard is subscribed for as long as there is the Live
// set: let them live together.
//
// Give it to Use before the routes are registered: gin puts it on the chains of those
// that come later only, and the others run unlocked. Its place in the chain is told in
// the package comment.
//
// With a nil p, such as an ignored error leaves, every route answers 500, and Check
// says so.
func (g *Guard) Middleware(p ruleset.Provider) gin.HandlerFunc {
	if err := ruleset.CheckProvider(p); err != nil {
		return g.withoutRules(fmt.Errorf("ginlock: Middleware: %w", err))
	}
	d := g.declaredFrom(p)
	d.start() // not under the guard's mutex, which prepare takes
	return d.serve
}

// withoutRules makes a handler that refuses every request of a route: which ones have
// rules is not known.
func (g *Guard) withoutRules(why error) gin.HandlerFunc {
	g.note(why)
	return func(c *gin.Context) {
		if path := c.FullPath(); path != "" {
			(&endpoint{guard: g, route: ruleset.Route("*", path), broken: why}).serve(c)
		}
	}
}

func (g *Guard) declaredFrom(p ruleset.Provider) *declared {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.declared {
		if d.provider == p {
			return d
		}
	}
	d := &declared{guard: g, provider: p}
	g.declared = append(g.declared, d)
	return d
}
