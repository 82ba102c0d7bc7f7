package ginlock_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// answeringMiddlewares are middlewares, to be put outside, that answer for what they find after
// the handlers.
func answeringMiddlewares() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"gin.ErrorLogger":  gin.ErrorLogger(),
		"gin.ErrorLoggerT": gin.ErrorLoggerT(gin.ErrorTypePrivate),
		"one for errors": func(c *gin.Context) {
			c.Next()
			if len(c.Errors) > 0 {
				c.JSON(http.StatusInternalServerError, gin.H{"message": c.Errors.Last().Error()})
			}
		},
		"one for statuses": func(c *gin.Context) {
			c.Next()
			if c.Writer.Status() >= http.StatusBadRequest || c.Writer.Header().Get(failpolicy.StatusHeader) != "" {
				c.String(-1, "second answer")
			}
		},
		"one that looks whether there is an answer": func(c *gin.Context) {
			c.Next()
			if !c.Writer.Written() || c.Writer.Size() < 0 {
				c.String(http.StatusTeapot, "there was none")
			}
		},
	}
}

// paid is a handler that answers.
func paid(c *gin.Context) { c.String(http.StatusOK, "paid") }

// paidEarly answers and then loses its lock.
func paidEarly(c *gin.Context) {
	paid(c)
	<-c.Request.Context().Done()
}

// paidLate is one that has lost its lock when it answers.
func paidLate(c *gin.Context) {
	<-c.Request.Context().Done()
	paid(c)
}

// An answer of the guard is the only one, whatever middlewares outside make of its
// status and its error, and its connection serves the next request.
func TestAnswer_OfTheGuardIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	skipping, null, failing := pay, pay, brief
	skipping.OnBackend, null.OnBackend = failpolicy.Skip, failpolicy.NullResponse
	failing.OnLost = failpolicy.Fail
	free := func(testing.TB, *shop) {}
	words := ginlock.WithErrorWriter(func(c *gin.Context, refusal *aspect.RefusedError) {
		c.String(refusal.Status.HTTP, "in words")
	})
	tests := map[string]struct {
		rule     ruleset.Rule
		obstacle obstacle
		handler  gin.HandlerFunc
		options  []any
		status   int
		body     string // "problem" for a problem document
	}{
		"backend":          {pay, down, paid, nil, 503, "problem"},
		"busy":             {pay, taken, paid, nil, 409, "problem"},
		"broken rule":      {ruleset.Rule{Key: "order:#{user}"}, free, paid, nil, 500, "problem"},
		"own writer":       {pay, down, paid, []any{words}, 503, "in words"},
		"skip":             {skipping, down, paid, nil, 204, ""},
		"null":             {null, down, paid, nil, 200, "null"},
		"lost":             {brief, free, func(c *gin.Context) { <-c.Request.Context().Done() }, nil, 500, "problem"},
		"lost, too late":   {failing, free, paidEarly, []any{ginlock.WithBuffer(1)}, 200, "paid"},
		"lost, taken back": {failing, free, paidLate, []any{ginlock.WithBuffer(64)}, 500, "problem"},
	}
	for name, tt := range tests {
		for outside, middleware := range answeringMiddlewares() {
			t.Run(name+", outside "+outside, func(t *testing.T) {
				t.Parallel()
				serving(t, nil, func(t *testing.T, s *online) {
					s.engine.Use(gin.CustomRecovery(func(*gin.Context, any) { t.Error("panic") }), middleware)
					s.engine.POST(payPath, s.guard.Handler(tt.rule), tt.handler)
					tt.obstacle(t, s.shop)
					for range 2 {
						status, body, err := s.post(t)
						want(t, "error", err, nil)
						want(t, "status", status, tt.status)
						wantBody(t, body, tt.body)
					}
					want(t, "connections", s.dialed.Load(), 1)
				}, tt.options...)
			})
		}
	}
}

func wantBody(t testing.TB, got, body string) {
	t.Helper()
	if body != "problem" {
		want(t, "body", got, body)
		return
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("body: got %q, want one problem document", got)
	}
}

// The answer of an inner guard is the only one, too, where an outer guard holds its
// response back.
func TestAnswer_OfAnInnerGuardIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	for outside, middleware := range answeringMiddlewares() {
		t.Run("outside "+outside, func(t *testing.T) {
			t.Parallel()
			serving(t, nil, func(t *testing.T, s *online) {
				inner := ruleset.Rule{Name: "inner", Key: "inner", WaitTime: ruleset.NoWait}
				inner.Status.Busy.HTTP = http.StatusServiceUnavailable
				s.engine.Use(middleware)
				s.engine.POST(payPath, s.guard.Handler(pay), s.guard.Handler(inner), paid)
				s.redis.Take(prefix+"inner", time.Hour)
				for range 2 {
					status, body, err := s.post(t)
					want(t, "error", err, nil)
					want(t, "status", status, http.StatusServiceUnavailable)
					wantBody(t, body, "problem")
				}
				want(t, "connections", s.dialed.Load(), 1)
			}, ginlock.WithBuffer(1<<10))
		})
	}
}

// A writer that writes nothing leaves the answer to who is outside.
func TestAnswer_AWriterMayLeaveItToAnErrorHandlerOutside(t *testing.T) {
	t.Parallel()
	leave := func(c *gin.Context, refusal *aspect.RefusedError) { _ = c.Error(refusal) }
	serving(t, nil, func(t *testing.T, s *online) {
		s.engine.Use(answeringMiddlewares()["one that looks whether there is an answer"])
		s.engine.POST(payPath, s.guard.Handler(pay), paid)
		s.redis.Take(payKey, time.Hour)
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusTeapot)
		want(t, "body", body, "there was none")
	}, ginlock.WithErrorWriter(leave))
}
