package ginlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/ginlock"
)

// problemDoc is a problem document as a client reads it.
type problemDoc struct {
	Type, Title, Detail string
	Status              int
}

func problemOf(t testing.TB, w *httptest.ResponseRecorder) problemDoc {
	t.Helper()
	want(t, "Content-Type", w.Header().Get("Content-Type"), "application/problem+json")
	var doc problemDoc
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Errorf("not JSON: %v: %s", err, w.Body)
	}
	want(t, "status in the document", doc.Status, w.Code)
	return doc
}

// obstacle is why a lock is not acquired.
type obstacle func(t testing.TB, s *shop)

func taken(_ testing.TB, s *shop) { s.redis.Take(payKey, time.Hour) }
func down(_ testing.TB, s *shop)  { s.redis.Down() }

// wrongType has Redis answer, but with an error: the key is of another type.
func wrongType(t testing.TB, s *shop) {
	t.Helper()
	must(t, s.redis.Client().Set(t.Context(), payKey, "not a lock", 0).Err())
}

func TestAnswer_EveryCauseUnderStrategyError(t *testing.T) {
	t.Parallel()
	body := ruleset.Rule{Key: "order:#{body.id}"}
	lenient := pay // to the busy, so that the strategy tells busy from backend
	lenient.OnBusy = failpolicy.Skip
	tests := map[string]struct {
		rule     ruleset.Rule
		obstacle obstacle
		request  request
		cause    failpolicy.Cause
		status   int
		retry    [2]int // bounds; 0, 0 for none
	}{
		"busy":             {pay, taken, request{}, failpolicy.Busy, 409, [2]int{1, 5}},
		"debounced":        {ruleset.Rule{Key: "order:#{path.id}", Debounce: 3 * time.Second}, taken, request{}, failpolicy.Debounced, 429, [2]int{1, 3}},
		"backend":          {pay, down, request{}, failpolicy.Backend, 503, [2]int{1, 2}},
		"backend: answers": {lenient, wrongType, request{}, failpolicy.Backend, 503, [2]int{1, 2}},
		"key: no header":   {ruleset.Rule{Key: `order:#{header["X-Id"]}`}, down, request{}, failpolicy.Key, 400, [2]int{}},
		"key: empty":       {ruleset.Rule{Key: `order:#{query.id}`}, down, request{url: payURL + "?id="}, failpolicy.Key, 400, [2]int{}},
		"key: repeated":    {ruleset.Rule{Key: `order:#{query.id}`}, down, request{url: payURL + "?id=1&id=2"}, failpolicy.Key, 400, [2]int{}},
		"body: absent":     {body, down, request{}, failpolicy.Key, 400, [2]int{}},
		"body: not JSON":   {body, down, request{body: "{"}, failpolicy.Key, 400, [2]int{}},
		"body: wrong type": {body, down, request{body: "id=1", typ: "text/plain"}, failpolicy.Key, 415, [2]int{}},
		"body: too large":  {body, down, request{body: `{"id":"` + string(make([]byte, 2000)) + `"}`}, failpolicy.Key, 413, [2]int{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				s.handle(t, "POST", payPath, tt.rule, func(*gin.Context) { t.Error("the handler ran") })
				tt.obstacle(t, s)
				w := s.do(t, tt.request)
				want(t, "status", w.Code, tt.status)
				want(t, "document", problemOf(t, w), problemDoc{Type: tt.cause.Type(), Title: tt.cause.Title(), Status: tt.status})
				wantRetryAfter(t, w, tt.retry)
				want(t, "lock status", w.Header().Get(failpolicy.StatusHeader), "")
			}, ginlock.WithMaxBody(1000))
		})
	}
}

// wantRetryAfter checks the header: whole seconds, within the bounds.
func wantRetryAfter(t testing.TB, w *httptest.ResponseRecorder, bounds [2]int) {
	t.Helper()
	header := w.Header().Get("Retry-After")
	if bounds == [2]int{} {
		want(t, "Retry-After", header, "")
		return
	}
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < max(1, bounds[0]) || seconds > bounds[1] {
		t.Errorf("Retry-After: got %q, want %d to %d", header, bounds[0], bounds[1])
	}
}

func TestAnswer_FallbackRunsInstead(t *testing.T) {
	t.Parallel()
	ran := 0
	queue := func(c *gin.Context) {
		ran++
		o, ok := aspect.OutcomeFrom(c.Request.Context())
		want(t, "outcome", ok, true)
		c.Next() // must not reach the handler
		c.JSON(http.StatusAccepted, gin.H{"why": o.Cause})
	}
	bubble(t, func(t *testing.T, s *shop) {
		rule := pay
		rule.OnBusy, rule.Fallback = failpolicy.Fallback, "queue"
		s.handle(t, "POST", payPath, rule, func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusAccepted)
		want(t, "body", w.Body.String(), `{"why":"busy"}`)
		want(t, "runs", ran, 1)
	}, ginlock.WithFallback("queue", queue))
}

func TestAnswer_ErrorWriter(t *testing.T) {
	t.Parallel()
	silent := false
	write := func(c *gin.Context, refusal *aspect.RefusedError) {
		want(t, "aborted", c.IsAborted(), true)
		want(t, "rule", refusal.Rule, "POST "+payPath)
		wantErr(t, "reason", refusal, core.ErrNotAcquired)
		if !silent {
			c.String(http.StatusTeapot, "%s", refusal.Message)
		}
	}
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(*gin.Context) {})
		s.redis.Take(payKey, time.Hour)
		w := s.do(t, request{})
		want(t, "status", w.Code, http.StatusTeapot)
		want(t, "body", w.Body.String(), failpolicy.Busy.Title())
		wantRetryAfter(t, w, [2]int{1, 5})
		silent = true
		want(t, "a writer that writes nothing", s.do(t, request{}).Code, http.StatusConflict)
	}, ginlock.WithErrorWriter(write))
}

func TestAnswer_CallerGoneGetsNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var logged int
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			logged = c.Writer.Status()
			want(t, "written", c.Writer.Written(), false)
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		w := s.do(t, request{ctx: ctx})
		want(t, "body", w.Body.Len(), 0)
		want(t, "Retry-After", w.Header().Get("Retry-After"), "")
		want(t, "status in the log", logged, 499)
		want(t, "gave up", time.Since(start).Round(100*time.Millisecond), time.Second)
	})
}

func TestAnswer_WaitEndsBeforeTheCallersDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(*gin.Context) {})
		s.redis.Take(payKey, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := s.do(t, request{ctx: ctx})
		want(t, "status", w.Code, http.StatusConflict)
		want(t, "time left", ctx.Err(), nil)
	})
}

func TestAnswer_CallersDeadlineIsOver504(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		s.handle(t, "POST", payPath, pay, func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		<-ctx.Done()
		w := s.do(t, request{ctx: ctx})
		want(t, "status", w.Code, http.StatusGatewayTimeout)
		want(t, "type", problemOf(t, w).Type, failpolicy.Deadline.Type())
	})
}

func TestAnswer_ServerFaultsAreInErrorsForTheLogger(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var logged []error
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			logged = nil
			for _, e := range c.Errors {
				want(t, "private", e.IsType(gin.ErrorTypePrivate), true)
				logged = append(logged, e.Err)
			}
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) {})
		s.redis.Take(payKey, time.Hour)
		s.do(t, request{})
		want(t, "errors after busy", len(logged), 0)
		s.redis.Free(payKey)
		for _, fault := range []struct {
			obstacle obstacle
			says     string
		}{{wrongType, "WRONGTYPE"}, {down, ""}} {
			fault.obstacle(t, s)
			s.do(t, request{})
			if len(logged) != 1 {
				t.Fatalf("errors after a backend failure: %v", logged)
			}
			var refusal *aspect.RefusedError
			want(t, "type", errors.As(logged[0], &refusal), true)
			wantErr(t, "reason", logged[0], core.ErrUnavailable)
			wantText(t, refusal.Reason, fault.says)
		}
	})
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
