package ginlock

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// route is one route of an engine.
type route struct {
	ruleset.Endpoint

	params   []string
	function unsafe.Pointer // see identity; nil where it does not matter
}

// same reports whether o is the same route, be it of another engine.
func (r *route) same(o *route) bool { return r.Endpoint == o.Endpoint && r.function == o.function }

// known is what a guard knows of the program.
type known struct {
	routes  []route // sorted by path and method
	checked bool    // they are all routes of the engines given to Check
}

// routesOf are the routes of an engine.
func routesOf(engine *gin.Engine) []route {
	var routes []route
	for _, info := range engine.Routes() {
		routes = append(routes, route{canonical(ruleset.Route(info.Method, info.Path)), pathParams(info.Path), identity(info.HandlerFunc)})
	}
	return routes
}

// remember keeps routes for reloads.
func (g *Guard) remember(routes []route) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range routes {
		g.seen[r.Endpoint] = r.params
	}
}

// note keeps a problem for Check.
func (g *Guard) note(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noted = append(g.noted, err)
}

func (g *Guard) knownRoutes() known {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := known{checked: g.checked}
	for e, params := range g.seen {
		k.routes = append(k.routes, route{Endpoint: e, params: params})
	}
	slices.SortFunc(k.routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	return k
}
