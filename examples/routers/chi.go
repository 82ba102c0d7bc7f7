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
	r.With(guard.Middleware).Post("/orders/{id}/pay", pay)
	r.Route("/carts", func(r chi.Router) {
		r.Group(func(r chi.Router) {
			r.Use(guard.Middleware)
			r.Delete("/{id}", cancel)
		})
	})
	patterns, err := ChiPatterns(r)
	if err != nil {
		return nil, err
	}
	return Decoded(r), guard.Check(patterns...)
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
