package routers

import "net/http"

// Decoded decodes paths once before the router sees them, like net/http and gin do. chi and
// echo match the spelling of the client and use it for the values of a path: without Decoded
// /orders/42 and /orders/%34%32 have two keys, and a client can choose one. With Decoded an
// encoded slash is a slash.
func Decoded(router http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath != "" {
			decoded := *r.URL
			decoded.RawPath = ""
			r = r.WithContext(r.Context()) // a copy
			r.URL = &decoded
		}
		router.ServeHTTP(w, r)
	})
}
