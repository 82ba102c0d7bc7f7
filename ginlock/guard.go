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
	aspect *aspect.Aspect
	trial  *aspect.Aspect // without observers, to compile what may never be used
	cfg    config

	mu       sync.Mutex
	chained  []*chained  // of Handler
	placed   []*endpoint // of Handle
	declared []*declared // of Middleware
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
	return &Guard{aspect: observed, trial: trial, cfg: cfg}, nil
}

// Aspect is what compiles and runs the rules of the guard. It has the kill switch:
// [aspect.Aspect.Suspend].
func (g *Guard) Aspect() *aspect.Aspect { return g.aspect }

// compile compiles one route with its rules, by the given function.
func (g *Guard) compile(route ruleset.Endpoint, params []string, by func(aspect.Site) (*aspect.Point, error)) *endpoint {
	e := &endpoint{guard: g, route: route}
	e.vars, e.broken = httpvars.New(httpvars.Config{
		PathParams:  params,
		Body:        g.cfg.bodies[route],
		MaxBody:     g.cfg.maxBody,
		CookieValue: cookieValue,
		Registered:  g.cfg.registered(),
	})
	if e.broken != nil {
		e.broken = fmt.Errorf("ginlock: %s: %w", route, e.broken)
		return e
	}
	e.point, e.broken = by(aspect.Site{
		Endpoint:  route,
		Schema:    e.vars.Schema(),
		Fallbacks: slices.Collect(maps.Keys(g.cfg.fallbacks)),
	})
	if e.broken != nil {
		return e
	}
	e.buffer = g.cfg.bufferOf(route)
	e.waits = slices.ContainsFunc(e.point.Rules(), mayWait)
	return e
}

// mayWait reports whether a request may wait for the lock of the rule.
func mayWait(r *ruleset.Resolved) bool {
	return r.WaitTime != ruleset.NoWait && r.Debounce == 0 && !r.Disabled && !r.DryRun
}

// compileRules compiles rules written in Go for the route on which they were put.
func (g *Guard) compileRules(with *aspect.Aspect, route ruleset.Endpoint, params []string, rules []ruleset.Rule) *endpoint {
	return g.compile(route, params, func(site aspect.Site) (*aspect.Point, error) {
		point, err := with.Compile(site, rules...)
		return point, errors.Join(misplaced(route, rules), err)
	})
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
// they fit. Requests without a route (404, 405) are guarded too, as route "*".
func (g *Guard) Handler(rules ...ruleset.Rule) gin.HandlerFunc {
	h := newChained(g, caller(), rules)
	g.mu.Lock()
	g.chained = append(g.chained, h)
	g.mu.Unlock()
	return h.serve
}

// Middleware makes a handler that runs the rest of its chain under the locks of
// the rules that the set has for the route of the request. Routes without rules
// cost one lookup. Rules for other transports than HTTP are left alone; requests
// without a route (404, 405) match no rule.
//
// Its place in the chain is told in the package comment.
func (g *Guard) Middleware(set *ruleset.Set) gin.HandlerFunc {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range g.declared {
		if d.set == set {
			return d.serve
		}
	}
	d := newDeclared(g, set)
	g.declared = append(g.declared, d)
	return d.serve
}
