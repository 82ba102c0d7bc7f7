package ginlock

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Check returns every problem of the guard's rules with the routes of an engine, or
// of several, as one [*ruleset.InvalidError]; nil if there is none. Call it when all routes are registered and
// before the servers start. It compiles the rules of [Guard.Middleware] for all routes,
// and remembers the routes: reloads are checked against them.
//
//   - Rules of Middleware: templates, conditions and fallbacks that do not fit a
//     route.
//   - Rules of Middleware for a route whose chain does not have that Middleware, because it
//     was given to Use after the route was registered, or never. Rules with wildcards are judged
//     for the routes that may change something.
//   - A guard without any rules, because Middleware was never called.
//   - Rules of Middleware that match no route, as severe as the rule file's unmatched
//     says: an error, a warning to observers ([aspect.Observer]), or nothing.
//   - Routes with a method other than GET, HEAD, OPTIONS and TRACE that have no rule,
//     as severe as the file's uncovered says. A rule of Middleware counts, one that says
//     `none: true` included, and one of [Guard.Handle].
//     A [Guard.Handler] does not count: use Handle for them, or say `none: true`.
//   - Routes whose last handler is the guard's, so that no other runs under its lock.
//   - Rules of Handle: what Handle returned.
//   - A Handler that is on the chain of no route: an error if it was given to Use after the
//     routes, otherwise a warning to observers.
//   - Rules of Handler: those that fit no route at all, with what the route that they fit
//     best says. On which one such a handler is, only its first request tells; Handle is exact.
//   - A rule of the same name twice on one route.
//   - Rules of Handle and Middleware that take one key as locks of different kinds: see
//     [ruleset.MixedKinds].
//   - [WithBody] and [WithBuffer] for routes that do not exist.
//   - An engine that hands over path values undecoded, which would give one
//     resource several keys.
//   - Rules that use client_ip in an engine that lets every client choose it, which is
//     gin's default: a warning to observers.
//   - Keys without a part of the request, so that all requests of a route share one
//     lock: a warning to observers.
//
// Check does not see a Middleware that another handler calls: give Use the Middleware itself.
//
// A rule has to match a route of any engine that Check was ever given: where engines
// share a rule file, give it all of them at once.
func (g *Guard) Check(engine *gin.Engine, more ...*gin.Engine) error {
	engines := slices.Concat([]*gin.Engine{engine}, more)
	for _, e := range engines {
		if e == nil {
			return errors.New("ginlock: Check: the engine is nil")
		}
		routes := routesOf(e)
		g.remember(routes...)
		g.routing.add(routes)
	}
	g.look(engines)
	g.mu.Lock()
	chained, noted := slices.Clone(g.chained), slices.Clone(g.noted)
	idle := len(g.chained)+len(g.middlewares)+len(g.noted) == 0 && !g.handled.Load()
	all := slices.Collect(maps.Keys(g.params))
	g.mu.Unlock()

	k := &check{guard: g, report: g.routes.Check(all...), routes: all}
	for _, err := range noted {
		k.add(err)
	}
	if idle {
		k.add(errors.New("the guard has no rules, because Middleware, Handler and Handle were never called: write r.Use(guard.Middleware(rules)) before the routes"))
	}
	for _, h := range chained {
		k.chained(h)
		k.placed(h, engines)
	}
	g.cfg.Unmatched(k.report, all)
	for _, e := range engines {
		k.engine(e)
		k.addresses(e, chained)
	}
	return g.aspect.Conclude(k.report)
}

// check is what [Guard.Check] looks at besides the rules of routes.
type check struct {
	guard  *Guard
	report *aspect.Report
	routes []ruleset.Endpoint
}

func (k *check) add(err error) { k.report.Add(ruleset.Endpoint{}, err) }

// chained judges the rules of Handler by the routes that they have served, or else, since
// theirs is not known, by themselves, and then by the one that they fit best.
func (k *check) chained(h *chained) {
	if served := h.routes.Entries(); len(served) > 0 {
		for _, e := range served {
			k.report.Add(e.Endpoint, e.Err)
		}
		return
	}
	subject, best := "Handler at "+h.where, flat(k.guard.routes.Compile(noRoute.Endpoint, h.rules...).Err)
	if len(best) == 0 {
		var nearest ruleset.Endpoint
		parameters := func(a, b ruleset.Endpoint) int { // the most first
			return cmp.Or(len(k.guard.paramsOf(b))-len(k.guard.paramsOf(a)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		}
		for _, route := range slices.SortedFunc(slices.Values(k.routes), parameters) {
			if found := flat(k.guard.put(route, h.rules).Err); nearest.IsZero() || len(found) < len(best) {
				nearest, best = route, found
			}
		}
		subject += " (nearest route: " + nearest.Label() + ")"
	}
	for _, p := range best {
		k.add(&ruleset.Problem{Message: strings.Replace(p.Text(), p.Endpoint.String(), subject, 1), Err: p.Err})
	}
}

// flat are the problems that are joined in err.
func flat(err error) []*ruleset.Problem {
	var found aspect.Report
	found.Add(ruleset.Endpoint{}, err)
	return found.Errors()
}

// engine finds routes that the guard is the last handler of, and settings under which one
// path value has several spellings.
func (k *check) engine(engine *gin.Engine) {
	for _, info := range engine.Routes() {
		if strings.HasPrefix(info.Handler, reflect.TypeFor[Guard]().PkgPath()+".(*") {
			k.report.Add(ruleset.Route(info.Method, info.Path), errors.New("the guard is the last handler of the route, so that none runs under its lock: put it before the handler"))
		}
	}
	if (engine.UseRawPath || engine.UseEscapedPath) && !engine.UnescapePathValues {
		k.add(errors.New("the engine hands over path values undecoded, so that one resource would have several keys: set UnescapePathValues = true"))
	}
}

// WriteRoutes writes what rules may refer to in this program, as JSON: the routes of an
// engine, and the variables and fallbacks of the guard; see [httpcall.Config.WriteRoutes].
// It is what `interlock check --routes` reads, to judge a rule file without the program.
func (g *Guard) WriteRoutes(w io.Writer, engine *gin.Engine) error {
	if engine == nil {
		return errors.New("ginlock: WriteRoutes: the engine is nil")
	}
	var routes []ruleset.Endpoint
	for _, info := range engine.Routes() {
		routes = append(routes, ruleset.Route(info.Method, info.Path))
	}
	return g.cfg.WriteRoutes(w, routes, slices.Collect(maps.Keys(g.cfg.fallbacks)))
}
