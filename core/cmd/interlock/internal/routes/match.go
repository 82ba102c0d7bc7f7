package routes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
)

// Match finds the route that serves a request, and the values of its parameters: gin's
// own router looks for it, or that of net/http for a route in its spelling. path is
// decoded.
func Match(list []Route, method, path string) (found Route, params map[string]string, ok bool) {
	if !strings.HasPrefix(path, "/") {
		return Route{}, nil, false
	}
	params = map[string]string{}
	serve := func(r Route, value func(name string) string) {
		found, ok = r, true
		for _, name := range Params(r.Path) {
			params[name] = value(name)
		}
	}
	for _, router := range routers(list, method, serve) {
		router.ServeHTTP(nowhere{}, &http.Request{Method: served, URL: &url.URL{Path: path}})
		if ok {
			break
		}
	}
	return found, params, ok
}

// OfNetHTTP reports whether a path is spelt as net/http and chi have it: "/orders/{id}".
func OfNetHTTP(path string) bool { return strings.Contains(path, "{") }

// served is the method that all routes have in the routers: those of another one are left
// out, and * is none to gin.
const served = http.MethodGet

// serving is what a router does with the route that it finds.
type serving func(r Route, value func(name string) string)

// routers have the routes of a method, those for any method last. Routes that one router
// does not take together, which rules of several programs may name, are in several.
func routers(list []Route, method string, serve serving) (all []*router) {
	for _, name := range []string{method, "*"} {
		for _, r := range list {
			takes := func(known *router) bool { return known.takes(r) }
			if r.Method != name || slices.ContainsFunc(all, takes) {
				continue
			}
			if next := newRouter(OfNetHTTP(r.Path), serve); next.takes(r) { // else there is no such path
				all = append(all, next)
			}
		}
	}
	return all
}

// router is that of gin, or of net/http for routes in its spelling.
type router struct {
	http.Handler
	ofNetHTTP bool
	add       func(Route) // panics for a route that the router cannot tell from others
}

func newRouter(ofNetHTTP bool, serve serving) *router {
	if ofNetHTTP {
		mux := http.NewServeMux()
		return &router{mux, true, func(r Route) {
			mux.HandleFunc(served+" "+r.Path, func(_ http.ResponseWriter, q *http.Request) { serve(r, q.PathValue) })
		}}
	}
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	return &router{engine, false, func(r Route) {
		engine.GET(r.Path, func(c *gin.Context) { serve(r, c.Param) })
	}}
}

// takes adds a route, and reports whether the router can have it.
func (known *router) takes(r Route) (ok bool) {
	if known.ofNetHTTP != OfNetHTTP(r.Path) {
		return false
	}
	defer func() { ok = recover() == nil }()
	known.add(r)
	return true
}

// nowhere is where what gin answers goes.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

// plain is a path without the backslashes that keep colons.
func plain(path string) string { return strings.ReplaceAll(path, `\:`, ":") }

// Params are the names of the parameters of a path.
func Params(path string) []string {
	if OfNetHTTP(path) {
		return httpcall.Params(path)
	}
	return httpcall.GinParams(path)
}
