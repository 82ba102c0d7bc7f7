package ginlock

import (
	"cmp"
	"errors"
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
// It compiles the rules for all routes and notifies observers of them. It also records the routes, because the guard
// checks reloads against them. Check finds:
//
//   - Rules of Middleware whose templates, conditions or fallbacks do not fit a route.
//   - Rules of Middleware for a route whose chain does not contain that Middleware, because it was given to Use
//     after the route was registered, or never. For rules with wildcards, Check looks only at routes that may modify
//     data.
//   - A guard without any rules, because Middleware was never called.
//   - Rules of Middleware that match no route. The setting unmatched of the rule file makes each an error, a
//     warning to observers ([aspect.Observer]), or nothing.
//   - Routes without a rule, unless their method is GET, HEAD, OPTIONS or TRACE. The setting uncovered of the rule file
//     sets the severity. A rule of Middleware counts, including `none: true`, and so does a rule of [Guard.Handle],
//     [Guard.Handler] and [Lock].
//   - Routes whose last handler is the guard's, so that no other handler runs under its lock.
//   - The errors that Handle returned.
//   - A Handler that is on the chain of no route. It is an error if the Handler was given to Use after the routes,
//     and otherwise a warning to observers.
//   - Rules of Handler and Lock that do not fit a route on whose chain they are. If Check cannot read the chains,
//     because this version of gin stores them differently, it reports only rules that fit no route at all.
//   - Two rules of the same name on one route.
//   - A route for which another guard of the same client has the same set.
//   - Rules that take one key as locks of different kinds: see [ruleset.MixedKinds].
//   - [WithBody] and [WithBuffer] for routes that do not exist.
//   - An engine that passes on path values undecoded, which would give one resource several keys.
//   - Rules that use client_ip in an engine that lets every client choose it, which is gin's default: a warning to
//     observers.
//   - Keys without a part of the request besides its method and route, so that all requests of a route share one lock: a
//     warning to observers.
//   - Routes that run unlocked because of disabled, dry_run or a strategy proceed: a warning to observers.
//
// Check does not see a Middleware, a Handler or a Lock that another handler calls: give the handler itself to Use. Check
// includes each [Lock] of the same client on a chain of the engines, because a request may take its lock, too.
//
// A rule has to match a route of at least one engine that was ever given to Check. If engines share a rule file, give
// Check all of them at once.
func (g *Guard) Check(engine *gin.Engine, more ...*gin.Engine) error {
	engines := slices.Concat([]*gin.Engine{engine}, more)
	if slices.Contains(engines, nil) {
		return errors.New("ginlock: Check: the engine is nil")
	}
	var locks []*chainHandler // the handlers of Lock, unless g is their guard
	if g.locks != nil {
		locks = g.locks.chainHandlers()
		g.locks.server.learn(engines)
	}
	g.server.learn(engines)
	g.recordMissing(engines)
	handlers := g.chainHandlers()
	for _, e := range engines {
		placeChains(e, slices.Concat(handlers, locks))
	}
	all := g.server.routing.routesWithParams()

	k := &check{server: &g.server, report: g.server.routes.Check(all...), routes: all}
	for _, err := range g.recorded(len(handlers)+len(locks) > 0) {
		k.add(err)
	}
	for _, h := range handlers {
		k.checkFit(h)
		k.checkPlace(h, engines)
	}
	for _, h := range locks { // their engine may be another one
		k.addAll(h.problems())
	}
	g.server.cfg.Unmatched(k.report, all)
	for _, e := range engines {
		k.checkEngine(e)
		k.checkAddresses(e, &g.server, handlers)
		if g.locks != nil {
			k.checkAddresses(e, &g.locks.server, nil)
		}
	}
	return g.server.aspect.Conclude(k.report)
}

// chainHandlers returns the handlers that Handler or Lock returned.
func (g *Guard) chainHandlers() []*chainHandler {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.chained)
}

// recorded returns the recorded problems. hasHandlers reports whether Handler or Lock was called. If nothing has bound
// rules to routes, that is a problem, too.
func (g *Guard) recorded(hasHandlers bool) []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case hasHandlers || len(g.middlewares)+len(g.problems) > 0 || g.handled.Load():
		return slices.Clone(g.problems)
	case g.locks == nil:
		return []error{errors.New("the program has no Lock of this client: pass the client that Lock was given, or remove the call of Check")}
	default:
		return []error{errors.New("the guard has no rules, because Middleware, Handler and Handle were never called: write r.Use(guard.Middleware(rules)) before the routes")}
	}
}

// learn records the routes of engines.
func (s *server) learn(engines []*gin.Engine) {
	for _, e := range engines {
		routes := routesOf(e)
		s.routing.recordParams(routes...)
		s.routing.add(routes)
	}
}

// placeChains puts the rules of handlers into force on the routes on whose chains they are, in the order of each chain. It
// leaves out handlers whose rules are wrong on every route.
func placeChains(engine *gin.Engine, handlers []*chainHandler) {
	known := map[functionID]*chainHandler{}
	for _, h := range handlers {
		if len(h.problems()) == 0 {
			known[identify(h.handler)] = h
		}
	}
	for _, r := range chainsOf(engine) {
		for _, handler := range r.chain {
			if h := known[identify(handler)]; h != nil {
				h.at(&r.route)
			}
		}
	}
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
			missing[r.Endpoint] = missing[r.Endpoint] || !contains(r.chain, m.handler)
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

// addAll adds problems.
func (k *check) addAll(problems []*ruleset.Problem) {
	for _, p := range problems {
		k.add(p)
	}
}

// checkFit checks the rules of a handler whose routes are not known: no chain contains it, or this version of gin stores
// its chains differently. If the rules are valid without a route, checkFit checks them with the route that they fit best.
// [aspect.Registry.Check] checks the rules on known routes.
func (k *check) checkFit(h *chainHandler) {
	if h.places.Len() > 0 {
		return
	}
	found := h.problems()
	if len(found) == 0 {
		found = k.nearest(h)
	}
	k.addAll(found)
}

// nearest returns the problems of the rules of a handler on the route that they fit best.
func (k *check) nearest(h *chainHandler) []*ruleset.Problem {
	var nearest ruleset.Endpoint
	var best error
	count := func(err error) int { return len(httpcall.ProblemsAt("", err)) }
	mostParams := func(a, b ruleset.Endpoint) int {
		return cmp.Or(len(k.server.routing.paramsOf(b))-len(k.server.routing.paramsOf(a)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	}
	for _, route := range slices.SortedFunc(slices.Values(k.routes), mostParams) {
		if err := k.server.compileFor(route, h.rules).Err; nearest.IsZero() || count(err) < count(best) {
			nearest, best = route, err
		}
	}
	return httpcall.ProblemsAt(h.where+" (nearest route: "+nearest.Label()+")", best)
}

// checkPlace reports a handler that is on the chain of no route.
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
	p := &ruleset.Problem{Message: h.where + " is on the chain of no route, so that it locks nothing: put it before the handler of a route, or give it to Use before the routes are registered"}
	if used {
		k.add(p)
		return
	}
	k.report.Warn(ruleset.Endpoint{}, p) // another handler may call it, which Check does not see
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

// checkAddresses warns of rules of a server that read client_ip in an engine that lets every client choose it. That is
// gin's default, so it is a warning only.
func (k *check) checkAddresses(engine *gin.Engine, s *server, handlers []*chainHandler) {
	if s.cfg.clientIP != nil || !trustsEveryAddress(engine) {
		return
	}
	usesAddress := func(e *httpcall.Entry) bool { return e.Err == nil && e.Point.Uses(addressVariable) }
	for _, r := range routesOf(engine) {
		if slices.ContainsFunc(s.routes.At(r.Endpoint), usesAddress) {
			k.warnOfAddress(r.Endpoint, "")
		}
	}
	for _, h := range handlers {
		if h.places.Len() == 0 && usesAddress(s.compileFor(noRoute.Endpoint, h.rules)) {
			k.warnOfAddress(ruleset.Endpoint{}, h.where+": ")
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
