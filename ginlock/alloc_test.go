package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// discardWriter is a writer that discards everything and allocates nothing.
type discardWriter struct{ header http.Header }

func (m discardWriter) Header() http.Header         { return m.header }
func (m discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (m discardWriter) WriteHeader(int)             {}

// unmatchedMiddleware returns a middleware without rules for GET /orders/:id.
func unmatchedMiddleware(t testing.TB) gin.HandlerFunc {
	t.Helper()
	set, err := ruleset.NewSet([]ruleset.Rule{
		{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"},
		{Endpoint: ruleset.HTTP("* /admin/*"), Key: "admin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return newGuard(t).Middleware(set)
}

func TestMiddleware_Allocations(t *testing.T) {
	r, w := gin.New(), discardWriter{http.Header{}}
	guard := unmatchedMiddleware(t)
	var allocations float64
	measure := func(c *gin.Context) { allocations = testing.AllocsPerRun(200, func() { guard(c) }) }
	r.GET("/orders/:id", measure)
	r.NoRoute(measure)
	for _, path := range []string{"/orders/42", "/nowhere"} {
		allocations = -1
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		want(t, path, allocations, 0)
	}
}

func BenchmarkMiddleware_Unmatched(b *testing.B) {
	w := discardWriter{http.Header{}}
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/orders/42", nil)
	for name, guarded := range map[string]bool{"bare": false, "guarded": true} {
		r := gin.New()
		if guarded {
			r.Use(unmatchedMiddleware(b))
		}
		r.GET("/orders/:id", func(*gin.Context) {})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.ServeHTTP(w, req)
			}
		})
	}
}

// BenchmarkHandler_Disabled measures a matched rule without lock and key.
func BenchmarkHandler_Disabled(b *testing.B) {
	guard := newGuard(b)
	r := gin.New()
	if err := guard.Handle(r, "GET", "/orders/:id", ruleset.Rule{Key: "order:#{path.id}", Disabled: true}, func(*gin.Context) {}); err != nil {
		b.Fatal(err)
	}
	w := discardWriter{http.Header{}}
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/orders/42", nil)
	b.ReportAllocs()
	for b.Loop() {
		r.ServeHTTP(w, req)
	}
}

// measureLookups calls measure for a route with a rule and for a route without one. The engine has n rules and a
// route for each.
func measureLookups(t testing.TB, n int, measure func(name string, find func() bool)) {
	t.Helper()
	rules := make([]ruleset.Rule, n)
	for i := range rules {
		rules[i] = ruleset.Rule{Endpoint: ruleset.Route("POST", fmt.Sprintf("/shop-%d/orders/:id/pay", i)), Key: "order:#{path.id}"}
	}
	set, err := ruleset.NewSet(rules)
	if err != nil {
		t.Fatal(err)
	}
	guard, r := newGuard(t), gin.New()
	r.Use(guard.Middleware(set))
	for _, rule := range rules {
		r.POST(rule.Endpoint.Path, ok)
	}
	lookup := guard.Lookup(set)
	if err := guard.Check(r); err != nil {
		t.Fatal(err)
	}
	handle := func(name string) gin.HandlerFunc {
		return func(c *gin.Context) { measure(name, func() bool { return lookup(c) }) }
	}
	in := gin.New() // the same routes with handlers that measure
	in.POST(fmt.Sprintf("/shop-%d/orders/:id/pay", n/2), handle("matched"))
	in.POST("/shop-without/orders/:id/pay", handle("unmatched"))
	in.NoRoute(handle("no route"))
	for _, path := range []string{fmt.Sprintf("/shop-%d/orders/42/pay", n/2), "/shop-without/orders/42/pay", "/nowhere"} {
		in.ServeHTTP(discardWriter{http.Header{}}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
	}
}

func TestLookup_Allocations(t *testing.T) {
	measured := 0
	measureLookups(t, 1000, func(name string, find func() bool) {
		want(t, name, find(), name == "matched")
		want(t, name+": allocations", testing.AllocsPerRun(100, func() { find() }), 0)
		measured++
	})
	want(t, "requests", measured, 3)
}

func TestLock_Allocations(t *testing.T) {
	locks, r := downClient(t), gin.New()
	allocations := -1.0
	lock := ginlock.Lock(locks, "order:#{path.id}")
	find := ginlock.LookupLock(locks)
	r.POST("/orders/:id/pay", func(c *gin.Context) {
		want(t, "found", find(c), true)
		allocations = testing.AllocsPerRun(100, func() { find(c) })
		c.Abort()
	}, lock, ok)
	r.ServeHTTP(discardWriter{http.Header{}}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42/pay", nil))
	want(t, "allocations", allocations, 0)
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		measureLookups(b, n, func(name string, find func() bool) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find()
				}
			})
		})
	}
}
