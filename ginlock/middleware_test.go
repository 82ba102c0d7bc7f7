package ginlock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestMiddleware_ProviderWithoutReloads(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Middleware(closedProvider{yaml(t, payRules(""))}))
		s.engine.POST(payPath, ok)
		s.redis.Take(payKey, time.Hour)
		want(t, "status", s.do(t, request{}).Code, http.StatusConflict)
		wantText(t, s.guard.Check(s.engine), "the shop is closed", "no reload")
	})
}

// A program that ignores an error may pass a nil set. No route then runs without its lock.
func TestMiddleware_Nil(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]ruleset.Provider{"nil": nil, "no set": (*ruleset.Set)(nil), "no live set": (*ruleset.Live)(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guard, r := newGuard(t), gin.New()
			r.Use(guard.Middleware(p))
			r.POST("/x", func(*gin.Context) { t.Error("the handler ran") })
			wantText(t, guard.Check(r), "Middleware: the rules are nil", "ruleset.Open")
			for url, status := range map[string]int{"/x": http.StatusInternalServerError, "/nowhere": http.StatusNotFound} {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, request{url: url}.build())
				want(t, "status of "+url, w.Code, status)
			}
		})
	}
}

func TestMiddleware_EmptySet(t *testing.T) {
	t.Parallel()
	guard, r := newGuard(t), gin.New()
	r.Use(guard.Middleware(new(ruleset.Set)))
	r.POST("/x", ok)
	want(t, "Check", guard.Check(r), nil)
}

// closedProvider is a provider that accepts no subscribers.
type closedProvider struct{ *ruleset.Set }

func TestMiddleware_RulesByRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		set, err := ruleset.NewSet([]ruleset.Rule{
			{Endpoint: ruleset.HTTP("POST /orders/:id/pay"), Key: "order:#{path.id}", WaitTime: ruleset.NoWait},
			{Endpoint: ruleset.HTTP("* /admin/*"), Key: "admin:#{method}", WaitTime: ruleset.NoWait},
			{Endpoint: ruleset.GRPC("/shop.Orders/Pay"), Key: "other"},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Use(s.guard.Middleware(set))
		held := func(c *gin.Context) {
			if h, ok := core.Held(c.Request.Context(), "order:42"); ok {
				c.String(http.StatusOK, h.Key())
				return
			}
			_, ok := core.Held(c.Request.Context(), "admin:GET")
			c.JSON(http.StatusOK, ok)
		}
		s.engine.POST("/orders/:id/pay", func(c *gin.Context) {
			_, ok := core.Held(c.Request.Context(), "order:42")
			c.JSON(http.StatusOK, ok)
		})
		s.engine.GET("/orders/:id", held)
		s.engine.GET("/admin/stock/count", held)
		if err := s.guard.Check(s.engine); err != nil {
			t.Fatal(err)
		}
		want(t, "a route with a rule", s.do(t, request{}).Body.String(), "true")
		want(t, "one without", s.do(t, request{method: "GET", url: "/orders/42"}).Body.String(), "false")
		want(t, "below a wildcard", s.do(t, request{method: "GET", url: "/admin/stock/count"}).Body.String(), "true")
		want(t, "no such route", s.do(t, request{method: "GET", url: "/nowhere"}).Code, http.StatusNotFound)
	})
}
