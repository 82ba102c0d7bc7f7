package httplock

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// cutPattern returns the route of a pattern such as "POST example.org/orders/{id}": its path and its method, which
// is "*" if the pattern has none. It does not allocate.
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

// unrouted returns the route of requests without a Pattern.
func unrouted() ruleset.Endpoint { return ruleset.Route("*", "*") }

// routeOf returns the route of a pattern. It returns an error if the pattern has no path.
func routeOf(pattern string) (ruleset.Endpoint, error) {
	route := cutPattern(pattern)
	if !strings.HasPrefix(route.Path, "/") {
		return route, errors.New(`write a pattern with a path, such as "POST /orders/{id}/pay"`)
	}
	return route, nil
}

// methods returns the methods for each of which a pattern without a method has a separate route. Clients may
// invent other methods. They share the route "*", except for methods that rules name.
func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}
}

// methodsOf returns the routes that the route of a pattern stands for, itself included.
func methodsOf(route ruleset.Endpoint) []ruleset.Endpoint {
	routes := []ruleset.Endpoint{route}
	if route.Method == "*" {
		for _, method := range methods() {
			routes = append(routes, ruleset.Route(method, route.Path))
		}
	}
	return routes
}

// requestRoute returns the route of a request that matched the route of a pattern. If no rule names HEAD, rules that
// name GET apply to a HEAD request, because net/http serves it with the handler of GET.
func requestRoute(route ruleset.Endpoint, method string, rules *ruleset.Set) ruleset.Endpoint {
	if route.Method != "*" {
		return route
	}
	exact, get := ruleset.Route(method, route.Path), ruleset.Route(http.MethodGet, route.Path)
	switch {
	case isNamed(exact, rules):
		return exact
	case method == http.MethodHead && isNamed(get, rules):
		return get
	case slices.Contains(methods(), method):
		return exact
	default:
		return route
	}
}

// isNamed reports whether the rules for a route name its method.
func isNamed(route ruleset.Endpoint, rules *ruleset.Set) bool {
	found := rules.Lookup(route)
	return len(found) > 0 && found[0].Endpoint.Method == route.Method
}

// isExact reports whether the rules for a route name its path. A pattern that ends in a wildcard may be a part of
// a longer pattern, because another router may follow.
func isExact(route ruleset.Endpoint, rules *ruleset.Set) bool {
	found := rules.Lookup(route)
	return len(found) > 0 && found[0].Endpoint.Path == route.Path && !strings.HasSuffix(route.Path, "*")
}

// isHTTP reports whether a rule is for an HTTP route.
func isHTTP(r *ruleset.Resolved) bool { return r.Endpoint.Transport == ruleset.TransportHTTP }

// samePath reports whether two routes have the same path. It ignores a final slash, because the patterns of chi
// lose the slash with which they were registered.
func samePath(a, b ruleset.Endpoint) bool {
	return strings.TrimSuffix(a.Path, "/") == strings.TrimSuffix(b.Path, "/")
}
