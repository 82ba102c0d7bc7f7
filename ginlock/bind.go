package ginlock

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// chained is what [Guard.Handler] made: rules that learn their routes from
// requests.
type chained struct {
	guard  *Guard
	rules  []ruleset.Rule
	where  string // file:line of the call of Handler
	routes routes
}

func newChained(g *Guard, where string, rules []ruleset.Rule) *chained {
	return &chained{guard: g, where: where, rules: slices.Clone(rules)}
}

func (h *chained) serve(c *gin.Context) {
	route := routeOf(c)
	e, known := h.routes.find(route)
	if !known {
		e = h.routes.add(route, func() *endpoint {
			return h.guard.compileRules(h.guard.aspect, route, paramsOf(c), h.rules)
		})
	}
	e.serve(c)
}

// declared is what [Guard.Middleware] made: rules that name their routes.
type declared struct {
	guard  *Guard
	set    *ruleset.Set
	routes routes
}

func newDeclared(g *Guard, set *ruleset.Set) *declared { return &declared{guard: g, set: set} }

func (d *declared) serve(c *gin.Context) {
	path := c.FullPath()
	if path == "" {
		return
	}
	route := ruleset.Route(c.Request.Method, path)
	e, known := d.routes.find(route)
	if !known {
		e = d.add(route, paramsOf(c))
	}
	if e != nil {
		e.serve(c)
	}
}

// add compiles the rules of the set for a route; nil if there are none.
func (d *declared) add(route ruleset.Endpoint, params []string) *endpoint {
	return d.routes.add(route, func() *endpoint {
		rules := d.set.Match(route)
		if len(rules) == 0 {
			return nil
		}
		return d.guard.compile(route, params, func(site aspect.Site) (*aspect.Point, error) {
			return d.guard.aspect.CompileResolved(site, rules...)
		})
	})
}

// Handle is r.Handle with a rule around the handlers, compiled at once. r is an
// engine or a group, whose base path and handlers apply as always.
//
// The error has every problem of the rule; the route then answers 500, and
// [Guard.Check] returns the problems again. Nothing is registered if gin could not
// do it: without handlers, or with a method that is none. As r.Handle it panics
// when the path conflicts with another route.
func (g *Guard) Handle(r gin.IRoutes, method, path string, rule ruleset.Rule, handlers ...gin.HandlerFunc) error {
	return g.HandleRules(r, method, path, []ruleset.Rule{rule}, handlers...)
}

// HandleRules is [Guard.Handle] for several rules, which need names.
func (g *Guard) HandleRules(r gin.IRoutes, method, path string, rules []ruleset.Rule, handlers ...gin.HandlerFunc) error {
	base, err := registrable(r, method, handlers)
	if err != nil {
		return fmt.Errorf("ginlock: Handle(%q, %q): %w", method, path, err)
	}
	full := under(base, path)
	e := g.compileRules(g.aspect, canonical(ruleset.Route(method, full)), pathParams(full), rules)
	g.mu.Lock()
	g.placed = append(g.placed, e)
	g.mu.Unlock()
	r.Handle(method, path, slices.Concat([]gin.HandlerFunc{e.serve}, handlers)...)
	return e.broken
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
