package routes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	m.Run()
}

// match returns the route that Serve finds and the values of its parameters.
func match(list []routes.Route, method, path string) (found routes.Route, params map[string]string, ok bool) {
	params = map[string]string{}
	guards := routes.Guards{
		Gin: func(c *gin.Context) {
			for _, p := range c.Params {
				params[p.Key] = p.Value
			}
		},
		NetHTTP: func(mux httplock.Mux, pattern string, _ http.Handler) {
			mux.Handle(pattern, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				for _, name := range routes.Params(pattern) {
					params[name] = r.PathValue(name)
				}
			}))
		},
	}
	ok = routes.Serve(list, &http.Request{Method: method, URL: &url.URL{Path: path}}, guards, func(r routes.Route) { found = r })
	return found, params, ok
}

// ginMatch returns the route that gin finds.
func ginMatch(list []routes.Route, method, path string) (found string, params map[string]string, ok bool) {
	engine := gin.New()
	engine.RedirectTrailingSlash = false
	params = map[string]string{}
	for _, r := range list {
		engine.Handle(r.Method, r.Path, func(c *gin.Context) {
			found, ok = c.FullPath(), true
			for _, p := range c.Params {
				params[p.Key] = p.Value
			}
		})
	}
	r := httptest.NewRequest(method, "/", http.NoBody)
	r.URL.Path = path
	engine.ServeHTTP(httptest.NewRecorder(), r)
	return found, params, ok
}

func TestServe_SameAsGin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	matched := 0
	for range 6000 {
		list := randomRoutes(random)
		path := randomPath(random)
		want, wantParams, wantOK := ginMatch(list, "POST", path)
		got, params, ok := match(list, "POST", path)
		if ok != wantOK || got.Path != want || ok && !maps.Equal(params, wantParams) {
			t.Fatalf("routes %v, path %s: got %q %v %t, gin finds %q %v %t", list, path, got.Path, params, ok, want, wantParams, wantOK)
		}
		if ok {
			matched++
		}
	}
	if matched < 600 {
		t.Errorf("only %d of the paths matched, so the test proves little", matched)
	}
}

// randomRoutes returns routes that gin accepts together: a parameter has one name at each depth.
func randomRoutes(random *rand.Rand) []routes.Route {
	var list []routes.Route
	seen := map[string]bool{}
	for range 1 + random.IntN(5) {
		var path strings.Builder
		for depth := range 1 + random.IntN(3) {
			fmt.Fprintf(&path, "/%s", []string{"a", "b", "ab", fmt.Sprintf(":p%d", depth)}[random.IntN(4)])
		}
		if random.IntN(6) == 0 {
			path.WriteString("/")
		}
		if !seen[path.String()] {
			seen[path.String()] = true
			list = append(list, routes.Route{Method: "POST", Path: path.String()})
		}
	}
	return list
}

func randomPath(random *rand.Rand) string {
	var path strings.Builder
	for range 1 + random.IntN(3) {
		path.WriteString("/" + []string{"a", "b", "ab", "abc", "x:y", ""}[random.IntN(6)])
	}
	return path.String()
}

func TestServe_Examples(t *testing.T) {
	t.Parallel()
	list := []routes.Route{
		{Method: "POST", Path: "/orders/:id/pay"},
		{Method: "POST", Path: "/orders/:id/:action"},
		{Method: "POST", Path: "/orders/open/pay"},
		{Method: "GET", Path: "/files/*name"},
		{Method: "GET", Path: "/users/u_:name"},
		{Method: "*", Path: "/any"},
		{Method: "GET", Path: "/any"},
		{Method: "POST", Path: `/v1/orders\:batch`},
	}
	for _, c := range []struct{ method, path, want, params string }{
		{"POST", "/orders/42/pay", "/orders/:id/pay", "map[id:42]"},
		{"POST", "/orders/42/ship", "/orders/:id/:action", "map[action:ship id:42]"},
		{"POST", "/orders/open/pay", "/orders/open/pay", "map[]"},
		{"POST", "/orders/open/ship", "/orders/:id/:action", "map[action:ship id:open]"},
		{"GET", "/files/a/b.txt", "/files/*name", "map[name:/a/b.txt]"},
		{"GET", "/files/", "/files/*name", "map[name:/]"},
		{"GET", "/users/u_ann", "/users/u_:name", "map[name:ann]"},
		{"GET", "/any", "/any", "map[]"},
		{"PUT", "/any", "/any", "map[]"},
		{"POST", "/v1/orders:batch", `/v1/orders\:batch`, "map[]"},
		{"GET", "/orders/42/pay", "", "map[]"},
		{"POST", "/orders/42", "", "map[]"},
		{"GET", "/files", "", "map[]"},
	} {
		got, params, ok := match(list, c.method, c.path)
		if got.Path != c.want || fmt.Sprint(params) != c.params || ok != (c.want != "") {
			t.Errorf("%s %s: got %q %v, want %q %s", c.method, c.path, got.Path, params, c.want, c.params)
		}
	}
}

// Rules of several programs may name routes that conflict in one engine.
func TestServe_ConflictingRoutes(t *testing.T) {
	t.Parallel()
	list := []routes.Route{
		{Method: "POST", Path: "/orders/:id"},
		{Method: "POST", Path: "/orders/:order/pay"},
		{Method: "*", Path: "/orders/:id"},
		{Method: "POST", Path: "orders"},
	}
	for path, want := range map[string]string{
		"/orders/42":     "POST /orders/:id map[id:42]",
		"/orders/42/pay": "POST /orders/:order/pay map[order:42]",
	} {
		got, params, ok := match(list, "POST", path)
		if text := fmt.Sprint(got.Method, " ", got.Path, " ", params); !ok || text != want {
			t.Errorf("%s: got %s, want %s", path, text, want)
		}
	}
}

func TestParams(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"/orders/:id/items/:item": "[id item]",
		"/files/*name":            "[name]",
		"/users/u_:name":          "[name]",
		`/v1/orders\:batch`:       "[]",
		"/api/*":                  "[]",
	} {
		if got := fmt.Sprint(routes.Params(pattern)); got != want {
			t.Errorf("%s: got %s, want %s", pattern, got, want)
		}
	}
}

func TestServe_NetHTTP(t *testing.T) {
	t.Parallel()
	list := []routes.Route{
		{Method: "POST", Path: "/orders/{id}/pay"},
		{Method: "*", Path: "/orders/{id}"},
		{Method: "POST", Path: "/orders/:id/ship"},
		{Method: "POST", Path: "/files/{rest...}"},
	}
	for path, want := range map[string]string{
		"/orders/42/pay":  "/orders/{id}/pay map[id:42]",
		"/orders/4 2":     "/orders/{id} map[id:4 2]",
		"/orders/42/ship": "/orders/:id/ship map[id:42]",
		"/files/a/b":      "/files/{rest...} map[rest:a/b]",
		"/orders":         " map[]",
	} {
		found, params, ok := match(list, "POST", path)
		if got := fmt.Sprint(found.Path, " ", params); got != want || ok != (found.Path != "") {
			t.Errorf("%s: got %s %t, want %s", path, got, ok, want)
		}
	}
}
