package httpcall

import (
	"net/http"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
)

// isPreflight reports whether a request is a CORS preflight. A browser asks with it whether it may
// send another request. Rules are for that other request, unless they name OPTIONS.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// asks reports whether the request only asks about its resource and no rule names its method.
func (x *exchange) asks() bool {
	return x.unnamed(http.MethodHead) || x.unnamed(http.MethodOptions) || x.unnamed(http.MethodTrace)
}

// unnamed reports whether the request has the method, the router has matched it, and no rule names
// it. Rules for any method do not name it. Rules for GET do not name HEAD.
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
