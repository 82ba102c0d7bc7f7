package ginlock_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// If a handler passes a request to another engine, gin treats it as a new request. The request still needs
// only one permit.
func TestKind_OnePermitPerRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		rule := payAs(ruleset.Semaphore)
		rule.Permits, rule.Endpoint = 1, ruleset.HTTP("POST "+payPath)
		set, inner := goSet(t, []ruleset.Rule{rule}), gin.New()
		inner.Use(s.guard.Middleware(set))
		inner.POST(payPath, func(c *gin.Context) { c.Status(http.StatusAccepted) })
		s.engine.Use(s.guard.Middleware(set))
		s.engine.POST(payPath, func(c *gin.Context) {
			inner.ServeHTTP(c.Writer, c.Request.Clone(c.Request.Context()))
		})
		want(t, "status", s.do(t, request{}).Code, http.StatusAccepted)
	})
}

// Some mistakes of the program show only during a call. The client does not get the reason, but the log does.
func TestKind_WriteInsideOfRead(t *testing.T) {
	t.Parallel()
	wantLoggedMistake(t, payAs(ruleset.Read), payAs(ruleset.Write), "cannot become a write lock")
}

// A request that yields no key is not a fault of the program, whatever status the rule has for such requests.
func TestAnswer_StatusOfARuleForNoKey(t *testing.T) {
	t.Parallel()
	rule := pay
	rule.Key, rule.Status.Key = "order:#{query.id}", failpolicy.Status{HTTP: http.StatusInternalServerError, GRPC: 13 /* INTERNAL */}
	bubble(t, func(t *testing.T, s *shop) {
		s.engine.POST(payPath, s.guard.Handler(rule), func(*gin.Context) { t.Error("the handler ran") })
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusInternalServerError)
		want(t, "type", problemOf(t, w).Type, failpolicy.Key.Type())
		want(t, "title", problemOf(t, w).Title, failpolicy.Key.Title())
	})
}

// wantLoggedMistake sends a request through the outer rule and the inner rule and checks that the mistake is
// logged.
func wantLoggedMistake(t *testing.T, outer, inner ruleset.Rule, reason string) {
	t.Helper()
	outer.Name, inner.Name = "outer", "inner"
	bubble(t, func(t *testing.T, s *shop) {
		var logged *gin.Error
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			logged = c.Errors.Last()
		})
		s.engine.POST(payPath, s.guard.Handler(outer), s.guard.Handler(inner), func(*gin.Context) { t.Error("the handler ran") })
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusInternalServerError)
		want(t, "type", problemOf(t, w).Type, "about:blank")
		want(t, "detail", problemOf(t, w).Detail, "")
		s.wantNoSecrets(t, w)
		if logged == nil {
			t.Fatal("the log is empty")
		}
		refusal, ok := logged.Err.(*aspect.RefusedError) //nolint:errorlint // of which the text is fit for clients
		want(t, "type of the logged error", ok, true)
		wantErr(t, "reason", refusal, core.ErrInvalid)
		if text := logText(logged); !strings.Contains(text, reason) {
			t.Errorf("logged %s, want %q in it", text, reason)
		}
	})
}

// logText returns the line that gin's logger prints for an error.
func logText(e *gin.Error) string { return fmt.Sprintf("%v %v", e.Err, e.Meta) }
