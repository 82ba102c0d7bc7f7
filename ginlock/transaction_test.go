package ginlock_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// A middleware behind the guard commits after the handler has returned: until then
// nobody else may read what is not committed yet.
func TestLock_OutlivesTheTransactionInsideIt(t *testing.T) {
	t.Parallel()
	type register func(t *testing.T, s *shop, chain ...gin.HandlerFunc)
	for name, register := range map[string]register{
		"Handle": func(t *testing.T, s *shop, chain ...gin.HandlerFunc) {
			t.Helper()
			s.handle(t, http.MethodPost, payPath, pay, chain...)
		},
		"Handler": func(_ *testing.T, s *shop, chain ...gin.HandlerFunc) {
			s.engine.Use(s.guard.Handler(pay)).POST(payPath, chain...)
		},
		"Middleware": func(t *testing.T, s *shop, chain ...gin.HandlerFunc) {
			t.Helper()
			rule := pay
			rule.Endpoint = ruleset.Route(http.MethodPost, payPath)
			s.engine.Use(s.guard.Middleware(goSet(t, []ruleset.Rule{rule})), chain[0]).POST(payPath, chain[1])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				var steps []string
				transaction := func(c *gin.Context) {
					steps = append(steps, "begin")
					want(t, "held at the begin", s.held(t, payKey), true)
					c.Next()
					steps = append(steps, "commit")
					want(t, "held at the commit", s.held(t, payKey), true)
					want(t, "cancelled at the commit", c.Request.Context().Err(), nil)
				}
				register(t, s, transaction, func(c *gin.Context) {
					steps = append(steps, "handler")
					c.String(http.StatusCreated, "paid")
				})
				want(t, "status", s.do(t, request{}).Code, http.StatusCreated)
				want(t, "held after the response", s.held(t, payKey), false)
				if !slices.Equal(steps, []string{"begin", "handler", "commit"}) {
					t.Errorf("got %q", steps)
				}
			})
		})
	}
}
