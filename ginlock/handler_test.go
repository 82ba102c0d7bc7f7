package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

func TestHandler_NotAcquiredDoesNotRunAndAborts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.redis.Take(payKey, time.Hour)
		var aborted bool
		s.engine.Use(func(c *gin.Context) { c.Next(); aborted = c.IsAborted() })
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("a middleware ran") }, func(*gin.Context) { t.Error("the handler ran") })
		start := time.Now()
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusConflict)
		want(t, "aborted", aborted, true)
		want(t, "waited", time.Since(start).Round(100*time.Millisecond), 2*time.Second)
	})
}

func TestHandler_OnAGroupCompilesForEveryRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		g := s.engine.Group("/v1", s.guard.Handler(ruleset.Rule{Key: "#{path.id}@#{route}"}))
		for _, path := range []string{"/a/:id", "/b/:id"} {
			g.GET(path, func(c *gin.Context) { c.String(http.StatusOK, ginlock.Hold(c).Key()) })
		}
		want(t, "a", serve(s, request{method: "GET", url: "/v1/a/7"}).Body.String(), prefix+"7@/v1/a/%3Aid")
		want(t, "b", serve(s, request{method: "GET", url: "/v1/b/7"}).Body.String(), prefix+"7@/v1/b/%3Aid")
	})
}

func TestHandler_WithoutRouteIsGuardedToo(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.NoRoute(s.guard.Handler(ruleset.Rule{Key: "proxy", WaitTime: ruleset.NoWait}), func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"proxy"), true)
			c.Status(http.StatusAccepted)
		})
		want(t, "free", s.do(t, request{method: "GET", url: "/x"}).Code, http.StatusAccepted)
		s.redis.Take(prefix+"proxy", time.Hour)
		want(t, "taken", s.do(t, request{method: "GET", url: "/y"}).Code, http.StatusConflict)
	})
}

func TestHandle_JoinsTheBasePathOfItsGroup(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		g := s.engine.Group("/tenants/:tenant")
		rule := ruleset.Rule{Key: "#{path.tenant}:order:#{path.id}"}
		if err := s.guard.Handle(g, "POST", "/orders/:id/", rule, func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"acme:order:1"), true)
			c.String(http.StatusOK, c.FullPath())
		}); err != nil {
			t.Fatal(err)
		}
		w := s.do(t, request{url: "/tenants/acme/orders/1/"})
		want(t, "route", w.Body.String(), "/tenants/:tenant/orders/:id/")
	})
}

func TestMiddleware_DeclaredRulesByRoute(t *testing.T) {
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

func TestGuards_OneTwiceOnAPathActsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST " + payPath), Key: "order:#{path.id}", Debounce: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Use(s.guard.Middleware(set))
		g := s.engine.Group("", s.guard.Middleware(set))
		ran := 0
		g.POST(payPath, func(*gin.Context) { ran++ })
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		want(t, "runs", ran, 1)
		want(t, "Check", s.guard.Check(s.engine), nil)
	})
}

func TestGuards_TwoOnAPathWithOneNameAnswer500(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.HTTP("POST " + payPath), Key: "order:#{path.id}"}})
		if err != nil {
			t.Fatal(err)
		}
		s.engine.Use(s.guard.Middleware(set))
		s.handle(t, "POST", payPath, pay, func(*gin.Context) { t.Error("the handler ran") })
		wantText(t, s.guard.Check(s.engine), "POST "+payPath, "is there twice", "names that differ")
		want(t, "status", s.do(t, request{}).Code, http.StatusInternalServerError)
		want(t, "held afterwards", s.held(t, payKey), false)
	})
}

func TestGuards_TwoOnAPathWithNamesNestAndReenter(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		inner := pay
		inner.Name = "inner"
		ran := 0
		s.engine.POST(payPath, s.guard.Handler(pay), s.guard.Handler(inner), func(*gin.Context) {
			ran++
			state, err := s.locks.Lock("order:42").State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, count := range state.Holders {
				want(t, "hold count", count, 2)
			}
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		want(t, "runs", ran, 1)
		want(t, "held afterwards", s.held(t, payKey), false)
	})
}
