package ginlock_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// brief is a rule whose lease expires while a slow handler runs.
var brief = ruleset.Rule{Key: "order:#{path.id}", LeaseTime: time.Second}

// overrun works until its lock is lost and checks that the loss cancels its context.
func overrun(t testing.TB, c *gin.Context) {
	t.Helper()
	ctx := c.Request.Context()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("the context of the handler did not end with its lock")
	}
	wantErr(t, "cause", context.Cause(ctx), core.ErrLost)
}

func TestLoss_WhileTheHandlerRuns(t *testing.T) {
	t.Parallel()
	failing := brief
	failing.OnLost = failpolicy.Fail
	buffered := []any{ginlock.WithBuffer(1 << 10)}
	tests := map[string]struct {
		rule    ruleset.Rule
		options []any
		after   func(c *gin.Context) // runs in the handler after the loss
		status  int
		body    string // "" for a problem document
	}{
		"returns without an answer":           {brief, nil, func(*gin.Context) {}, 500, ""},
		"adds ctx.Err()":                      {brief, nil, func(c *gin.Context) { _ = c.Error(c.Request.Context().Err()) }, 500, ""},
		"answers":                             {brief, nil, func(c *gin.Context) { c.String(201, "done") }, 201, "done"},
		"answers with a status only":          {brief, nil, func(c *gin.Context) { c.Status(202) }, 202, "-"},
		"fail, no answer":                     {failing, buffered, func(*gin.Context) {}, 500, ""},
		"fail, answered, buffered":            {failing, buffered, func(c *gin.Context) { c.String(201, "done"); c.Writer.Flush() }, 500, ""},
		"buffered, answers":                   {brief, buffered, func(c *gin.Context) { c.String(201, "done") }, 201, "done"},
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
					s.redis.Take(payKey, time.Hour) // the new holder
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

func TestLoss_ClientLeft(t *testing.T) {
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

// Without a buffer, the guard cannot discard an answer, so on_lost: fail is an error.
func TestLoss_FailNeedsABuffer(t *testing.T) {
	t.Parallel()
	failing := pay
	failing.OnLost = failpolicy.Fail
	advice := `give WithBuffer(64<<10, "POST ` + payPath + `"), or write OnLost: failpolicy.Cancel`
	bubble(t, func(t *testing.T, s *shop) {
		wantText(t, s.guard.Handle(s.engine, http.MethodPost, payPath, failing, answerPaid), advice)
		s.engine.PUT(payPath, s.guard.Handler(failing), answerPaid)
		s.engine.POST("/other", answerPaid)
		wantText(t, s.guard.Check(s.engine), advice, `give WithBuffer(64<<10, "PUT `+payPath+`")`)
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			want(t, method, s.do(t, request{method: method}).Code, http.StatusInternalServerError)
		}
	}, ginlock.WithBuffer(1<<10, "POST /other"))
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.guard.Handler(failing), answerPaid)
		must(t, s.guard.Check(s.engine))
		want(t, "status", s.do(t, request{}).Code, http.StatusOK)
	}, ginlock.WithBuffer(1<<10, "POST "+payPath))
}

// If an answer is discarded, its headers are discarded, too. The client still gets the headers of outer
// middlewares.
func TestLoss_DiscardsHeaders(t *testing.T) {
	t.Parallel()
	failing := brief
	failing.OnLost = failpolicy.Fail
	tests := map[string]struct {
		rule    ruleset.Rule
		options []any
		answer  func(c *gin.Context)
	}{
		"given up, no answer":      {brief, nil, func(*gin.Context) {}},
		"given up":                 {brief, nil, func(c *gin.Context) { _ = c.Error(c.Request.Context().Err()) }},
		"fail, buffered":           {failing, []any{ginlock.WithBuffer(64)}, answerPaid},
		"fail, buffered and empty": {failing, []any{ginlock.WithBuffer(64)}, func(*gin.Context) {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serveShop(t, nil, func(t *testing.T, s *servedShop) {
				s.engine.Use(func(c *gin.Context) {
					c.Header("X-Outer", "kept")
					c.Header("X-Changed", "outer")
					c.Header("X-Deleted", "outer")
					c.Header("Vary", "Origin")
					c.Next()
				})
				s.engine.POST(payPath, s.guard.Handler(tt.rule), func(c *gin.Context) {
					h := c.Writer.Header()
					c.SetCookie("session", "secret", 60, "/", "", true, true)
					c.Header("X-Total", "17")
					c.Header("Location", "/orders/43")
					c.Header("Trailer", "X-Sum")
					c.Header("X-Sum", "1")
					c.Header(http.TrailerPrefix+"X-Late", "1")
					h.Set("X-Changed", "inner")
					h.Del("X-Deleted")
					h.Add("Vary", "Cookie")
				}, func(c *gin.Context) {
					<-c.Request.Context().Done()
					tt.answer(c)
				})
				res, err := s.client.Post("http://shop"+payURL, "", nil)
				must(t, err)
				defer res.Body.Close()
				want(t, "status", res.StatusCode, http.StatusInternalServerError)
				wantAll(t, "headers", slices.Sorted(maps.Keys(res.Header)), "Cache-Control", "Content-Length", "Content-Type", "Date", "Vary", "X-Changed", "X-Deleted", "X-Outer")
				want(t, "trailers", len(res.Trailer), 0)
				for header, value := range map[string]string{"X-Outer": "kept", "X-Changed": "outer", "X-Deleted": "outer"} {
					want(t, header, res.Header.Get(header), value)
				}
				wantAll(t, "Vary", res.Header.Values("Vary"), "Origin")
			}, tt.options...)
		})
	}
}

// The headers that the guard set for the handler's answer are discarded, too.
func TestLoss_DiscardsStatusHeader(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]any{"": nil, "buffered": {ginlock.WithBuffer(64)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				rules := []ruleset.Rule{
					{Name: "order", Key: "order:#{path.id}", LeaseTime: time.Second},
					{Name: "stock", Key: "stock", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Proceed},
				}
				s.engine.POST(payPath, s.guard.Handler(rules...), func(c *gin.Context) { <-c.Request.Context().Done() })
				s.redis.Take(prefix+"stock", time.Hour)
				w := s.do(t, request{})
				want(t, "status", w.Code, http.StatusInternalServerError)
				want(t, "lock status", w.Header().Get(failpolicy.StatusHeader), "")
			}, options...)
		})
	}
}

func wantAll(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
