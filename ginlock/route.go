package ginlock

import (
	"path"
	"strings"
	"unsafe"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
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

// routesOf are the routes of an engine.
func routesOf(engine *gin.Engine) []route {
	var routes []route
	for _, info := range engine.Routes() {
		routes = append(routes, route{canonical(ruleset.Route(info.Method, info.Path)), httpcall.GinParams(info.Path), identity(info.HandlerFunc)})
	}
	return routes
}

// canonical is an endpoint as [gin.Context.FullPath] spells it: without the
// backslash that registers a colon as itself.
func canonical(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = strings.ReplaceAll(e.Path, `\:`, ":")
	return e
}

// under is a path below the base path of a group, as gin joins them.
func under(base, relative string) string {
	if relative == "" {
		return base
	}
	joined := path.Join(base, relative)
	if strings.HasSuffix(relative, "/") && !strings.HasSuffix(joined, "/") {
		return joined + "/"
	}
	return joined
}
