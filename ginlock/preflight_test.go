package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// preflight contains the headers with which a browser asks whether a page of another origin may send a POST.
var preflight = request{method: http.MethodOptions, headers: map[string]string{
	"Origin": "https://shop.example", "Access-Control-Request-Method": "POST",
}}

// cors answers preflights, like middlewares for CORS.
func cors(c *gin.Context) {
	if c.Request.Method == http.MethodOptions {
		c.AbortWithStatus(http.StatusNoContent)
	}
}

// A CORS preflight takes the lock only if a rule names OPTIONS.
func TestPreflight(t *testing.T) {
	t.Parallel()
	in := func(endpoint string) ruleset.Rule {
		rule := pay
		rule.WaitTime, rule.Endpoint = ruleset.NoWait, ruleset.HTTP(endpoint)
		return rule
	}
	on := pay
	on.WaitTime = ruleset.NoWait
	set := func(endpoint string) func(*testing.T, *shop) {
		return func(t *testing.T, s *shop) {
			s.declare(t, in(endpoint))
			s.engine.Any(payPath, answerPaid)
		}
	}
	for name, tt := range map[string]struct {
		routes func(t *testing.T, s *shop)
		r      request
		code   int
	}{
		"Handler of Any": {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), answerPaid) }, preflight, http.StatusOK},
		"Handler of a group": {func(_ *testing.T, s *shop) {
			group := s.engine.Group("", s.guard.Handler(on))
			group.POST(payPath, answerPaid)
			group.OPTIONS(payPath, cors)
		}, preflight, http.StatusNoContent},
		"Handler before a middleware that answers": {func(_ *testing.T, s *shop) {
			rule := on
			rule.Key = "order:42"
			s.engine.Use(s.guard.Handler(rule), cors)
			s.engine.POST(payPath, answerPaid)
		}, preflight, http.StatusNoContent},
		"every route":           {set("*"), preflight, http.StatusOK},
		"every method":          {set("* " + payPath), preflight, http.StatusOK},
		"every route below":     {set("* /orders/*"), preflight, http.StatusOK},
		"a rule of the set":     {set("OPTIONS " + payPath), preflight, http.StatusConflict},
		"a wildcard of the set": {set("OPTIONS /orders/*"), preflight, http.StatusConflict},
		"Handle":                {func(t *testing.T, s *shop) { s.handle(t, http.MethodOptions, payPath, on, answerPaid) }, preflight, http.StatusConflict},
		"Handler that names OPTIONS": {func(_ *testing.T, s *shop) {
			s.engine.OPTIONS(payPath, s.guard.Handler(in("OPTIONS "+payPath)), answerPaid)
		}, preflight, http.StatusConflict},
		"another request": {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), answerPaid) }, request{headers: preflight.headers}, http.StatusConflict},
		"no question":     {func(_ *testing.T, s *shop) { s.engine.Any(payPath, s.guard.Handler(on), answerPaid) }, request{method: http.MethodOptions}, http.StatusConflict},
		"a changed method": {func(_ *testing.T, s *shop) {
			s.engine.Use(func(c *gin.Context) { c.Request.Method = http.MethodOptions })
			s.engine.POST(payPath, s.guard.Handler(on), answerPaid)
		}, request{headers: preflight.headers}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				tt.routes(t, s)
				s.redis.Take(payKey, time.Hour)
				want(t, "status", s.do(t, tt.r).Code, tt.code)
			})
		})
	}
}
