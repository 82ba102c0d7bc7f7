package routers

import "net/http"

// Decoded decodes paths once before the router sees them, as net/http and gin do. chi and echo
// match the client's spelling of the path and use it for path values: without Decoded, /orders/42
// and /orders/%34%32 have different keys, and a client can choose one of them. With Decoded, an
// encoded slash is a slash.
func Decoded(router http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawPath != "" {
			decoded := *r.URL
			decoded.RawPath = ""
			original := r
			r = r.WithContext(r.Context()) // a copy
			r.URL = &decoded
			defer func() { original.MultipartForm = r.MultipartForm }() // net/http removes its files
		}
		router.ServeHTTP(w, r)
	})
}
