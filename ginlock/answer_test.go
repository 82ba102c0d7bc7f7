package ginlock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
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

// obstacle prevents the acquisition of a lock.
type obstacle func(t testing.TB, s *shop)

func taken(_ testing.TB, s *shop) { s.redis.Take(payKey, time.Hour) }
func down(_ testing.TB, s *shop)  { s.redis.Down() }

// wrongType makes Redis answer with an error, because the key has another type.
func wrongType(t testing.TB, s *shop) {
	t.Helper()
	must(t, s.redis.Client().Set(t.Context(), payKey, "not a lock", 0).Err())
}

func TestAnswer_EachCause(t *testing.T) {
	t.Parallel()
	body := ruleset.Rule{Key: "order:#{body.id}"}
	lenient := pay // skips if the lock is busy, so that the answer distinguishes busy from backend
	lenient.OnBusy = failpolicy.Skip
	tests := map[string]struct {
		rule     ruleset.Rule
		obstacle obstacle
		request  request
		cause    failpolicy.Cause
		status   int
		retry    [2]int // the bounds of Retry-After; 0, 0 for none
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

// wantRetryAfter fails the test unless the header has whole seconds within the bounds.
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

func TestAnswer_Fallback(t *testing.T) {
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

func TestAnswer_ClientLeft(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *shop) {
		var logged, errs int
		s.engine.Use(func(c *gin.Context) {
			c.Next()
			logged, errs = c.Writer.Status(), len(c.Errors)
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		w := s.do(t, request{ctx: ctx})
		want(t, "status", w.Code, http.StatusServiceUnavailable)
		wantBody(t, w.Body.String(), "problem")
		want(t, "Retry-After", w.Header().Get("Retry-After"), "1")
		want(t, "errors", errs, 0)
		want(t, "status in the log", logged, 499)
		want(t, "gave up", time.Since(start).Round(100*time.Millisecond), time.Second)
	})
}

func TestAnswer_WaitEndsBeforeTheDeadline(t *testing.T) {
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

func TestAnswer_DeadlineExceeded(t *testing.T) {
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

// A middleware before the guard finds the error of the handler in c.Errors when the lock is free, and no debounce window has
// begun. The guard writes nothing.
func TestAnswer_ErrorOfTheHandler(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]any{"without a buffer": nil, "with a buffer": {ginlock.WithBuffer(1 << 10)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *shop) {
				rule, errNoOrder := pay, errors.New("no such order")
				rule.Debounce, rule.WaitTime = time.Hour, 0
				s.engine.Use(func(c *gin.Context) {
					c.Next()
					want(t, "written", c.Writer.Written(), false)
					want(t, "errors", len(c.Errors), 1)
					wantErr(t, "error", c.Errors.Last(), errNoOrder)
					want(t, "holds", s.locks.Stats().Holds, 0)
					c.Status(http.StatusNotFound)
				})
				s.engine.POST(payPath, s.guard.Handler(rule), func(c *gin.Context) { _ = c.Error(errNoOrder) })
				for range 2 {
					want(t, "status", s.do(t, request{}).Code, http.StatusNotFound)
				}
			}, opts...)
		})
	}
}

func TestAnswer_ErrorsForTheLogger(t *testing.T) {
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

// If a request yields no key, gin's log contains the reason. The client does not get the reason, even if an
// outer middleware answers with the errors of the request.
func TestAnswer_BadRequestsInTheLog(t *testing.T) {
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
						t.Errorf("the log does not contain %q:\n%s", part, log.String())
					}
				}
			}, tt.options...)
		})
	}
}

// A refusal adds no error to gin's context unless the program or the client is at fault.
func TestAnswer_ExpectedRefusalsNotInTheLog(t *testing.T) {
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

// answeringMiddlewares returns outer middlewares that write an answer according to the status and the errors after the
// handlers.
func answeringMiddlewares() map[string]gin.HandlerFunc {
	return map[string]gin.HandlerFunc{
		"gin.ErrorLogger":  gin.ErrorLogger(),
		"gin.ErrorLoggerT": gin.ErrorLoggerT(gin.ErrorTypePrivate),
		"answers for errors": func(c *gin.Context) {
			c.Next()
			if len(c.Errors) > 0 {
				c.JSON(http.StatusInternalServerError, gin.H{"message": c.Errors.Last().Error()})
			}
		},
		"answers for statuses": func(c *gin.Context) {
			c.Next()
			if c.Writer.Status() >= http.StatusBadRequest || c.Writer.Header().Get(failpolicy.StatusHeader) != "" {
				c.String(-1, "second answer")
			}
		},
		"answers unless written": func(c *gin.Context) {
			c.Next()
			if !c.Writer.Written() || c.Writer.Size() < 0 {
				c.String(http.StatusTeapot, "there was none")
			}
		},
	}
}

// answerPaid is a handler that answers.
func answerPaid(c *gin.Context) { c.String(http.StatusOK, "paid") }

// answerThenLose is a handler that answers and then loses its lock.
func answerThenLose(c *gin.Context) {
	answerPaid(c)
	<-c.Request.Context().Done()
}

// loseThenAnswer is a handler that answers after it has lost its lock.
func loseThenAnswer(c *gin.Context) {
	<-c.Request.Context().Done()
	answerPaid(c)
}

// The client gets only the answer of the guard, whatever outer middlewares write because of the status and
// the error. The connection can then serve the next request.
func TestAnswer_OnlyOne(t *testing.T) {
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
		"backend":          {pay, down, answerPaid, nil, 503, "problem"},
		"busy":             {pay, taken, answerPaid, nil, 409, "problem"},
		"broken rule":      {ruleset.Rule{Key: "order:#{user}"}, free, answerPaid, nil, 500, "problem"},
		"own writer":       {pay, down, answerPaid, []any{words}, 503, "in words"},
		"skip":             {skipping, down, answerPaid, nil, 204, ""},
		"null":             {null, down, answerPaid, nil, 200, "null"},
		"lost":             {brief, free, func(c *gin.Context) { <-c.Request.Context().Done() }, nil, 500, "problem"},
		"lost, too late":   {failing, free, answerThenLose, []any{ginlock.WithBuffer(1)}, 200, "paid"},
		"lost, taken back": {failing, free, loseThenAnswer, []any{ginlock.WithBuffer(64)}, 500, "problem"},
	}
	for name, tt := range tests {
		for outside, middleware := range answeringMiddlewares() {
			t.Run(name+", outside "+outside, func(t *testing.T) {
				t.Parallel()
				serveShop(t, nil, func(t *testing.T, s *servedShop) {
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

// The client also gets only the answer of an inner guard if an outer guard buffers the response.
func TestAnswer_OnlyOneOfInnerGuard(t *testing.T) {
	t.Parallel()
	for outside, middleware := range answeringMiddlewares() {
		t.Run("outside "+outside, func(t *testing.T) {
			t.Parallel()
			serveShop(t, nil, func(t *testing.T, s *servedShop) {
				inner := ruleset.Rule{Name: "inner", Key: "inner", WaitTime: ruleset.NoWait}
				inner.Status.Busy.HTTP = http.StatusServiceUnavailable
				s.engine.Use(middleware)
				s.engine.POST(payPath, s.guard.Handler(pay), s.guard.Handler(inner), answerPaid)
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

// An error writer that writes nothing leaves the answer to an outer middleware.
func TestAnswer_LeftToOuterMiddleware(t *testing.T) {
	t.Parallel()
	leave := func(c *gin.Context, refusal *aspect.RefusedError) { _ = c.Error(refusal) }
	serveShop(t, nil, func(t *testing.T, s *servedShop) {
		s.engine.Use(answeringMiddlewares()["answers unless written"])
		s.engine.POST(payPath, s.guard.Handler(pay), answerPaid)
		s.redis.Take(payKey, time.Hour)
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusTeapot)
		want(t, "body", body, "there was none")
	}, ginlock.WithErrorWriter(leave))
}

// net/http treats a client that has closed its side of the connection as a client that has left. The client still reads
// and gets an answer.
func TestAnswer_HalfClosedClient(t *testing.T) {
	t.Parallel()
	tests := map[string][]any{"": nil, "with a buffer": {ginlock.WithBuffer(1 << 10)}}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, srv := tcp(t, options...)
			logged := make(chan int, 1)
			rule := pay
			rule.WaitTime = 30 * time.Second
			inner := rule
			inner.Name, inner.Key = "inner", "inner"
			s.engine.Use(func(c *gin.Context) { c.Next(); logged <- c.Writer.Status() }, gin.ErrorLogger())
			s.engine.POST(payPath, s.guard.Handler(rule), s.guard.Handler(inner), func(*gin.Context) { t.Error("the handler ran") })
			s.redis.Take(prefix+"inner", time.Hour)

			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			must(t, err)
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", payURL)
			for s.locks.Stats().Waiters == 0 && t.Context().Err() == nil {
				runtime.Gosched()
			}
			must(t, conn.(*net.TCPConn).CloseWrite())
			answer, err := io.ReadAll(conn)
			want(t, "error", err, nil)
			want(t, "status in the log", <-logged, 499)
			head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
			wantBody(t, body, "problem")
			if !strings.HasPrefix(head, "HTTP/1.1 503 ") || !strings.Contains(head, "Retry-After: 1\r\n") {
				t.Errorf("the client read %q", answer)
			}
		})
	}
}

// A server may cancel the contexts of all requests when it shuts down. Their clients still read.
func TestAnswer_RequestCancelledByTheServer(t *testing.T) {
	t.Parallel()
	base, shutdown := context.WithCancel(context.Background())
	defer shutdown()
	serveShop(t, func(server *http.Server) {
		server.BaseContext = func(net.Listener) context.Context { return base }
	}, func(t *testing.T, s *servedShop) {
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		time.AfterFunc(time.Second, shutdown)
		status, body, err := s.post(t)
		want(t, "error", err, nil)
		want(t, "status", status, http.StatusServiceUnavailable)
		wantBody(t, body, "problem")
	})
}

// A read deadline that a layer around the guard sets also cancels a request without a body, because net/http reads on to
// notice a client that leaves. The client has not left.
func TestAnswer_OuterReadDeadline(t *testing.T) {
	t.Parallel()
	serveShop(t, nil, func(t *testing.T, s *servedShop) {
		s.engine.Use(func(c *gin.Context) {
			must(t, http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(time.Second)))
		})
		s.engine.POST(payPath, s.guard.Handler(pay), func(*gin.Context) { t.Error("the handler ran") })
		s.redis.Take(payKey, time.Hour)
		res, err := s.client.Post("http://shop"+payURL, "", nil)
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		want(t, "error", err, nil)
		want(t, "status", res.StatusCode, http.StatusServiceUnavailable)
		want(t, "Retry-After", res.Header.Get("Retry-After"), "1")
		wantBody(t, string(body), "problem")
	})
}
