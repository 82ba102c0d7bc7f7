package ginlock

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// route is one route of an engine.
type route struct {
	ruleset.Endpoint

	params   []string   // the names of its path parameters
	function functionID // the last handler of its chain; nil if not needed
}

// same reports whether o is the same route, possibly of another engine.
func (r *route) same(o *route) bool { return r.Endpoint == o.Endpoint && r.function == o.function }

// noRoute stands for all requests that match no route. It has no method, because clients can invent methods.
var noRoute = &route{Endpoint: ruleset.Route("*", "*")} //nolint:gochecknoglobals // nothing changes it

// routesOf returns the routes of an engine.
func routesOf(engine *gin.Engine) []route {
	var routes []route
	for _, info := range engine.Routes() {
		routes = append(routes, route{canonical(ruleset.Route(info.Method, info.Path)), httpcall.GinParams(info.Path), identify(info.HandlerFunc)})
	}
	return routes
}

// canonical returns an endpoint in the spelling of [gin.Context.FullPath], which drops the backslash before a literal
// colon.
func canonical(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = strings.ReplaceAll(e.Path, `\:`, ":")
	return e
}

// joinPath joins the base path of a group and a relative path as gin does.
func joinPath(base, relative string) string {
	if relative == "" {
		return base
	}
	joined := path.Join(base, relative)
	if strings.HasSuffix(relative, "/") && !strings.HasSuffix(joined, "/") {
		return joined + "/"
	}
	return joined
}

// chainedRoute is a route with its chain.
type chainedRoute struct {
	route

	chain gin.HandlersChain
}

// chainsOf returns the routes of an engine with their chains. It returns nil if this version of gin stores its
// chains differently.
func chainsOf(engine *gin.Engine) (found []chainedRoute) {
	chains := chainsIn(engine)
	for i, r := range routesOf(engine) {
		if i >= len(chains) || identify(chains[i].Last()) != r.function {
			return nil
		}
		found = append(found, chainedRoute{r, chains[i]})
	}
	return found
}

// contains reports whether a chain contains a handler.
func contains(chain gin.HandlersChain, h gin.HandlerFunc) bool {
	return slices.ContainsFunc(chain, func(other gin.HandlerFunc) bool { return identify(other) == identify(h) })
}

// routing finds the route that gin matched for a request. It does not trust the method of the request, because a
// middleware may have changed it at the client's request. It uses the path of the matched route and the function at the
// end of the chain, and looks up the methods under which the engine has registered these two. It keeps one entry for
// each route of the engines.
type routing struct {
	known  atomic.Pointer[map[string][]*route] // by path; nil before the first routes are added
	warned sync.Map                            // the paths about which observers were warned

	mu     sync.Mutex // for writers of known, and for params
	params map[ruleset.Endpoint][]string
}

// ambiguousError means that a middleware changed the method of a request whose function serves several methods. The
// method that gin matched cannot be determined.
type ambiguousError struct {
	path   string
	routes []*route // none if the engine is not known
}

// Error returns the path and the advice.
func (e *ambiguousError) Error() string { return "ginlock: " + e.path + ": " + e.advice() }

// advice returns the reason and what to change.
func (e *ambiguousError) advice() string {
	if len(e.routes) == 0 {
		return "the route is of an engine that the guard does not know: give the engine to Check"
	}
	methods := make([]string, len(e.routes))
	for i, r := range e.routes {
		methods[i] = r.Method
	}
	return fmt.Sprintf("the method of a request was changed before the guard, to a method that this route does not have, and one function serves several methods (%s), "+
		"so that its rule cannot be known: change methods before the engine, or go on with engine.HandleContext", strings.Join(methods, ", "))
}

// match returns the route that gin matched, noRoute if it matched none. For a known route whose method was not changed,
// match takes no lock and does not allocate.
func (r *routing) match(c *gin.Context) (*route, *ambiguousError) {
	if c.FullPath() == "" {
		return noRoute, nil
	}
	found, exact := r.find(c)
	if exact != nil {
		return exact, nil
	}
	if engine := engineOf(c); engine != nil {
		r.add(routesOf(engine)) // the engine is new, or has more routes than before
		found, exact = r.find(c)
	}
	switch {
	case exact != nil:
		return exact, nil
	case len(found) == 1:
		return found[0], nil
	default:
		return nil, &ambiguousError{c.FullPath(), found}
	}
}

// find returns the known routes with the path and the function of a request. exact is the route among them that also
// has the method of the request. match returns exact even if gin matched another method, because the handler sees the
// method of the request.
func (r *routing) find(c *gin.Context) (found []*route, exact *route) {
	function := identify(c.Handler())
	for _, route := range r.all()[c.FullPath()] {
		switch {
		case route.function != function:
		case route.Method == c.Request.Method:
			return nil, route
		default:
			found = append(found, route)
		}
	}
	return found, nil
}

// all returns the known routes by path.
func (r *routing) all() map[string][]*route {
	if known := r.known.Load(); known != nil {
		return *known
	}
	return nil
}

// add adds routes to the known ones, each once.
func (r *routing) add(routes []route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string][]*route{}
	maps.Copy(next, r.all())
	for _, added := range routes {
		if !slices.ContainsFunc(next[added.Path], added.same) {
			next[added.Path] = append(slices.Clip(next[added.Path]), &added)
		}
	}
	r.known.Store(&next)
}

// recordParams records the path parameters of routes.
func (r *routing) recordParams(routes ...route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, route := range routes {
		r.params[route.Endpoint] = route.params
	}
}

// paramsOf returns the path parameters of a route.
func (r *routing) paramsOf(route ruleset.Endpoint) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.params[route]
}

// routesWithParams returns the routes whose parameters are recorded.
func (r *routing) routesWithParams() []ruleset.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.params))
}

// firstWarning records a warning about the path at and reports whether it is the first one.
func (r *routing) firstWarning(at string) bool {
	_, again := r.warned.LoadOrStore(at, true)
	return !again
}
