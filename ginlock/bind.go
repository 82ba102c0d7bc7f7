package ginlock

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// chained is what [Guard.Handler] made: rules that learn their routes from
// requests.
type chained struct {
	guard   *Guard
	rules   []ruleset.Rule
	where   string // file:line of the call of Handler
	routes  *table // as many as requests have met
	handler gin.HandlerFunc
}

func newChained(g *Guard, where string, rules []ruleset.Rule) *chained {
	h := &chained{guard: g, where: where, rules: slices.Clone(rules)}
	h.handler = h.serve
	learning := g.adapter()
	learning.Compile = h.compile
	none, _ := ruleset.NewSet(nil)                                   //nolint:errcheck // nothing is wrong with no rules
	h.routes, _ = aspect.NewRegistry(g.aspect, learning).Table(none) //nolint:errcheck // a set takes every subscriber
	return h
}

func (h *chained) serve(c *gin.Context) {
	r, unknown := h.guard.routing.of(c)
	if unknown != nil {
		h.guard.refuseUnmatched(c, unknown)
		return
	}
	if e := h.guard.at(h.routes, r); e != nil {
		httpcall.Serve(e, h, newRouter(c, &h.guard.cfg))
	}
}

// compile compiles the rules for a route; nil if they pass it by.
func (h *chained) compile(_ *ruleset.Set, route ruleset.Endpoint, _ []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	e := h.guard.put(route, h.named(route))
	e.Extra.AnyMethod = !slices.ContainsFunc(h.rules, func(r ruleset.Rule) bool { return !r.Endpoint.IsZero() }) // r.Any and groups have routes of several methods
	if route == noRoute.Endpoint && e.Err == nil && (e.Point.Uses("path") || e.Point.Uses("route")) {
		return nil, e.Extra, nil // there is none
	}
	return e.Point, e.Extra, e.Err
}

// named gives a rule without a name one that no other Handler has on the route.
func (h *chained) named(route ruleset.Endpoint) []ruleset.Rule {
	if !h.unnamed() {
		return h.rules
	}
	n := h.guard.place(h, route)
	if n == 1 {
		return h.rules
	}
	rule := h.rules[0]
	rule.Name = fmt.Sprintf("%s (%d)", route.Label(), n)
	return []ruleset.Rule{rule}
}

// place numbers the Handlers without a name on a route, in the order in which the route
// met them. That one runs for some requests only does not matter.
func (g *Guard) place(h *chained, route ruleset.Endpoint) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.unnamed[route], h)
	if i < 0 {
		i = len(g.unnamed[route])
		g.unnamed[route] = append(g.unnamed[route], h)
	}
	return i + 1
}

func (h *chained) unnamed() bool { return len(h.rules) == 1 && h.rules[0].Name == "" }

// Handle is r.Handle with a rule around the handlers. For several rules use [Guard.Handler] or a set of
// [Guard.Middleware]. r is an engine or a group, whose base path and handlers apply as always.
//
// The error has every problem of the rule; the route then answers 500, and
// [Guard.Check] returns the problems again. Nothing is registered if gin could not
// do it: without handlers, or with a method that is none. As r.Handle it panics
// when the path conflicts with another route.
func (g *Guard) Handle(r gin.IRoutes, method, path string, rule ruleset.Rule, handlers ...gin.HandlerFunc) error {
	g.handled.Store(true)
	base, err := registrable(r, method, handlers)
	if err != nil {
		return fmt.Errorf("ginlock: Handle(%q, %q): %w", method, path, err)
	}
	full := under(base, path)
	at := route{Endpoint: canonical(ruleset.Route(method, full)), params: httpcall.GinParams(full)}
	g.remember(at)
	e := g.put(at.Endpoint, []ruleset.Rule{rule})
	g.routes.Place(e)
	serve := func(c *gin.Context) { httpcall.Serve(e, nil, newRouter(c, &g.cfg)) }
	r.Handle(method, path, slices.Concat([]gin.HandlerFunc{serve}, handlers)...)
	return e.Err
}

var methodName = regexp.MustCompile(`^[A-Z]+$`)

// registrable checks what gin would panic about, and gives the base path of r.
func registrable(r gin.IRoutes, method string, handlers []gin.HandlerFunc) (base string, err error) {
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

// caller is the place in the program that called an exported function.
func caller() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "ginlock.Handler"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
