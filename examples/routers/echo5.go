package routers

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Echo5 returns a shop on echo v5.
func Echo5(guard *httplock.Guard, pay, cancel echo.HandlerFunc) (http.Handler, error) {
	e := echo.New()
	e.Use(Echo5Middleware(guard))
	e.POST("/orders/:id/pay", pay)
	e.Group("/carts").DELETE("/:id", cancel)
	return Decoded(e), guard.Check(Echo5Patterns(e)...)
}

// Echo5Middleware locks all routes with the guard. Pass it to Echo.Use, after authentication. A middleware in Echo.Pre
// runs before echo matches the route, and the guard answers 500 there. Echo5Middleware returns the error of the handler when
// the locks are released, and echo answers it. If the handler gave up because its lock was lost, the guard has answered
// already.
func Echo5Middleware(guard *httplock.Guard) echo.MiddlewareFunc {
	guarded := guard.Middleware(http.HandlerFunc(handle5))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			route := c.RouteInfo()
			if route.Method == echo.RouteNotFound || route.Method == "" && route.Name != "" {
				return next(c) // echo itself answers, with 404 or 405
			}
			request, response := c.Request(), c.Response()
			this := &call5{c: c, next: next}
			r := request.WithContext(context.WithValue(request.Context(), call5Key{}, this))
			defer func() {
				request.MultipartForm = r.MultipartForm // net/http removes its files
				c.SetRequest(request)
				c.SetResponse(response)
			}()
			r.Pattern = pattern5(route)
			for _, value := range c.PathValues() {
				r.SetPathValue(value.Name, value.Value)
			}
			guarded.ServeHTTP(response, r)
			return this.err
		}
	}
}

// call5 holds a request of echo in the request's context.
type call5 struct {
	c    *echo.Context
	next echo.HandlerFunc
	err  error // of the handler
}

type call5Key struct{}

// handle5 runs the handler under the lock. After an error no debounce window begins.
func handle5(w http.ResponseWriter, r *http.Request) {
	this := r.Context().Value(call5Key{}).(*call5) //nolint:errcheck,forcetypeassert // Echo5Middleware sets it
	this.c.SetRequest(r)
	this.c.SetResponse(echo.NewResponse(w, this.c.Logger()))
	if this.err = this.next(this.c); this.err != nil {
		aspect.CancelDebounce(r.Context())
	}
}

// pattern5 returns the pattern of a route as rules name it, "" before echo matches a route.
func pattern5(route echo.RouteInfo) string {
	if route.Method == "" || route.Method == echo.RouteAny {
		return route.Path
	}
	return route.Method + " " + route.Path
}

// Echo5Patterns returns the routes of a router, for Check.
func Echo5Patterns(e *echo.Echo) (patterns []string) {
	for _, route := range e.Router().Routes() {
		if route.Method != echo.RouteNotFound {
			patterns = append(patterns, pattern5(route))
		}
	}
	return patterns
}
