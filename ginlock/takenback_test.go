package ginlock_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// An answer that is taken back is so with its headers, and the client sees what
// middlewares outside had set, as they had set it.
func TestTakenBack_HeadersOfTheHandlerGoWithItsAnswer(t *testing.T) {
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
		"fail, buffered":           {failing, []any{ginlock.WithBuffer(64)}, paid},
		"fail, buffered and empty": {failing, []any{ginlock.WithBuffer(64)}, func(*gin.Context) {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serving(t, nil, func(t *testing.T, s *online) {
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

// So it is with what the guard itself has said of an answer that is not given.
func TestTakenBack_TheMarkOfAHandlerThatRanUnlockedToo(t *testing.T) {
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
