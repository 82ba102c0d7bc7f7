package ginlock

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard creates handlers that take locks. Create it with [New]. One guard per process is enough; it serves any number
// of engines.
type Guard struct {
	server  server
	numbers httpcall.Numbers
	handled atomic.Bool // Handle was called
	locks   *Guard      // the guard that guardOf returns; nil in that guard itself

	mu          sync.Mutex
	chained     []*chainHandler // the handlers that Handler or Lock returned
	middlewares map[ruleset.Provider]*middleware
	problems    []error // problems for Check to report
}

// middleware is the handler that [Guard.Middleware] returns for one provider.
type middleware struct {
	handler gin.HandlerFunc
	missing map[ruleset.Endpoint]bool // contains each route with a chain that lacks the handler
}

// New returns a guard that takes its locks from a lock client. The caller closes the client. The error contains every
// problem of the options.
func New(locks *core.Client, opts ...Option) (*Guard, error) {
	cfg, problems := newConfig(opts)
	observed, err := aspect.New(locks, cfg.aspect...)
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, fmt.Errorf("ginlock: New: %w", err)
	}
	shared, err := guardOf(locks)
	if err != nil {
		return nil, fmt.Errorf("ginlock: New: %w", err)
	}
	g := newGuard(locks, observed, cfg)
	g.locks = shared
	g.server.routes.Include(shared.server.routes)
	return g, nil
}

// newGuard returns a guard without rules.
func newGuard(locks *core.Client, a *aspect.Aspect, cfg config) *Guard {
	locks.ForAdapters().FindThrough(gin.ContextRequestKey)
	g := &Guard{
		server:      server{aspect: a, cfg: cfg, routing: routing{params: map[ruleset.Endpoint][]string{}}},
		middlewares: map[ruleset.Provider]*middleware{},
	}
	routes := g.server.adapter()
	routes.Unguarded = g.unguarded
	g.server.routes = aspect.NewRegistry(a, routes)
	return g
}

// Aspect returns the aspect that compiles and runs the rules of the guard. Its [aspect.Aspect.Suspend] is the kill
// switch.
func (g *Guard) Aspect() *aspect.Aspect { return g.server.aspect }

// Handler returns a handler that runs the rest of its chain under the locks of the rules. Put it before the handler of a
// route, or on a group. [Guard.Check] compiles the rules for the routes on whose chains the handler is. Otherwise the guard
// compiles them at the first request of a route. If a route has several Handlers, each of one rule without a name, the
// guard appends a number to the default name, such as "POST /orders (2)". The first Handler of the chain gets no number;
// without Check, the Handler that a request reached first.
//
// Requests without a route (404, 405) are guarded too, as route "*". Rules that read path or route do not guard
// them, because such requests have neither. If a request without a route yields no key, it is still answered with 404
// or 405: gin answers, and neither the handlers that the guard protects nor a fallback run. Strategy proceed works as
// always.
func (g *Guard) Handler(rules ...ruleset.Rule) gin.HandlerFunc {
	return g.handlerAt("Handler at "+httpcall.CallSite(), rules).handler
}

// handlerAt returns the handler for a call of Handler or Lock at where. The same rules at the same where get the same
// handler, so the program may call Handler for every request.
func (g *Guard) handlerAt(where string, rules []ruleset.Rule) *chainHandler {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.chained {
		if h.where == where && reflect.DeepEqual(h.rules, rules) {
			return h
		}
	}
	h := newChainHandler(&g.server, &g.numbers, where, rules)
	g.chained = append(g.chained, h)
	return h
}

// Middleware returns a handler that runs the rest of its chain under the rules that p has for the route of the request. p
// is a [*ruleset.Set] or a [*ruleset.Live]. A route without rules costs one look-up. The guard ignores rules
// for transports other than HTTP. Requests without a route (404, 405) match no rule. For the same p, Middleware returns
// the same handler.
//
// [Guard.Check] returns the problems of the rules. Pass the handler to Use before the routes are registered. See
// Place in the chain, and for reloads Rule files, in the package comment.
//
// If p is nil, for example because the program ignored an error, every route answers 500, and Check reports it.
func (g *Guard) Middleware(p ruleset.Provider) gin.HandlerFunc {
	if err := ruleset.CheckProvider(p); err != nil {
		return g.refuseAll(fmt.Errorf("ginlock: Middleware: %w", err))
	}
	t, err := g.server.routes.Table(p)
	if err != nil {
		g.recordProblem(fmt.Errorf("ginlock: Middleware: no reload will take effect: %w", err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.middlewares[p]
	if m == nil {
		m = &middleware{handler: g.server.handlerFor(t), missing: map[ruleset.Endpoint]bool{}}
		g.middlewares[p] = m
	}
	return m.handler
}

// refuseAll returns a handler that refuses every request with a route, because it is not known which routes have rules.
func (g *Guard) refuseAll(err error) gin.HandlerFunc {
	g.recordProblem(err)
	return func(c *gin.Context) {
		if path := c.FullPath(); path != "" {
			g.server.refuse(c, ruleset.Route("*", path), err)
		}
	}
}

// recordProblem records a problem for Check.
func (g *Guard) recordProblem(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problems = append(g.problems, err)
}

// unguarded implements [aspect.Adapter].Unguarded.
func (g *Guard) unguarded(p ruleset.Provider, route ruleset.Endpoint) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.middlewares[p]; m == nil || !m.missing[route] {
		return ""
	}
	return "Middleware is not on the chain of the route, so that its handler runs unlocked: give it to Use of the engine or group before the route is registered " +
		"(a handler that calls it is not seen: pass guard.Middleware(rules) to Use itself, and write the condition of the handler as the rule's when)"
}

// Handle registers handlers with r.Handle and runs them under the rule. For several rules use [Guard.Handler] or a set of
// [Guard.Middleware]. r is an engine or a group. Its base path and its handlers apply as always.
//
// The error contains every problem of the rule. The route then answers 500. Without handlers, or with an invalid
// method, Handle registers nothing and returns an error. [Guard.Check] returns each error of Handle again. Like
// r.Handle, Handle panics if the path conflicts with another route.
func (g *Guard) Handle(r gin.IRoutes, method, path string, rule ruleset.Rule, handlers ...gin.HandlerFunc) error {
	g.handled.Store(true)
	base, err := checkRegistration(r, method, handlers)
	if err != nil {
		err = fmt.Errorf("ginlock: Handle(%q, %q): %w", method, path, err)
		g.recordProblem(err)
		return err
	}
	full := joinPath(base, path)
	at := route{Endpoint: canonical(ruleset.Route(method, full)), params: httpcall.GinParams(full)}
	g.server.routing.recordParams(at)
	e := g.server.compileFor(at.Endpoint, []ruleset.Rule{rule})
	g.server.routes.Place(e)
	guarded := func(c *gin.Context) { serve(c, &g.server.cfg, e, nil) }
	r.Handle(method, path, slices.Concat([]gin.HandlerFunc{guarded}, handlers)...)
	return e.Err
}

var methodName = regexp.MustCompile(`^[A-Z]+$`)

// checkRegistration returns the base path of r. It returns an error for arguments with which gin would panic.
func checkRegistration(r gin.IRoutes, method string, handlers []gin.HandlerFunc) (base string, err error) {
	var errs []error
	group, ok := r.(interface{ BasePath() string })
	if !ok {
		errs = append(errs, fmt.Errorf("%T has no base path: give a *gin.Engine or a *gin.RouterGroup", r))
	} else {
		base = group.BasePath()
	}
	if !methodName.MatchString(method) {
		errs = append(errs, errors.New(`no HTTP method: write one in upper case, such as "POST"`))
	}
	if len(handlers) == 0 {
		errs = append(errs, errors.New("no handler: give at least one after the rule"))
	}
	return base, errors.Join(errs...)
}
