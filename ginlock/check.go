package ginlock

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Check compares the rules of the guard with the routes of one or more engines. It returns every problem as one
// [*ruleset.InvalidError], nil if it finds none. Call it after all routes are registered and before the servers start.
// It compiles the rules of [Guard.Middleware] for all routes. It also records the routes, because the guard checks
// reloads against them. Check finds:
//
//   - Rules of Middleware whose templates, conditions or fallbacks do not fit a route.
//   - Rules of Middleware for a route whose chain does not contain that Middleware, because it was given to Use
//     after the route was registered, or never. For rules with wildcards, Check looks only at routes that may modify
//     data.
//   - A guard without any rules, because Middleware was never called.
//   - Rules of Middleware that match no route. The setting unmatched of the rule file makes each an error, a
//     warning to observers ([aspect.Observer]), or nothing.
//   - Routes without a rule, unless their method is GET, HEAD, OPTIONS or TRACE. The setting uncovered of the rule file
//     sets the severity. A rule of Middleware counts, including `none: true`, and so does a rule of [Guard.Handle]. A
//     [Guard.Handler] does not count: use Handle for such routes, or write `none: true`.
//   - Routes whose last handler is the guard's, so that no other handler runs under its lock.
//   - The errors that Handle returned.
//   - A Handler that is on the chain of no route. It is an error if the Handler was given to Use after the routes,
//     and otherwise a warning to observers.
//   - Rules of Handler that fit no route at all. Check reports the problems with the route that they fit best,
//     because only the first request shows on which route a Handler is. Handle is exact.
//   - Two rules of the same name on one route.
//   - Rules of Handle and Middleware that take one key as locks of different kinds: see [ruleset.MixedKinds].
//   - [WithBody] and [WithBuffer] for routes that do not exist.
//   - An engine that passes on path values undecoded, which would give one resource several keys.
//   - Rules that use client_ip in an engine that lets every client choose it, which is gin's default: a warning to
//     observers.
//   - Keys without a part of the request, so that all requests of a route share one lock: a warning to observers.
//
// Check does not see a Middleware that another handler calls: give the Middleware itself to Use.
//
// A rule has to match a route of at least one engine that was ever given to Check. If engines share a rule file, give
// Check all of them at once.
func (g *Guard) Check(engine *gin.Engine, more ...*gin.Engine) error {
	engines := slices.Concat([]*gin.Engine{engine}, more)
	for _, e := range engines {
		if e == nil {
			return errors.New("ginlock: Check: the engine is nil")
		}
		routes := routesOf(e)
		g.server.routing.recordParams(routes...)
		g.server.routing.add(routes)
	}
	g.recordMissing(engines)
	g.mu.Lock()
	handlers, problems := slices.Clone(g.chained), slices.Clone(g.problems)
	idle := len(g.chained)+len(g.middlewares)+len(g.problems) == 0 && !g.handled.Load()
	g.mu.Unlock()
	all := g.server.routing.routesWithParams()

	k := &check{server: &g.server, report: g.server.routes.Check(all...), routes: all}
	for _, err := range problems {
		k.add(err)
	}
	if idle {
		k.add(errors.New("the guard has no rules, because Middleware, Handler and Handle were never called: write r.Use(guard.Middleware(rules)) before the routes"))
	}
	for _, h := range handlers {
		k.checkFit(h)
		k.checkPlace(h, engines)
	}
	g.server.cfg.Unmatched(k.report, all)
	for _, e := range engines {
		k.checkEngine(e)
		k.checkAddresses(e, handlers)
	}
	return g.server.aspect.Conclude(k.report)
}

// recordMissing records, for each middleware, the routes of engines whose chains do not contain the middleware.
func (g *Guard) recordMissing(engines []*gin.Engine) {
	var all []chainedRoute
	for _, engine := range engines {
		all = append(all, chainsOf(engine)...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.middlewares {
		missing := map[ruleset.Endpoint]bool{}
		for _, r := range all {
			missing[r.route] = missing[r.route] || !contains(r.chain, m.handler)
		}
		maps.Copy(m.missing, missing)
	}
}

// check is one run of [Guard.Check]. It checks everything besides the rules of routes.
type check struct {
	server *server
	report *aspect.Report
	routes []ruleset.Endpoint
}

func (k *check) add(err error) { k.report.Add(ruleset.Endpoint{}, err) }

// checkFit checks the rules of a Handler against the routes that it has served. Before it has served any, its routes
// are not known. checkFit then checks the rules without a route and, if they are valid, with the route that they fit
// best.
func (k *check) checkFit(h *chainHandler) {
	if served := h.routes.Entries(); len(served) > 0 {
		for _, e := range served {
			k.report.Add(e.Endpoint, e.Err)
		}
		return
	}
	subject, best := "Handler at "+h.where, problemsOf(k.server.routes.Compile(noRoute.Endpoint, h.rules...).Err)
	if len(best) == 0 {
		var nearest ruleset.Endpoint
		mostParams := func(a, b ruleset.Endpoint) int {
			return cmp.Or(len(k.server.routing.paramsOf(b))-len(k.server.routing.paramsOf(a)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		}
		for _, route := range slices.SortedFunc(slices.Values(k.routes), mostParams) {
			if found := problemsOf(k.server.compileFor(route, h.rules).Err); nearest.IsZero() || len(found) < len(best) {
				nearest, best = route, found
			}
		}
		subject += " (nearest route: " + nearest.Label() + ")"
	}
	for _, p := range best {
		k.add(&ruleset.Problem{Message: strings.Replace(p.Text(), p.Endpoint.String(), subject, 1), Err: p.Err})
	}
}

// checkPlace reports a Handler that is on the chain of no route.
func (k *check) checkPlace(h *chainHandler, engines []*gin.Engine) {
	used := false
	for _, engine := range engines {
		found := chainsOf(engine)
		if found == nil {
			return
		}
		isOn := func(chain gin.HandlersChain) bool { return contains(chain, h.handler) }
		if slices.ContainsFunc(found, func(r chainedRoute) bool { return isOn(r.chain) }) || slices.ContainsFunc(unroutedChainsIn(engine), isOn) {
			return
		}
		used = used || isOn(engine.Handlers)
	}
	p := &ruleset.Problem{Message: fmt.Sprintf("Handler at %s is on the chain of no route, so that it locks nothing: put it before the handler of a route, or give it to Use before the routes are registered", h.where)}
	if used {
		k.add(p)
		return
	}
	k.report.Warn(ruleset.Endpoint{}, p) // another handler may call it, which Check does not see
}

// problemsOf returns the problems that are joined in err.
func problemsOf(err error) []*ruleset.Problem {
	var found aspect.Report
	found.Add(ruleset.Endpoint{}, err)
	return found.Errors()
}

// checkEngine reports routes whose last handler is the guard, and settings under which one path value has several
// spellings.
func (k *check) checkEngine(engine *gin.Engine) {
	for _, info := range engine.Routes() {
		if strings.HasPrefix(info.Handler, reflect.TypeFor[Guard]().PkgPath()+".(*") {
			k.report.Add(ruleset.Route(info.Method, info.Path), errors.New("the guard is the last handler of the route, so that no other handler runs under its lock: put it before the handler"))
		}
	}
	if (engine.UseRawPath || engine.UseEscapedPath) && !engine.UnescapePathValues {
		k.add(errors.New("the engine passes on path values undecoded, so that one resource would have several keys: set UnescapePathValues = true"))
	}
}

// WriteRoutes writes the names that rules of this program may use, as JSON: the routes of an engine, and the variables and
// fallbacks of the guard. See [httpcall.Config.WriteRoutes] for the format. `interlock check
// --routes` reads it to check a rule file without the program.
func (g *Guard) WriteRoutes(w io.Writer, engine *gin.Engine) error {
	if engine == nil {
		return errors.New("ginlock: WriteRoutes: the engine is nil")
	}
	var routes []ruleset.Endpoint
	for _, info := range engine.Routes() {
		routes = append(routes, ruleset.Route(info.Method, info.Path))
	}
	return g.server.cfg.WriteRoutes(w, routes, slices.Collect(maps.Keys(g.server.cfg.fallbacks)))
}

const addressVariable = "client_ip"

// checkAddresses warns of rules that read client_ip in an engine that lets every client choose it. That is gin's
// default, so it is a warning only.
func (k *check) checkAddresses(engine *gin.Engine, handlers []*chainHandler) {
	if k.server.cfg.clientIP != nil || !trustsEveryAddress(engine) {
		return
	}
	usesAddress := func(e *httpcall.Entry) bool { return e.Err == nil && e.Point.Uses(addressVariable) }
	for _, r := range routesOf(engine) {
		if slices.ContainsFunc(k.server.routes.At(r.Endpoint), usesAddress) {
			k.warnOfAddress(r.Endpoint, "")
		}
	}
	for _, h := range handlers {
		if usesAddress(k.server.compileFor(noRoute.Endpoint, h.rules)) {
			k.warnOfAddress(ruleset.Endpoint{}, fmt.Sprintf("Handler at %s: ", h.where))
		}
	}
}

func (k *check) warnOfAddress(e ruleset.Endpoint, where string) {
	k.report.Warn(e, &ruleset.Problem{
		Endpoint: e,
		Message: where + "any client can choose its client_ip, and with it the lock: the engine believes a header from every address, " +
			"which is gin's default: call SetTrustedProxies with the addresses of your proxies, or with nil; or give WithClientIP",
	})
}

// trustsEveryAddress reports whether an engine trusts a header that names the client, whatever address sends it. It
// asks the engine for the client of requests from unrelated addresses. With TrustedPlatform or AppEngine, the platform
// sets the header.
func trustsEveryAddress(engine *gin.Engine) bool {
	if engine.TrustedPlatform != "" || engine.AppEngine {
		return false
	}
	for _, family := range [][]string{{"192.0.2.1", "203.0.113.254"}, {"2001:db8::1", "3fff::1"}} {
		if !slices.ContainsFunc(family, func(address string) bool { return clientOf(engine, address) == address }) {
			return true
		}
	}
	return false
}

// clientOf returns the client of a request that comes from an address and names another address in its headers.
func clientOf(engine *gin.Engine, address string) string {
	c := gin.CreateTestContextOnly(nil, engine)
	c.Request = &http.Request{RemoteAddr: net.JoinHostPort(address, "1"), Header: make(http.Header)}
	for _, name := range engine.RemoteIPHeaders {
		c.Request.Header.Set(name, "198.51.100.1")
	}
	return c.ClientIP()
}
