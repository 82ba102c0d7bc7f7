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

// A request that a handler passes on to another engine is a new one for gin. It needs one permit.
func TestSemaphore_OneRequestHasOnePermit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		rule := as(ruleset.Semaphore)
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

// A mistake of the program that only shows when a call runs: the client learns nothing of it,
// and the log all.
func TestWriteInsideOfRead_Is500AndLogged(t *testing.T) {
	t.Parallel()
	wantLoggedMistake(t, as(ruleset.Read), as(ruleset.Write), "cannot become a write lock")
}

// A request that yields no key is not the program's mistake, whatever status the rule has for it.
func TestStatusOfARuleForNoKey_IsNotTheProgramsMistake(t *testing.T) {
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

// wantLoggedMistake calls a handler under the inner rule inside of the outer one.
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
			t.Fatal("nothing was logged")
		}
		refusal, ok := logged.Err.(*aspect.RefusedError) //nolint:errorlint // of which the text is fit for clients
		want(t, "type of the logged error", ok, true)
		wantErr(t, "reason", refusal, core.ErrInvalid)
		if text := logText(logged); !strings.Contains(text, reason) {
			t.Errorf("logged %s, want %q in it", text, reason)
		}
	})
}

// logText is what gin's logger prints of an error.
func logText(e *gin.Error) string { return fmt.Sprintf("%v %v", e.Err, e.Meta) }
