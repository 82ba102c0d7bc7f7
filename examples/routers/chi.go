package routers

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Chi is a shop that is served by chi. The guard has to see which route was matched: give
// it to With, or to Use within Group. A Use of the whole router, or of one below Route or
// Mount, comes too early.
func Chi(guard *httplock.Guard, pay, cancel http.HandlerFunc) (http.Handler, error) {
	r := chi.NewRouter()
	r.With(ChiMiddleware(guard)).Post("/orders/{id}/pay", pay)
	r.Route("/carts", func(r chi.Router) {
		r.Group(func(r chi.Router) {
			r.Use(ChiMiddleware(guard))
			r.Delete("/{id}", cancel)
		})
	})
	patterns, err := ChiPatterns(r)
	if err != nil {
		return nil, err
	}
	return Decoded(r), guard.Check(patterns...)
}

// ChiMiddleware is the middleware of a guard, which it gives the method that chi has matched:
// chi leaves it out of the pattern, and a middleware may have changed the one of the request.
func ChiMiddleware(guard *httplock.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		guarded := guard.Middleware(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Pattern, "/") {
				r.Pattern = chi.RouteContext(r.Context()).RouteMethod + " " + r.Pattern
			}
			guarded.ServeHTTP(w, r)
		})
	}
}

// ChiPatterns are the routes of a router, for Check.
func ChiPatterns(routes chi.Routes) (patterns []string, err error) {
	err = chi.Walk(routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if path != "/" {
			path = strings.TrimSuffix(path, "/") // requests have the pattern without it
		}
		patterns = append(patterns, method+" "+path)
		return nil
	})
	return patterns, err
}
