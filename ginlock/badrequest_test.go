package ginlock_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

// Why a request yields no key stands in gin's log of requests. The client is not told: also
// not where a middleware outside answers with the errors of the request.
func TestAnswer_BadRequestsAreInTheLogWithTheirReason(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		key     string
		request request
		options []any
		status  int
		logged  []string
	}{
		"missing":    {`order:#{header["X-Id"]}`, request{}, nil, 400, []string{`order:#{header["X-Id"]}`, "is missing"}},
		"bad body":   {"order:#{body.id}", request{body: `{"id":`}, nil, 400, []string{"order:#{body.id}", "body"}},
		"other type": {"order:#{body.id}", request{body: "id=7", typ: "text/plain"}, nil, 415, []string{"needs a body of application/json"}},
		"too large":  {"order:#{body.id}", request{body: paymentJSON}, []any{ginlock.WithMaxBody(5)}, 413, []string{"at most 5 bytes"}},
		"left to a middleware": {
			`order:#{header["X-Id"]}`,
			request{},
			[]any{ginlock.WithErrorWriter(func(*gin.Context, *aspect.RefusedError) {})},
			400,
			[]string{"is missing"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				var log bytes.Buffer
				s.engine.Use(gin.LoggerWithWriter(&log), gin.ErrorLogger())
				s.handle(t, http.MethodPost, payPath, ruleset.Rule{Key: tt.key}, func(*gin.Context) { t.Error("the handler ran") })
				w := s.do(t, tt.request)
				want(t, "status", w.Code, tt.status)
				for _, part := range append(tt.logged, `lock rule "POST /orders/:id/pay": key: `) {
					if !strings.Contains(log.String(), part) {
						t.Errorf("the log does not say %q:\n%s", part, log.String())
					}
				}
			}, tt.options...)
		})
	}
}

// Refusals that nobody is to blame for are no errors.
func TestAnswer_ExpectedRefusalsAreNoErrors(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var log bytes.Buffer
		s.engine.Use(gin.LoggerWithWriter(&log))
		s.handle(t, http.MethodPost, payPath, pay, func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		want(t, "status", s.do(t, request{}).Code, http.StatusConflict)
		if strings.Contains(log.String(), "Error #") {
			t.Errorf("got:\n%s", log.String())
		}
	})
}
