package httpcall

import (
	"net/http"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
)

// isPreflight reports whether the request is a CORS preflight and no rule names OPTIONS: a browser
// asks whether it may send another request, which is the one that the rules are for.
func (x *exchange) isPreflight() bool {
	h := x.router.Request().Header
	return x.unnamed(http.MethodOptions) && h.Get("Origin") != "" && h.Get("Access-Control-Request-Method") != ""
}

// asks reports whether the request only asks about its resource and no rule names its method.
func (x *exchange) asks() bool {
	return x.unnamed(http.MethodHead) || x.unnamed(http.MethodOptions) || x.unnamed(http.MethodTrace)
}

// unnamed reports whether the request has a method, as the router sees it too, that no rule names:
// the rules are for any method, or HEAD comes under those of GET.
func (x *exchange) unnamed(method string) bool {
	if x.router.Request().Method != method || x.entry.Err != nil {
		return false
	}
	switch routed := x.entry.Endpoint.Method; {
	case routed == "*", routed == http.MethodGet && method == http.MethodHead:
		return true
	case routed != method:
		return false // a middleware has changed the method
	default:
		return x.entry.Extra.AnyMethod || !slices.ContainsFunc(x.entry.Rules(), func(r *ruleset.Resolved) bool { return r.Endpoint.Method == method })
	}
}
