package ginlock_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// A handler for all routes makes nothing else of a request that has none, whatever its
// rule reads and does without a key.
func TestHandler_LeavesTheStatusOfARequestWithoutARoute(t *testing.T) {
	t.Parallel()
	keys := map[string]ruleset.Rule{
		"route":                {Key: "#{route}"},
		"route in a condition": {Key: "order", When: `route == "/orders/:id/pay"`},
		"route and method":     {Key: "#{method}:#{route}"},
		"route and a header":   {Key: `#{route}:#{header["X-Id"]}`},
		"a header":             {Key: `#{header["X-Id"]}`},
		"the body":             {Key: "#{body.id}"},
	}
	strategies := map[string]failpolicy.Strategy{
		"error": failpolicy.Error, "skip": failpolicy.Skip, "null": failpolicy.NullResponse, "fallback": failpolicy.Fallback, "proceed": failpolicy.Proceed,
	}
	for name, rule := range keys {
		for word, strategy := range strategies {
			t.Run(name+" under "+word, func(t *testing.T) {
				t.Parallel()
				rule := rule
				rule.OnKey = strategy
				if strategy == failpolicy.Fallback {
					rule.Fallback = "queue"
				}
				bubble(t, func(t *testing.T, s *shop) {
					s.engine.HandleMethodNotAllowed = true
					s.engine.Use(s.guard.Handler(rule))
					s.engine.POST(payPath, ok)
					for range 2 {
						w := s.do(t, request{url: "/nowhere"})
						want(t, "no route", w.Code, http.StatusNotFound)
						want(t, "body", w.Body.String(), "404 page not found")
						w = s.do(t, request{method: "PUT"})
						want(t, "another method", w.Code, http.StatusMethodNotAllowed)
						want(t, "Allow", w.Header().Get("Allow"), "POST")
					}
				}, fallbackNamed("queue"))
			})
		}
	}
}

// A page of the application for requests without a route runs where the rule has
// nothing to lock there.
func TestHandler_OverRouteIsPassedByOnTheWayToNoRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.guard.Handler(ruleset.Rule{Key: "#{route}"}))
		s.engine.POST(payPath, ok)
		s.engine.NoRoute(func(c *gin.Context) { c.String(http.StatusNotFound, "our page") })
		w := s.do(t, request{url: "/nowhere"})
		want(t, "status", w.Code, http.StatusNotFound)
		want(t, "body", w.Body.String(), "our page")
		s.redis.Take(prefix+strings.ReplaceAll(payPath, ":", "%3A"), time.Hour)
		want(t, "a route", s.do(t, request{}).Code, http.StatusConflict)
	})
}

// What is served without a route never runs without the lock of its rule.
func TestHandler_WithoutRouteAndKeyDoesNotRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.NoRoute(s.guard.Handler(ruleset.Rule{Key: `proxy:#{header["X-Id"]}`}), func(c *gin.Context) {
			want(t, "held", s.held(t, prefix+"proxy:7"), true)
			c.Status(http.StatusAccepted)
		})
		want(t, "no key", s.do(t, request{url: "/x"}).Code, http.StatusNotFound)
		want(t, "a key", s.do(t, request{url: "/x", headers: map[string]string{"X-Id": "7"}}).Code, http.StatusAccepted)
	})
}

func fallbackNamed(name string) ginlock.Option {
	return ginlock.WithFallback(name, func(c *gin.Context) { c.String(http.StatusAccepted, name) })
}
