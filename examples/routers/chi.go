package routers

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Chi returns a shop on chi. The guard needs the matched route: pass its middleware to With, or
// to Use within Group. A middleware in Use of the whole router, or of a router below Route or
// Mount, runs before chi matches the route.
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

// ChiMiddleware returns the middleware of a guard. It adds the method that chi matched to the
// pattern, because chi's pattern does not contain it and a middleware may have changed the method
// of the request.
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

// ChiPatterns returns the routes of a router, for Check.
func ChiPatterns(routes chi.Routes) (patterns []string, err error) {
	err = chi.Walk(routes, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if path != "/" {
			path = strings.TrimSuffix(path, "/") // the pattern of a request does not end in a slash
		}
		patterns = append(patterns, method+" "+path)
		return nil
	})
	return patterns, err
}
