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
	e.Pre(EchoRouted)
	e.Use(EchoMiddleware(guard))
	e.POST("/orders/:id/pay", pay)
	e.Group("/carts").DELETE("/:id", cancel)
	return Decoded(e), guard.Check(EchoPatterns(e)...)
}

// EchoRouted remembers by which method echo looks for the route, because echo does not show later
// which method it has matched. Give it to Echo.Pre, as the last one.
func EchoRouted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Set(routedMethod, c.Request().Method)
		return next(c)
	}
}

const routedMethod = "interlock.method"

// EchoMiddleware puts all routes under the guard: for Echo.Use, after authentication, and with
// [EchoRouted].
func EchoMiddleware(guard *httplock.Guard) echo.MiddlewareFunc {
	guarded := guard.Middleware(http.HandlerFunc(handle))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if withoutRoute(c) {
				return next(c)
			}
			request, response := c.Request(), c.Response()
			defer func() { c.SetRequest(request); c.SetResponse(response) }()
			r := request.WithContext(context.WithValue(request.Context(), callKey{}, call{c, next}))
			tellRoute(c, r)
			guarded.ServeHTTP(response, r)
			return nil
		}
	}
}

// call is a request of echo, to which the context leads.
type call struct {
	c    echo.Context
	next echo.HandlerFunc
}

type callKey struct{}

// tellRoute sets the Pattern by which the guard knows the route. If the method of the request is not
// the one by which echo has looked for the route, or that was not remembered, the pattern has no
// method: the guard then answers 500 if the rules of the path's methods differ.
func tellRoute(c echo.Context, r *http.Request) {
	r.Pattern = c.Path()
	if c.Get(routedMethod) == r.Method {
		r.Pattern = r.Method + " " + r.Pattern
	}
	values := c.ParamValues()
	for i, name := range c.ParamNames() {
		r.SetPathValue(name, values[i])
	}
}

// withoutRoute reports whether echo itself answers: with 404, or with 405.
func withoutRoute(c echo.Context) bool {
	if c.Path() == "" || c.Get(echo.ContextKeyHeaderAllow) != nil {
		return true
	}
	notFound := false // a group with middlewares has a route for that
	for _, route := range c.Echo().Routes() {
		if route.Path == c.Path() {
			if route.Method != echo.RouteNotFound {
				return false
			}
			notFound = true
		}
	}
	return notFound
}

// handle is what runs under the lock. An error is answered there, so that the guard sees
// that it failed; but for the handler that gave up because its lock ended: the guard
// answers that.
func handle(w http.ResponseWriter, r *http.Request) {
	this := r.Context().Value(callKey{}).(call) //nolint:errcheck,forcetypeassert // EchoMiddleware put it there
	c := this.c
	c.SetRequest(r)
	c.SetResponse(echo.NewResponse(w, c.Echo()))
	err := this.next(c)
	if err != nil && !lockEnded(r.Context()) {
		c.Error(err)
	}
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
