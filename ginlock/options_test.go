package ginlock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/ginlock"
)

func TestNew_EveryBadOption(t *testing.T) {
	t.Parallel()
	text := func(*gin.Context) (string, error) { return "", nil }
	noop := func(*gin.Context) {}
	_, err := ginlock.New(nil,
		nil,
		ginlock.WithErrorWriter(nil),
		ginlock.WithErrorWriter(ginlock.WriteProblem), ginlock.WithErrorWriter(ginlock.WriteProblem),
		ginlock.WithFallback("", noop),
		ginlock.WithFallback("queue", nil),
		ginlock.WithFallback("twice", noop), ginlock.WithFallback("twice", noop),
		ginlock.WithVariable[string]("none", nil),
		ginlock.WithVariable("path", text),
		ginlock.WithVariable("not a name", text),
		ginlock.WithBody[payment]("orders"),
		ginlock.WithBody[payment]("POST /orders/*"),
		ginlock.WithBody[payment]("POST /a"), ginlock.WithBody[payment]("POST /a"),
		ginlock.WithBody[chan int]("POST /chan"),
		ginlock.WithMaxBody(0),
		ginlock.WithClientIP(nil),
		ginlock.WithBuffer(0),
		ginlock.WithBuffer(1, "post /orders"),
		ginlock.WithBuffer(1, "POST /b"), ginlock.WithBuffer(2, "POST /c", "POST /b"),
		ginlock.WithBuffer(3), ginlock.WithBuffer(4),
		ginlock.WithProfile("", ruleset.Rule{}),
		ginlock.WithProfile("default", ruleset.Rule{WaitTime: time.Nanosecond}),
	)
	wantText(t, err,
		"lock client is nil", "nil Option", "WithErrorWriter", `WithFallback: no name`, `WithFallback("queue")`,
		`WithFallback("twice"): given twice`, `WithVariable("none")`, `WithVariable: keyexpr: the variable "path" is built in: choose another name`, "not a name", `WithBody: route "orders"`,
		`WithBody: route "POST /orders/*"`, `WithBody: route "POST /a": given twice`, "chan int", "WithMaxBody(0)", "WithClientIP",
		"WithBuffer(0)", `WithBuffer: route "post /orders"`,
		"WithErrorWriter: given twice", `WithBuffer: route "POST /b": given twice`, "WithBuffer(4): given twice for all routes",
	)
}

// An answer without a status has the status of the refusal, never of a success.
func TestErrorWriter_WithoutAStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write func(c *gin.Context)
		code  int
	}{
		"Write":            {func(c *gin.Context) { _, _ = c.Writer.Write([]byte("busy")) }, http.StatusConflict},
		"WriteString":      {func(c *gin.Context) { _, _ = c.Writer.WriteString("busy") }, http.StatusConflict},
		"WriteHeaderNow":   {func(c *gin.Context) { c.Writer.WriteHeaderNow() }, http.StatusConflict},
		"Flush":            {func(c *gin.Context) { c.Writer.Flush() }, http.StatusConflict},
		"Render with -1":   {func(c *gin.Context) { c.Data(-1, "text/plain", []byte("busy")) }, http.StatusConflict},
		"its own status":   {func(c *gin.Context) { c.String(http.StatusLocked, "busy") }, http.StatusLocked},
		"a status to come": {func(c *gin.Context) { c.Status(http.StatusLocked) }, http.StatusLocked},
		"nothing":          {func(*gin.Context) {}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				rule := pay
				rule.WaitTime = ruleset.NoWait
				s.handle(t, "POST", payPath, rule, func(*gin.Context) {})
				s.redis.Take(payKey, time.Hour)
				want(t, "status", s.do(t, request{}).Code, tt.code)
			}, ginlock.WithErrorWriter(func(c *gin.Context, _ *aspect.RefusedError) { tt.write(c) }))
		})
	}
}
