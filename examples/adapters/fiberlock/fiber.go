package fiberlock

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v3"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/failpolicy"
)

// Lock returns a handler that runs the handlers after it on the same route under the rules of that route. Pass it to the
// route itself: within Use or Group, fiber has not matched the route yet, and the guard answers 500. It returns the error of
// the handlers when the locks are released, for the middlewares before it; after a loss, it returns a [*LostError].
func Lock(guard *httplock.Guard) fiber.Handler {
	guarded := guard.Middleware(Handler(func(c fiber.Ctx) error { return c.Next() }))
	var patterns sync.Map // from *fiber.Route to its pattern
	return func(c fiber.Ctx) error {
		route := c.Route()
		pattern, known := patterns.Load(route)
		if !known {
			pattern, _ = patterns.LoadOrStore(route, patternOf(c.App(), route))
		}
		r := newRequest(c)
		r.Pattern = pattern.(string) //nolint:errcheck,forcetypeassert // the map has no other values
		for _, name := range route.Params {
			r.SetPathValue(strings.Replace(name, "*1", "*", 1), strings.Clone(c.Params(name)))
		}
		this := &call{c: c}
		defer func() { this.c = nil }() // fiber reuses c
		w := &response{c: c, header: headerOf(c)}
		guarded.ServeHTTP(w, r.WithContext(context.WithValue(c.Context(), callKey{}, this)))
		if this.err != nil && w.final {
			return &LostError{fiber.NewError(c.Response().StatusCode()), this.err}
		}
		return this.err
	}
}

// LostError is the error of a handler that gave up because its lock was lost. The guard has answered already, but fiber
// passes the error to the ErrorHandler of the app, which answers again. An ErrorHandler that returns nil for a LostError keeps
// the answer of the guard; the others answer with its status.
type LostError struct {
	Answer *fiber.Error // with the status that the guard has answered
	Reason error        // of the handler
}

// Error returns the text of the status.
func (e *LostError) Error() string { return e.Answer.Error() }

// Unwrap returns both errors.
func (e *LostError) Unwrap() []error { return []error{e.Answer, e.Reason} }

// Check compares the rules of the guard with the routes of app; see [httplock.Guard.Check]. Call it after all routes are
// registered and before app listens. It returns an error unless app decodes paths.
func Check(app *fiber.App, guard *httplock.Guard) error {
	if !app.Config().UnescapePath {
		return errors.New("fiberlock: set fiber.Config.UnescapePath: without it /orders/42 and /orders/%34%32 have different keys, and a client can choose one of them")
	}
	app.Handler() // adds the routes of mounted apps
	var patterns []string
	for _, route := range app.GetRoutes(true) {
		patterns = append(patterns, patternOf(app, &route))
	}
	return guard.Check(patterns...)
}

// call holds the context of fiber until fiber reuses it.
type call struct {
	c   fiber.Ctx
	err error // of the handlers
}

type callKey struct{}

// Ctx returns the context of fiber, for functions that get a request of net/http, such as in [httplock.WithVariable]. Do
// not keep it.
func Ctx(r *http.Request) fiber.Ctx { return callOf(r).c }

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) } //nolint:errcheck,forcetypeassert // Lock sets it

// Handler converts a handler of fiber for a guard, such as a fallback. Its c.Context() is the context of the request.
func Handler(h fiber.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		this, ctx := callOf(r), r.Context()
		c := this.c
		before, held := c.Context(), c.Value(core.ContextKey)
		c.SetContext(ctx)
		c.Locals(core.ContextKey, ctx.Value(core.ContextKey)) // for handlers that pass c itself as a context
		defer func() { c.SetContext(before); c.Locals(core.ContextKey, held) }()
		for _, name := range []string{failpolicy.StatusHeader, failpolicy.TokenHeader} {
			if value := w.Header().Get(name); value != "" {
				c.Set(name, value)
			}
		}
		if this.err = h(c); this.err != nil {
			aspect.CancelDebounce(ctx)
			return
		}
		if c.IsAbandoned() {
			return // a timeout has answered
		}
		lost := httplock.Lost(ctx) != nil
		if answer := c.Response(); !lost || answer.StatusCode() != http.StatusOK || answer.IsBodyStream() || len(answer.Body()) > 0 {
			w.Header().Set(answered, "true")
			w.WriteHeader(answer.StatusCode())
		}
	})
}

// decoration is the constraint or the question mark of a parameter.
var decoration = regexp.MustCompile(`(:\w+)(?:<[^/]*>)?\??`)

// patternOf returns the route as rules name it: without constraints and question marks, and with GET for HEAD, because
// fiber serves HEAD with the handler of GET. For a middleware it returns "".
func patternOf(app *fiber.App, route *fiber.Route) string {
	matched, method := false, route.Method
	for _, r := range app.GetRoutes(true) {
		if r.Path != route.Path {
			continue
		}
		matched = matched || r.Method == route.Method && &r.Handlers[0] == &route.Handlers[0]
		if r.Method == fiber.MethodGet && route.Method == fiber.MethodHead {
			method = fiber.MethodGet
		}
	}
	if !matched {
		return ""
	}
	return method + " " + decoration.ReplaceAllString(route.Path, "$1")
}
