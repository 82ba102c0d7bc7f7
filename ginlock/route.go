package ginlock

import (
	"path"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// routeOf is the route of a request. Requests that no route matches have one in
// common: their method is the client's to invent and no part of it.
func routeOf(c *gin.Context) ruleset.Endpoint {
	if c.FullPath() == "" {
		return ruleset.Route("*", "*")
	}
	return ruleset.Route(c.Request.Method, c.FullPath())
}

// canonical is an endpoint as [gin.Context.FullPath] spells it: without the
// backslash that registers a colon as itself.
func canonical(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = strings.ReplaceAll(e.Path, `\:`, ":")
	return e
}

// paramsOf are the names of the parameters of the request's route. A request that no
// route matches may still have some, of a route that it matched in part.
func paramsOf(c *gin.Context) []string {
	if c.FullPath() == "" {
		return nil
	}
	names := make([]string, len(c.Params))
	for i, p := range c.Params {
		names[i] = p.Key
	}
	return names
}

// pathParams are the names of the parameters of a path as it was registered.
func pathParams(pattern string) []string {
	var names []string
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ':', '*':
			name, _, _ := strings.Cut(pattern[i+1:], "/")
			names = append(names, name)
			i += len(name)
		}
	}
	return names
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
