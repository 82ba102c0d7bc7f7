package ginlock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

func TestPanic_Recovery(t *testing.T) {
	t.Parallel()
	recovery := gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(http.StatusInternalServerError) })
	debounced := ruleset.Rule{Key: "order:#{path.id}", Debounce: time.Hour} // a failure begins no window
	boom := func(c *gin.Context) {
		c.Header("X-Half", "done")
		c.String(http.StatusOK, "half")
		panic("boom")
	}
	for name, options := range map[string][]any{"": nil, ", buffered": {ginlock.WithBuffer(1 << 10)}} {
		t.Run("outside"+name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.Use(recovery)
				s.engine.POST(payPath, s.guard.Handler(debounced), boom)
				w := s.do(t, request{})
				if options != nil {
					want(t, "status", w.Code, http.StatusInternalServerError)
					want(t, "half an answer", w.Body.String(), "")
					want(t, "half a header", w.Header().Get("X-Half"), "")
				}
				want(t, "held", s.held(t, payKey), false)
			}, options...)
		})
		t.Run("inside"+name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.POST(payPath, s.guard.Handler(debounced), recovery, func(*gin.Context) { panic("boom") })
				want(t, "status", s.do(t, request{}).Code, http.StatusInternalServerError)
				want(t, "held", s.held(t, payKey), false)
			}, options...)
		})
	}
}

func TestPanic_ErrAbortHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(*gin.Context) { panic(http.ErrAbortHandler) })
		func() {
			defer func() { want(t, "panic", recover(), any(http.ErrAbortHandler)) }()
			s.do(t, request{})
		}()
		want(t, "held", s.held(t, payKey), false)
	})
}

func TestPanic_Goexit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var before, during context.Context
		s.engine.Use(func(c *gin.Context) {
			before = c.Request.Context()
			defer func() { want(t, "context put back", c.Request.Context(), before) }()
			c.Next()
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(c *gin.Context) {
			during = c.Request.Context()
			runtime.Goexit()
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.do(t, request{})
		}()
		<-done
		want(t, "held", s.held(t, payKey), false)
		want(t, "the handler's context ended", during.Err() != nil, true)
	})
}

func TestTimeoutHandler_Release(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		returned := make(chan struct{})
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			<-c.Request.Context().Done()
			wantErr(t, "cause", context.Cause(c.Request.Context()), context.DeadlineExceeded)
			want(t, "held while it cleans up", s.held(t, payKey), true)
			c.String(http.StatusOK, "too late")
			close(returned)
		})
		w := httptest.NewRecorder()
		http.TimeoutHandler(s.engine, time.Second, "too slow").ServeHTTP(w, request{}.build())
		want(t, "status", w.Code, http.StatusServiceUnavailable)
		want(t, "body", w.Body.String(), "too slow")
		<-returned
		time.Sleep(time.Second) // virtual time
		want(t, "held", s.held(t, payKey), false)
	})
}

func TestTimeoutHandler_Busy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		w := httptest.NewRecorder()
		http.TimeoutHandler(s.engine, time.Second, "too slow").ServeHTTP(w, request{}.build())
		want(t, "status", w.Code, http.StatusConflict)
	})
}
