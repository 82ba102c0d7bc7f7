package routers

import "net/http"

// Decoded has a router see paths decoded, once, as those of net/http and gin do. chi and echo
// match the spelling of the client, and hand it over as the values of a path: /orders/42 and
// /orders/%34%32 would be two keys, and a client could choose which. An encoded slash then is a
// slash.
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
