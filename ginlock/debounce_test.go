package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// No window begins if the handler calls CancelDebounce, with gin's own context too, or adds an error. Package httplock
// tests the statuses and methods.
func TestDebounce_Cancelled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first   request
		handler gin.HandlerFunc
		begins  bool
	}{
		"CancelDebounce":     {request{}, func(c *gin.Context) { aspect.CancelDebounce(c.Request.Context()) }, false},
		"an error of gin":    {request{}, func(c *gin.Context) { _ = c.Error(http.ErrBodyNotAllowed); c.String(http.StatusOK, "ok") }, false},
		"success":            {request{}, answerWith(http.StatusCreated), true},
		"HEAD":               {request{method: http.MethodHead}, answerWith(http.StatusOK), false},
		"with gin's context": {request{}, func(c *gin.Context) { aspect.CancelDebounce(c) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				rule := ruleset.Rule{Key: pay.Key, Debounce: time.Hour}
				s.engine.Any(payPath, s.guard.Handler(rule), tt.handler)
				s.do(t, tt.first)
				want(t, "refused", s.do(t, request{}).Code == http.StatusTooManyRequests, tt.begins)
			})
		})
	}
}
