package gozerolock

import (
	"mime"
	"net/http"
	"path"

	"github.com/zeromicro/go-zero/rest"
	"github.com/zeromicro/go-zero/rest/pathvar"

	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Routes returns routes that run under their rules, for AddRoutes. prefix is the argument of rest.WithPrefix, or "" without
// a prefix. Routes needs it because go-zero adds it later and does not report the matched route. With another prefix, the
// guard answers 500. Under methods other than POST, PUT and PATCH, a multipart form gets 415.
func Routes(guard *httplock.Guard, prefix string, routes ...rest.Route) []rest.Route {
	guarded := make([]rest.Route, len(routes))
	for i, route := range routes {
		next, pattern := guard.Middleware(route.Handler), route.Method+" "+route.Path
		if prefix != "" {
			pattern = route.Method + " " + path.Join(prefix, route.Path)
		}
		guarded[i] = route
		guarded[i].Handler = func(w http.ResponseWriter, r *http.Request) {
			if !takesForms(r.Method) && isMultipart(r) { // httpx.Parse would read it, and the key would not
				w.WriteHeader(http.StatusUnsupportedMediaType)
				return
			}
			r = r.WithContext(r.Context()) // a copy
			r.Pattern = pattern
			for name, value := range pathvar.Vars(r) {
				r.SetPathValue(name, value)
			}
			next.ServeHTTP(w, r)
		}
	}
	return guarded
}

// takesForms reports whether net/http parses urlencoded forms under a method.
func takesForms(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

func isMultipart(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "multipart/form-data"
}

// Check compares the rules of the guard with the routes of a server; see [httplock.Guard.Check]. Call it after AddRoutes
// and before Start.
func Check(server *rest.Server, guard *httplock.Guard) error {
	var patterns []string
	for _, route := range server.Routes() {
		patterns = append(patterns, route.Method+" "+route.Path)
	}
	return guard.Check(patterns...)
}
