package ginlock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// mute is a writer that costs nothing.
type mute struct{ header http.Header }

func (m mute) Header() http.Header         { return m.header }
func (m mute) Write(p []byte) (int, error) { return len(p), nil }
func (m mute) WriteHeader(int)             {}

// unmatchedMiddleware has rules, none of them for GET /orders/:id.
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

func TestMiddleware_UnmatchedRouteDoesNotAllocate(t *testing.T) {
	r, w := gin.New(), mute{http.Header{}}
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
	w := mute{http.Header{}}
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

// BenchmarkHandler_Disabled is what a matched rule costs beyond lock and key.
func BenchmarkHandler_Disabled(b *testing.B) {
	guard := newGuard(b)
	r := gin.New()
	if err := guard.Handle(r, "GET", "/orders/:id", ruleset.Rule{Key: "order:#{path.id}", Disabled: true}, func(*gin.Context) {}); err != nil {
		b.Fatal(err)
	}
	w := mute{http.Header{}}
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/orders/42", nil)
	b.ReportAllocs()
	for b.Loop() {
		r.ServeHTTP(w, req)
	}
}
