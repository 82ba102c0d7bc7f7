package ginlock_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// brief is a rule whose lease runs out under a handler that takes long.
var brief = ruleset.Rule{Key: "order:#{path.id}", LeaseTime: time.Second}

// overrun works until its lock is lost, and checks how it is told.
func overrun(t testing.TB, c *gin.Context) {
	t.Helper()
	ctx := c.Request.Context()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("the handler was not told that its lock is lost")
	}
	wantErr(t, "cause", context.Cause(ctx), core.ErrLost)
}

func TestLoss_UnderTheHandler(t *testing.T) {
	t.Parallel()
	failing := brief
	failing.OnLost = failpolicy.Fail
	buffered := []any{ginlock.WithBuffer(1 << 10)}
	tests := map[string]struct {
		rule    ruleset.Rule
		options []any
		after   func(c *gin.Context) // what the handler does when it knows
		status  int
		body    string // "" for a problem document
	}{
		"returns without an answer":           {brief, nil, func(*gin.Context) {}, 500, ""},
		"adds ctx.Err()":                      {brief, nil, func(c *gin.Context) { _ = c.Error(c.Request.Context().Err()) }, 500, ""},
		"answers all the same":                {brief, nil, func(c *gin.Context) { c.String(201, "done") }, 201, "done"},
		"answers with a status only":          {brief, nil, func(c *gin.Context) { c.Status(202) }, 202, "-"},
		"fail, no answer":                     {failing, buffered, func(*gin.Context) {}, 500, ""},
		"fail, answered, buffered":            {failing, buffered, func(c *gin.Context) { c.String(201, "done"); c.Writer.Flush() }, 500, ""},
		"buffered, answers all the same":      {brief, buffered, func(c *gin.Context) { c.String(201, "done") }, 201, "done"},
		"buffered, answers 503 and ctx.Err()": {brief, buffered, func(c *gin.Context) { _ = c.AbortWithError(503, c.Request.Context().Err()) }, 500, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.engine.Use(func(c *gin.Context) { c.Header("X-Outer", "kept") })
				s.handle(t, "POST", payPath, tt.rule, func(c *gin.Context) {
					c.Header("ETag", `"half done"`)
					overrun(t, c)
					s.redis.Take(payKey, time.Hour) // the new owner
					tt.after(c)
				})
				w := s.do(t, request{})
				want(t, "status", w.Code, tt.status)
				want(t, "outer header", w.Header().Get("X-Outer"), "kept")
				want(t, "the new owner's lock", s.held(t, payKey), true)
				switch tt.body {
				case "":
					want(t, "type", problemOf(t, w).Type, failpolicy.Lost.Type())
					want(t, "Retry-After", w.Header().Get("Retry-After"), "")
					want(t, "Etag", w.Header().Get("ETag"), "")
				case "-":
					want(t, "body", w.Body.String(), "")
				default:
					want(t, "body", w.Body.String(), tt.body)
				}
			}, tt.options...)
		})
	}
}

func TestLoss_IsToldFromTheClientsCancel(t *testing.T) {
	t.Parallel()
	rec := &record{}
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(c *gin.Context) {
			<-c.Request.Context().Done()
			wantErr(t, "cause", context.Cause(c.Request.Context()), context.Canceled)
			_ = c.Error(c.Request.Context().Err())
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		w := s.do(t, request{ctx: ctx})
		want(t, "body", w.Body.Len(), 0)
		want(t, "held afterwards", s.held(t, payKey), false)
		want(t, "failures", len(rec.failures), 0)
	}, core.WithObserver(rec.observer()))
}

// An answer that nothing keeps back cannot be taken back, which a rule must not promise.
func TestLoss_FailNeedsABuffer(t *testing.T) {
	t.Parallel()
	failing := pay
	failing.OnLost = failpolicy.Fail
	advice := `give WithBuffer(64<<10, "POST ` + payPath + `"), or write OnLost: failpolicy.Cancel`
	bubble(t, func(t *testing.T, s *shop) {
		wantText(t, s.guard.Handle(s.engine, http.MethodPost, payPath, failing, paid), advice)
		s.engine.PUT(payPath, s.guard.Handler(failing), paid)
		s.engine.POST("/other", paid)
		wantText(t, s.guard.Check(s.engine), advice, "Handler at ", `(nearest route: POST `)
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			want(t, method, s.do(t, request{method: method}).Code, http.StatusInternalServerError)
		}
	}, ginlock.WithBuffer(1<<10, "POST /other"))
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.guard.Handler(failing), paid)
		must(t, s.guard.Check(s.engine))
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
	}, ginlock.WithBuffer(1<<10, "POST "+payPath))
}
