package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// lookedUp gives measure a request to a route with a rule and one to a route
// without, in an engine of n rules, each of which has its route.
func lookedUp(t testing.TB, n int, measure func(name string, find func() bool)) {
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
	in := gin.New() // the same routes; the ones that measure
	in.POST(fmt.Sprintf("/shop-%d/orders/:id/pay", n/2), handle("matched"))
	in.POST("/shop-without/orders/:id/pay", handle("unmatched"))
	in.NoRoute(handle("no route"))
	for _, path := range []string{fmt.Sprintf("/shop-%d/orders/42/pay", n/2), "/shop-without/orders/42/pay", "/nowhere"} {
		in.ServeHTTP(mute{http.Header{}}, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
	}
}

func TestLookup_DoesNotAllocate(t *testing.T) {
	measured := 0
	lookedUp(t, 1000, func(name string, find func() bool) {
		want(t, name, find(), name == "matched")
		want(t, name+": allocations", testing.AllocsPerRun(100, func() { find() }), 0)
		measured++
	})
	want(t, "requests", measured, 3)
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		lookedUp(b, n, func(name string, find func() bool) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					find()
				}
			})
		})
	}
}
