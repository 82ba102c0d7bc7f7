package httplock

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// cutPattern is the route of a pattern such as "POST example.org/orders/{id}": its
// method, "*" without one, and its path. It does not allocate.
func cutPattern(pattern string) ruleset.Endpoint {
	method, path := "*", pattern
	if cut := strings.IndexAny(pattern, " \t/"); cut > 0 && pattern[cut] != '/' {
		method, path = pattern[:cut], strings.TrimLeft(pattern[cut:], " \t")
	}
	if host := strings.IndexByte(path, '/'); host > 0 {
		path = path[host:]
	}
	return ruleset.Route(method, path)
}

// routeOf is cutPattern for a pattern that may be wrong.
func routeOf(pattern string) (ruleset.Endpoint, error) {
	route := cutPattern(pattern)
	if !strings.HasPrefix(route.Path, "/") {
		return route, errors.New(`write a pattern with a path, such as "POST /orders/{id}/pay"`)
	}
	return route, nil
}

// methods are those under which a pattern without a method has a route of its own. Clients
// may invent others: those are one route, "*", but for those that rules name.
func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
}

// methodsOf are the routes of a pattern's route, one for each method.
func methodsOf(route ruleset.Endpoint) []ruleset.Endpoint {
	routes := []ruleset.Endpoint{route}
	if route.Method == "*" {
		for _, method := range methods() {
			routes = append(routes, ruleset.Route(method, route.Path))
		}
	}
	return routes
}

// requested is the route of a request that matched a pattern's route.
func requested(route ruleset.Endpoint, method string, rules *ruleset.Set) ruleset.Endpoint {
	exact := ruleset.Route(method, route.Path)
	if route.Method == "*" && (slices.Contains(methods(), method) || isNamed(exact, rules)) {
		return exact
	}
	return route
}

// isNamed reports whether the rules for a route name its method.
func isNamed(route ruleset.Endpoint, rules *ruleset.Set) bool {
	found := rules.Lookup(route)
	return len(found) > 0 && found[0].Endpoint.Method == route.Method
}
