package routers

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Echo is a shop that is served by echo.
func Echo(guard *httplock.Guard, pay, cancel echo.HandlerFunc) (http.Handler, error) {
	e := echo.New()
	e.Use(EchoMiddleware(guard))
	e.POST("/orders/:id/pay", pay)
	e.Group("/carts").DELETE("/:id", cancel)
	return Decoded(e), guard.Check(EchoPatterns(e)...)
}

// EchoMiddleware puts all routes under the guard: for Echo.Use, after authentication.
func EchoMiddleware(guard *httplock.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request, response := c.Request(), c.Response()
			defer func() { c.SetRequest(request); c.SetResponse(response) }()
			tellRoute(c)
			guard.Middleware(handler(c, next)).ServeHTTP(response, request)
			return nil
		}
	}
}

// tellRoute tells the request of its route, as the guard wants to know it. The method
// stays out of the pattern: clients may invent any, and each would be a route.
func tellRoute(c echo.Context) {
	r := c.Request()
	r.Pattern = c.Path()
	values := c.ParamValues()
	for i, name := range c.ParamNames() {
		r.SetPathValue(name, values[i])
	}
}

// handler is what runs under the lock. An error is answered there, so that the guard sees
// that it failed; but for the handler that gave up because its lock ended: the guard
// answers that.
func handler(c echo.Context, next echo.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.SetRequest(r)
		c.SetResponse(echo.NewResponse(w, c.Echo()))
		err := next(c)
		if err != nil && !lockEnded(r.Context()) {
			c.Error(err)
		}
	})
}

// lockEnded reports whether the context of a handler ended because its lock was lost, or left
// behind by a shutdown that did not wait for it.
func lockEnded(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, core.ErrLost) || errors.Is(cause, core.ErrClosed)
}

// EchoPatterns are the routes of a router, for Check.
func EchoPatterns(e *echo.Echo) (patterns []string) {
	for _, route := range e.Routes() {
		if route.Method != echo.RouteNotFound {
			patterns = append(patterns, route.Method+" "+route.Path)
		}
	}
	return patterns
}
