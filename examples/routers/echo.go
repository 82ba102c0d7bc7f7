package routers

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Echo returns a shop on echo v4.
func Echo(guard *httplock.Guard, pay, cancel echo.HandlerFunc) (http.Handler, error) {
	e := echo.New()
	e.Pre(EchoRouted)
	e.Use(EchoMiddleware(guard))
	e.POST("/orders/:id/pay", pay)
	e.Group("/carts").DELETE("/:id", cancel)
	return Decoded(e), guard.Check(EchoPatterns(e)...)
}

// EchoRouted records the method for which echo looks for the route, because echo does not show the
// matched method later. Pass it to Echo.Pre as the last middleware.
func EchoRouted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Set(routedMethod, c.Request().Method)
		return next(c)
	}
}

const routedMethod = "interlock.method"

// EchoMiddleware locks all routes with the guard. Pass it to Echo.Use, after authentication and
// together with [EchoRouted]. It returns the error of the handler when the locks are released, and
// echo answers it. If the handler gave up because its lock was lost, the guard has answered already.
func EchoMiddleware(guard *httplock.Guard) echo.MiddlewareFunc {
	guarded := guard.Middleware(http.HandlerFunc(handle))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if withoutRoute(c) {
				return next(c)
			}
			request, response := c.Request(), c.Response()
			this := &call{c: c, next: next}
			r := request.WithContext(context.WithValue(request.Context(), callKey{}, this))
			defer func() {
				request.MultipartForm = r.MultipartForm // net/http removes its files
				c.SetRequest(request)
				c.SetResponse(response)
			}()
			setPattern(c, r)
			guarded.ServeHTTP(response, r)
			return this.err
		}
	}
}

// call holds a request of echo in the request's context.
type call struct {
	c    echo.Context
	next echo.HandlerFunc
	err  error // of the handler
}

type callKey struct{}

// setPattern sets the Pattern in which the guard finds the route. If the method of the request is not
// the method that EchoRouted recorded, or if none was recorded, the pattern has no method. The guard
// then answers 500 if the rules of the path's methods differ.
func setPattern(c echo.Context, r *http.Request) {
	r.Pattern = c.Path()
	if c.Get(routedMethod) == r.Method {
		r.Pattern = r.Method + " " + r.Pattern
	}
	values := c.ParamValues()
	for i, name := range c.ParamNames() {
		r.SetPathValue(name, values[i])
	}
}

// withoutRoute reports whether echo itself answers, with 404 or 405.
func withoutRoute(c echo.Context) bool {
	if c.Path() == "" || c.Get(echo.ContextKeyHeaderAllow) != nil {
		return true
	}
	notFound := false // a group with middlewares registers a route for it
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

// handle runs the handler under the lock. After an error no debounce window begins.
func handle(w http.ResponseWriter, r *http.Request) {
	this := r.Context().Value(callKey{}).(*call) //nolint:errcheck,forcetypeassert // EchoMiddleware sets it
	this.c.SetRequest(r)
	this.c.SetResponse(echo.NewResponse(w, this.c.Echo()))
	if this.err = this.next(this.c); this.err != nil {
		aspect.CancelDebounce(r.Context())
	}
}

// EchoPatterns returns the routes of a router, for Check.
func EchoPatterns(e *echo.Echo) (patterns []string) {
	for _, route := range e.Routes() {
		if route.Method != echo.RouteNotFound {
			patterns = append(patterns, route.Method+" "+route.Path)
		}
	}
	return patterns
}
