package ginlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// redispatch lets the engine serve the request again under another path.
func (s *shop) redispatch(path string) gin.HandlerFunc {
	return func(c *gin.Context) {
		c.Request.URL.Path = path
		s.engine.HandleContext(c)
	}
}

// wantOwned fails the test unless contexts derived from gin's context carry the lock, so that an Acquire re-enters it
// instead of waiting for itself.
func (s *shop) wantOwned(t testing.TB, c *gin.Context, name string) {
	t.Helper()
	derived, cancel := context.WithTimeout(c, time.Hour)
	defer cancel()
	other, hold, err := s.locks.Lock("other").Acquire(c)
	must(t, err)
	defer func() { must(t, hold.Release(other)) }()
	for what, ctx := range map[string]context.Context{"c": c, "one derived from c": derived, "one with another lock": other} {
		err := s.locks.Lock(name).Do(ctx, func(context.Context) error { return nil }, core.WaitTime(0))
		want(t, "Acquire with "+what, err, nil)
	}
	err = s.locks.Lock(name).Do(core.Detach(c), func(context.Context) error { return nil }, core.WaitTime(0))
	wantErr(t, "Acquire with a detached context", err, core.ErrNotAcquired)
}

// A request that the engine serves again by HandleContext stays under its locks.
func TestRedispatch_KeepsTheLocks(t *testing.T) {
	t.Parallel()
	for name, fallback := range map[string]bool{"with ContextWithFallback": true, "without": false} {
		for where, around := range map[string]bool{"and without a guard there": false, "and with one there": true} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *shop) {
					s.engine.ContextWithFallback = fallback
					again := []gin.HandlerFunc{func(c *gin.Context) {
						s.wantOwned(t, c, "order:42")
						if ginlock.Hold(c) == nil {
							t.Error("Hold behind HandleContext: nil")
						}
						c.Status(http.StatusAccepted)
					}}
					if around {
						again = append([]gin.HandlerFunc{s.guard.Handler(ruleset.Rule{Key: "new:#{path.id}"})}, again...)
					}
					s.engine.POST("/new/:id", again...)
					s.handle(t, "POST", payPath, pay, s.redispatch("/new/7"), func(c *gin.Context) {
						s.wantOwned(t, c, "order:42") // after the inner request
						want(t, "Hold afterwards", ginlock.Hold(c).Key(), payKey)
					})
					want(t, "status", s.do(t, request{}).Code, http.StatusAccepted)
					want(t, "held afterwards", s.held(t, payKey), false)
				})
			})
		}
	}
}

// A request that the engine serves again counts as another request for the guards on its new chain. It takes
// the lock of another resource, even under the same rule.
func TestRedispatch_TakesFurtherLocks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		again := false
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			if !again {
				again = true
				s.redispatch("/orders/43/pay")(c)
				return
			}
			want(t, "the first order's", s.held(t, payKey), true)
			want(t, "the second order's", s.held(t, prefix+"order:43"), true)
			s.wantOwned(t, c, "order:42")
			s.wantOwned(t, c, "order:43")
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
		again = false
		s.redis.Take(prefix+"order:43", time.Hour)
		want(t, "the second is taken", s.do(t, request{}).Code, http.StatusConflict)
	})
}

// If a redispatched request fails, the outer request has failed, too, so no debounce window begins.
func TestRedispatch_Errors(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST("/new", func(c *gin.Context) { _ = c.Error(http.ErrBodyNotAllowed); c.Status(http.StatusAccepted) })
		s.engine.POST(payPath, func(c *gin.Context) { _ = c.Error(http.ErrNoCookie) },
			s.guard.Handler(ruleset.Rule{Key: "order:#{path.id}", Debounce: time.Minute}), s.redispatch("/new"))
		for range 2 {
			want(t, "status", s.do(t, request{}).Code, http.StatusAccepted)
		}
	})
}

// The answer of a redispatched request bypasses the buffer of the outer guard, so it cannot be discarded.
func TestRedispatch_BypassesTheBuffer(t *testing.T) {
	t.Parallel()
	serveShop(t, nil, func(t *testing.T, s *servedShop) {
		s.engine.POST("/new", func(c *gin.Context) { c.Header("X-New", "yes"); c.String(http.StatusAccepted, "new") })
		s.handle(t, "POST", payPath, pay, s.redispatch("/new"))
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusAccepted)
		want(t, "body", body, "new")
	}, ginlock.WithBuffer(1<<10))
}

func TestHold_OfAContextWithoutRequest(t *testing.T) {
	t.Parallel()
	c := gin.CreateTestContextOnly(httptest.NewRecorder(), gin.New())
	if h := ginlock.Hold(c); h != nil {
		t.Errorf("got %v", h)
	}
	bubble(t, func(t *testing.T, s *shop) {
		want(t, "Acquire", s.locks.Lock("k").Do(c, func(context.Context) error { return nil }), nil)
	})
}
