package ginlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// After an early release Caller goes on for as long as the client is there, and no longer.
func TestCaller(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		client, leaves := context.WithCancel(t.Context())
		s.handle(t, "POST", payPath, ruleset.Rule{Key: "order:#{path.id}"}, func(c *gin.Context) {
			wantErr(t, "Release", ginlock.Hold(c).Release(c.Request.Context()), nil)
			wantErr(t, "the request's context", c.Request.Context().Err(), context.Canceled)
			wantErr(t, "the caller's", ginlock.Caller(c).Err(), nil)
			leaves()
			wantErr(t, "the caller's, who has left", ginlock.Caller(c).Err(), context.Canceled)
		})
		s.engine.GET("/free", func(c *gin.Context) {
			want(t, "without a lock", ginlock.Caller(c), c.Request.Context())
		})
		for _, r := range []struct{ method, path string }{{"POST", "/orders/42/pay"}, {"GET", "/free"}} {
			s.engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(client, r.method, r.path, http.NoBody))
		}
	})
}
