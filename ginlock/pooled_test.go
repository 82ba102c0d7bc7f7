package ginlock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// abandon is a middleware that answers after a second, like gin-contrib/timeout. The handlers inside it
// continue with gin's context.
func abandon(c *gin.Context) {
	done, w := make(chan struct{}), c.Writer
	go func() {
		defer close(done)
		c.Next()
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
		synctest.Wait() // orders the work of the handlers before the rest, for the race detector
		c.Abort()
		c.Writer = w
		c.String(http.StatusGatewayTimeout, "too late")
	}
}

// reuseContext returns a middleware that passes gin's context to the next request, on a route without a lock, as
// the engine does with a context from its pool. It calls during while that request is served. The test fails
// if the context changes under the handlers of that request.
func (s *shop) reuseContext(t *testing.T, during func()) gin.HandlerFunc {
	var next *http.Request
	s.engine.GET("/free", func(c *gin.Context) {
		c.Writer = gin.CreateTestContextOnly(httptest.NewRecorder(), s.engine).Writer
		writer := c.Writer
		c.Set("mine", true)
		during()
		want(t, "the request", c.Request, next)
		want(t, "the writer", c.Writer, writer)
		want(t, "aborted", c.IsAborted(), false)
		want(t, "keys", len(c.Keys), 1)
		want(t, "errors", len(c.Errors), 0)
		want(t, "headers", len(c.Writer.Header()), 0)
		want(t, "written", c.Writer.Written(), false)
		want(t, "status", c.Writer.Status(), http.StatusOK)
	}, func(c *gin.Context) { // gin goes on with the chain when the first request returns
		want(t, "the request of the second handler", c.Request, next)
		want(t, "Hold", ginlock.Hold(c), nil)
	})
	return func(c *gin.Context) {
		if c.FullPath() == "/free" {
			return
		}
		c.Next()
		next = request{method: "GET", url: "/free"}.build()
		c.Request = next
		s.engine.HandleContext(c)
	}
}

// A request that is abandoned while it waits for its lock does not touch the context, which then belongs to another
// request. The outcome of the wait does not matter.
func TestPooled_DuringTheWait(t *testing.T) {
	t.Parallel()
	writer := ginlock.WithErrorWriter(func(c *gin.Context, _ *aspect.RefusedError) { c.String(http.StatusConflict, "taken") })
	tests := map[string]struct {
		rule    ruleset.Rule
		options []any
		gets    bool // the wait ends with the lock
	}{
		"it gets the lock":                 {pay, nil, true},
		"it gets the lock, with a buffer":  {pay, []any{ginlock.WithBuffer(64), ginlock.WithTokenHeader()}, true},
		"it is refused":                    {pay, nil, false},
		"it is refused by an error writer": {pay, []any{writer}, false},
		"it is skipped":                    {ruleset.Rule{Key: pay.Key, WaitTime: pay.WaitTime, OnBusy: failpolicy.Skip}, nil, false},
		"it is answered by null":           {ruleset.Rule{Key: pay.Key, WaitTime: pay.WaitTime, OnBusy: failpolicy.NullResponse}, nil, false},
		"it has a fallback":                {ruleset.Rule{Key: pay.Key, WaitTime: pay.WaitTime, OnBusy: failpolicy.Fallback, Fallback: "queue"}, nil, false},
		"it would run unlocked":            {ruleset.Rule{Key: pay.Key, WaitTime: pay.WaitTime, OnBusy: failpolicy.Proceed}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := func(*gin.Context) { t.Error("a handler of the first request ran") }
			orders := &record{} // orders the writes of gin before the reads of the guard, for the race detector
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.Use(s.reuseContext(t, func() {
					orders.mu.Lock()
					orders.mu.Unlock() //nolint:staticcheck // see above
					if tt.gets {
						s.redis.Free(payKey)
					} else {
						time.Sleep(pay.WaitTime) // virtual time
					}
					synctest.Wait()
					want(t, "waiters", s.locks.Stats().Waiters, 0)
				}), abandon)
				s.engine.POST(payPath, s.guard.Handler(tt.rule), s.guard.Handler(ruleset.Rule{Name: "next", Key: "next:#{path.id}"}), runs)
				s.redis.Take(payKey, time.Hour)
				w := serve(s, request{body: "{}"})
				want(t, "status", w.Code, http.StatusGatewayTimeout)
				want(t, "held afterwards", s.held(t, payKey), !tt.gets)
			}, append(tt.options, ginlock.WithFallback("queue", runs), core.WithObserver(orders.observer()))...)
		})
	}
}

// After an abandoned wait, the remaining rules of the request do not read the request that then has the context.
func TestPooled_BetweenTwoRules(t *testing.T) {
	t.Parallel()
	read := func(*gin.Context) (string, error) { t.Error("a variable was read"); return "", nil }
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.Use(s.reuseContext(t, func() {
			s.redis.Free(payKey)
			synctest.Wait()
		}), abandon)
		first, second := pay, ruleset.Rule{Name: "second", Key: "second:#{path.id}:#{who}"}
		first.Name = "first"
		s.engine.POST(payPath, s.guard.Handler(first, second), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		want(t, "status", serve(s, request{}).Code, http.StatusGatewayTimeout)
		want(t, "held afterwards", s.held(t, payKey), false)
	}, ginlock.WithVariable("who", read))
}

// A request that is abandoned while its handler runs does not touch the context either, however the handler returns.
func TestPooled_DuringTheHandler(t *testing.T) {
	t.Parallel()
	failing := ruleset.Rule{Key: pay.Key, LeaseTime: 2 * time.Second, OnLost: failpolicy.Fail}
	tests := map[string]struct {
		rule    ruleset.Rule
		options []any
		end     func()
	}{
		"it returns":                {pay, nil, func() {}},
		"it returns, with a buffer": {pay, []any{ginlock.WithBuffer(64)}, func() {}},
		"it returns under proceed":  {ruleset.Rule{Key: "taken", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed}, nil, func() {}},
		"it panics":                 {pay, nil, func() { panic(errors.New("declined")) }},
		"it has lost its lock":      {failing, []any{ginlock.WithBuffer(64)}, func() { time.Sleep(failing.LeaseTime) }},                        // virtual time
		"it gives up after a loss":  {ruleset.Rule{Key: pay.Key, LeaseTime: failing.LeaseTime}, nil, func() { time.Sleep(failing.LeaseTime) }}, // virtual time
		"it is a fallback":          {ruleset.Rule{Key: "taken", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "queue"}, nil, func() {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			handler := func(*gin.Context) {
				<-over
				tt.end()
			}
			synctest.Test(t, func(t *testing.T) {
				over = make(chan struct{})
				s := newShop(t, append(tt.options, ginlock.WithFallback("queue", handler))...)
				defer s.close(t)
				s.engine.Use(s.reuseContext(t, func() {
					close(over)
					time.Sleep(failing.LeaseTime) // virtual time
					synctest.Wait()
					want(t, "held", s.held(t, payKey), false)
				}), abandon, func(c *gin.Context) {
					defer func() { _ = recover() }()
					c.Next()
				})
				s.engine.POST(payPath, s.guard.Handler(tt.rule), handler)
				s.redis.Take(prefix+"taken", time.Hour)
				want(t, "status", serve(s, request{}).Code, http.StatusGatewayTimeout)
			})
		})
	}
}

// An abandoned request begins no debounce window, because its client has not seen a success.
func TestPooled_NoDebounceWindowBegins(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		over := make(chan struct{})
		s.engine.Use(s.reuseContext(t, func() {
			close(over)
			synctest.Wait()
			want(t, "held", s.held(t, payKey), false)
		}), abandon)
		s.engine.POST(payPath, s.guard.Handler(ruleset.Rule{Key: pay.Key, Debounce: time.Hour}), func(*gin.Context) { <-over })
		want(t, "status", serve(s, request{}).Code, http.StatusGatewayTimeout)
	})
}
