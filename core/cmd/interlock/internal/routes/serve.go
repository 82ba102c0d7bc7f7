package routes

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Guards are the guards before the handlers of routes. The handlers do nothing.
type Guards struct {
	Gin     gin.HandlerFunc
	NetHTTP func(mux httplock.Mux, pattern string, handler http.Handler)
}

// Serve serves a request with a router like the program's and its guards. It uses gin's router, or the router
// of net/http for a route in the notation of net/http. It calls matched with the route before the guard runs,
// and reports whether a route matches.
func Serve(list []Route, r *http.Request, guards Guards, matched func(Route)) (found bool) {
	if !strings.HasPrefix(r.URL.Path, "/") {
		return false
	}
	note := func(route Route) {
		found = true
		matched(route)
	}
	for _, router := range routers(list, r.Method, guards, note) {
		if router.ServeHTTP(discardWriter{}, r); found {
			break
		}
	}
	return found
}

// OfNetHTTP reports whether a path uses the notation of net/http and chi: "/orders/{id}".
func OfNetHTTP(path string) bool { return strings.Contains(path, "{") }

// routers returns routers with the routes for a method. Routes for any method come last. Routes that one router
// does not accept together, because rules of several programs name them, are in several routers.
func routers(list []Route, method string, guards Guards, note func(Route)) (all []*router) {
	for _, name := range []string{method, "*"} {
		for _, r := range list {
			head := name == http.MethodHead && r.Method == http.MethodGet && OfNetHTTP(r.Path) // net/http serves HEAD with the handler of GET
			takes := func(known *router) bool { return known.takes(r, method) }
			if r.Method != name && !head || slices.ContainsFunc(all, takes) {
				continue
			}
			if next := newRouter(OfNetHTTP(r.Path), guards, note); next.takes(r, method) { // otherwise no router accepts the path
				all = append(all, next)
			}
		}
	}
	return all
}

// router is gin's router, or the router of net/http.
type router struct {
	http.Handler
	ofNetHTTP bool
	add       func(r Route, method string) // panics for a route that conflicts with others
}

func newRouter(ofNetHTTP bool, guards Guards, note func(Route)) *router {
	if ofNetHTTP {
		mux := http.NewServeMux()
		return &router{mux, true, func(r Route, _ string) {
			pattern := strings.TrimPrefix(r.Method+" "+r.Path, "* ")
			guards.NetHTTP(notingMux{mux, func() { note(r) }}, pattern, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}}
	}
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	return &router{engine, false, func(r Route, method string) {
		engine.Handle(method, r.Path, func(*gin.Context) { note(r) }, guards.Gin)
	}}
}

// notingMux is a mux that calls note when it matches a request.
type notingMux struct {
	*http.ServeMux
	note func()
}

// Handle registers a handler.
func (n notingMux) Handle(pattern string, handler http.Handler) {
	n.ServeMux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		n.note()
		handler.ServeHTTP(w, r)
	})
}

// takes adds a route and reports whether the router accepts it.
func (known *router) takes(r Route, method string) (ok bool) {
	if known.ofNetHTTP != OfNetHTTP(r.Path) {
		return false
	}
	defer func() { ok = recover() == nil }()
	known.add(r, method)
	return true
}

// discardWriter discards answers.
type discardWriter struct{}

func (discardWriter) Header() http.Header         { return http.Header{} }
func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (discardWriter) WriteHeader(int)             {}

// Params returns the names of the parameters of a path.
func Params(path string) []string {
	if OfNetHTTP(path) {
		return httpcall.Params(path)
	}
	return httpcall.GinParams(path)
}
