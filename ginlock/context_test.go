package ginlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

type ctxKey struct{}

func TestContext_OfTheRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var during context.Context
		s.engine.Use(func(c *gin.Context) {
			ctx := context.WithValue(c.Request.Context(), ctxKey{}, "outer")
			c.Request = c.Request.WithContext(ctx)
			c.Set(core.ContextKey, "another program's")
			c.Next()
			want(t, "context put back", c.Request.Context(), ctx)
			want(t, "key put back", c.MustGet(core.ContextKey).(string), "another program's")
			if h := ginlock.Hold(c); h != nil {
				t.Errorf("Hold afterwards: %v", h)
			}
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(c *gin.Context) {
			during = c.Request.Context()
			want(t, "value of the outer context", during.Value(ctxKey{}).(string), "outer")
			_, ok := core.Held(during, "order:42")
			want(t, "held", ok, true)
		})
		s.do(t, request{})
		wantErr(t, "the handler's context afterwards", context.Cause(during), core.ErrReleased)
	})
}

func TestContext_KeysAfterTheRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) { c.Next(); want(t, "keys left", len(c.Keys), 0) })
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) {})
		s.do(t, request{})
	})
}

func TestContext_OfGinReenters(t *testing.T) {
	t.Parallel()
	for name, fallback := range map[string]bool{"with ContextWithFallback": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.ContextWithFallback = fallback
				svc := func(ctx context.Context, key string) error { // a service that takes the lock itself
					return s.locks.Lock(key).Do(ctx, func(context.Context) error { return nil }, core.WaitTime(0))
				}
				s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
					want(t, "service given c", svc(c, "order:42"), nil)
					want(t, "service given the request's context", svc(c.Request.Context(), "order:42"), nil)
					_, ok := core.Held(c, "order:42")
					want(t, "held by c", ok, true)
					want(t, "still held", s.held(t, payKey), true)
				})
				want(t, "status", s.do(t, request{}).Code, http.StatusOK)
				want(t, "held afterwards", s.held(t, payKey), false)
			})
		})
	}
}

func TestContext_HoldsOfTheHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.ContextWithFallback = true
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			ctx, hold, err := s.locks.Lock("stock:7").Acquire(c.Request.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = hold.Release(ctx) }()
			c.Request = c.Request.WithContext(ctx)
			for _, key := range []string{"stock:7", "order:42"} {
				_, ok := core.Held(c, key)
				want(t, key, ok, true)
			}
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
	})
}

func TestHold_Handover(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		done := make(chan error, 1)
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			ctx, hold := ginlock.Hold(c).Handover()
			go func() {
				time.Sleep(time.Minute) // virtual time
				done <- errors.Join(ctx.Err(), hold.Release(ctx))
			}()
			c.Status(http.StatusAccepted)
		})
		ctx, cancel := context.WithCancel(t.Context())
		want(t, "status", s.do(t, request{ctx: ctx}).Code, http.StatusAccepted)
		cancel()
		synctest.Wait()
		want(t, "held after the answer", s.held(t, payKey), true)
		want(t, "the work", <-done, nil)
		want(t, "held after the work", s.held(t, payKey), false)
	})
}

func TestContext_RequestReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(func(c *gin.Context) {
			before := c.Request.Context()
			c.Next()
			want(t, "context", c.Request.Context(), before)
			want(t, "header set on the new request", c.Request.Header.Get("X-New"), "yes")
		})
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			c.Request = c.Request.Clone(context.WithValue(c.Request.Context(), ctxKey{}, "inner"))
			c.Request.Header.Set("X-New", "yes")
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
	})
}

// After an early release, Caller returns a context that is canceled when the client leaves.
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
