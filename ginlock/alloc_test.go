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

// unmatchedEngine has rules, none of them for GET /orders/:id.
func unmatchedEngine(t testing.TB, guarded bool) *gin.Engine {
	t.Helper()
	r := gin.New()
	if guarded {
		set, err := ruleset.NewSet([]ruleset.Rule{
			{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}"},
			{Endpoint: ruleset.HTTP("* /admin/*"), Key: "admin"},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.Use(newGuard(t).Middleware(set))
	}
	r.GET("/orders/:id", func(*gin.Context) {})
	return r
}

func TestMiddleware_UnmatchedRouteDoesNotAllocate(t *testing.T) {
	r := unmatchedEngine(t, true)
	w := mute{http.Header{}}
	for _, path := range []string{"/orders/42", "/nowhere"} {
		bare := unmatchedEngine(t, false)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		without := testing.AllocsPerRun(200, func() { bare.ServeHTTP(w, req) })
		with := testing.AllocsPerRun(200, func() { r.ServeHTTP(w, req) })
		want(t, path, with, without)
	}
}

func BenchmarkMiddleware_Unmatched(b *testing.B) {
	w := mute{http.Header{}}
	req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/orders/42", nil)
	for name, guarded := range map[string]bool{"bare": false, "guarded": true} {
		r := unmatchedEngine(b, guarded)
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
