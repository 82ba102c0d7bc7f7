package httplock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a guard over an embedded Redis.
type bench struct {
	redis *redistest.Server
	locks *core.Client
	guard *httplock.Guard
	mux   *http.ServeMux
}

func newBench(t *testing.T, opts ...any) *bench {
	t.Helper()
	srv := redistest.New(t)
	client, own := apart(opts)
	locks, err := core.New(srv.Client(), client...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	guard, err := httplock.New(locks, own...)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{srv, locks, guard, http.NewServeMux()}
}

// until waits for something that is certain to come, as long as the tests may take.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal("it did not come to that")
		case <-time.After(time.Millisecond):
		}
	}
}

// do serves a request to a handler, "POST /orders/42/pay" by default.
func (b *bench) do(method, target string, body io.Reader, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	for _, do := range change {
		do(r)
	}
	w := httptest.NewRecorder()
	b.mux.ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func byID(change ...func(*ruleset.Rule)) ruleset.Rule {
	r := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
	for _, do := range change {
		do(&r)
	}
	return r
}

func TestHandle_Patterns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, method, target, key string
		code                         int
	}{
		{"POST /orders/{id}/pay", "POST", "/orders/42/pay", "order:42", 409},
		{"POST /orders/{id}/pay", "POST", "/orders/43/pay", "order:42", 202},
		{"/orders/{id}", "PUT", "/orders/42", "order:42", 409},
		{"/orders/{id}", "BREW", "/orders/42", "order:42", 409},
		{"GET /orders/{id}", "HEAD", "/orders/42", "order:42", 409},
		{"example.com/orders/{id}", "POST", "http://example.com/orders/42", "order:42", 409},
		{"POST /files/{id...}", "POST", "/files/a/b", "order:a/b", 409},
		{"POST /files/{id...}", "POST", "/files/a/b/", "order:a/b/", 409},
		{"POST /orders/{id}/{$}", "POST", "/orders/42/", "order:42", 409},
	} {
		t.Run(tt.pattern+" "+tt.method+" "+tt.target, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if err := b.guard.HandleFunc(b.mux, tt.pattern, ok, byID()); err != nil {
				t.Fatal(err)
			}
			b.redis.Take(tt.key, time.Hour)
			if got := b.do(tt.method, tt.target, nil); got.Code != tt.code {
				t.Errorf("got %d, want %d", got.Code, tt.code)
			}
		})
	}
}

func TestHandle_Mistakes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for want, err := range map[string]error{
		"mux or the handler is nil":    b.guard.Handle(nil, "POST /a", http.HandlerFunc(ok)),
		"write a pattern with a path":  b.guard.HandleFunc(b.mux, "POST orders", ok),
		"path parameter i does not exist": b.guard.HandleFunc(b.mux, "POST /b/{id}", ok, ruleset.Rule{Key: "b:#{path.i}"}),
		"the rule is put on http POST /c": b.guard.HandleFunc(b.mux, "POST /c", ok,
			ruleset.Rule{Endpoint: ruleset.HTTP("POST /d"), Key: "c"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one that says %q", err, want)
		}
	}
	for _, path := range []string{"/b/1", "/c"} {
		if got := b.do("POST", path, nil); got.Code != http.StatusInternalServerError {
			t.Errorf("%s: got %d", path, got.Code)
		}
	}
	err := b.guard.Check("POST /e", "bad")
	if err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("Check: got %v", err)
	}
}

func TestNew_ReportsEveryBadOption(t *testing.T) {
	t.Parallel()
	text := func(*http.Request) (string, error) { return "", nil }
	set, err := ruleset.NewSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = httplock.New(nil, nil,
		httplock.WithSet(nil), httplock.WithSet(set), httplock.WithSet(set), httplock.WithRules(byID()),
		httplock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay"), Key: "a"}),
		httplock.WithErrorWriter(nil), httplock.WithFallback("", nil), httplock.WithVariable[string]("a", nil),
		httplock.WithVariable("path", text), httplock.WithBody[int]("orders"), httplock.WithMaxBody(0),
		httplock.WithClientIP(nil), httplock.WithBuffer(0),
		httplock.WithFallback("twice", http.NotFoundHandler()), httplock.WithFallback("twice", http.NotFoundHandler()))
	for _, want := range []string{
		"client is nil", "nil Option", "WithSet: given twice", "beside WithSet", "WithRules: the rule of grpc /shop.v1.Orders/Pay is for no HTTP route", "WithRules: the rule of grpc /shop.v1.Orders/Pay is for no HTTP route", "WithErrorWriter", `WithFallback("")`, `WithVariable("a")`,
		`WithVariable: keyexpr: the variable "path" is built in: choose another name`, `WithBody: route "orders"`, "WithMaxBody(0)", "WithClientIP", "WithBuffer(0)", `"twice"): given twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestMiddleware_NeedsAPattern(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("POST /orders/{id}") })))
	b.mux.Handle("POST /orders/{id}", b.guard.Middleware(http.HandlerFunc(ok)))
	b.redis.Take("order:42", time.Hour)
	if err := b.guard.Check("POST /orders/{id}"); err != nil {
		t.Error(err)
	}
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusConflict {
		t.Errorf("behind the mux: got %d", got.Code)
	}
}

func TestGuard_MetTwiceLocksOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("POST /orders/{id}") })))
	counted := 0
	handler := b.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted++
		if httplock.Hold(r.Context()) == nil {
			t.Error("no hold")
		}
		ok(w, r)
	}))
	if err := b.guard.Handle(b.mux, "POST /orders/{id}", handler); err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusAccepted || counted != 1 {
		t.Errorf("got %d after %d runs", got.Code, counted)
	}
}

// A layer between two guards may copy the request. What the request has shows in its context.
func TestGuard_MetTwiceBehindALayerThatCopies(t *testing.T) {
	t.Parallel()
	for name, layer := range map[string]func(http.Handler) http.Handler{
		"Clone": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.Clone(r.Context())) })
		},
		"MaxBytesHandler": func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 1<<10) },
		"another header": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r = r.WithContext(r.Context())
				r.Header = http.Header{"X-Request-Id": {"7"}}
				next.ServeHTTP(w, r)
			})
		},
	} {
		for _, kind := range []ruleset.Kind{ruleset.Reentrant, ruleset.Fair, ruleset.Fenced, ruleset.Spin, ruleset.Read, ruleset.Write, ruleset.Semaphore} {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, httplock.WithBuffer(1<<10), httplock.WithRules(byID(func(r *ruleset.Rule) {
					r.Endpoint, r.Kind = ruleset.HTTP("POST /orders/{id}"), kind
					if kind == ruleset.Semaphore {
						r.Permits = 1
					}
				})))
				inner := b.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if httplock.Hold(r.Context()) == nil {
						t.Error("the handler runs without the lock")
					}
					ok(w, r)
				}))
				if err := b.guard.Handle(b.mux, "POST /orders/{id}", layer(inner)); err != nil {
					t.Fatal(err)
				}
				if got := b.do("POST", "/orders/42", strings.NewReader("{}")); got.Code != http.StatusAccepted {
					t.Errorf("got %d %s", got.Code, got.Body)
				}
			})
		}
	}
}

// A handler that gives the request to the mux again, for another order, takes that
// order's lock, too.
func TestGuard_AnotherResourceHasAnotherLock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "42" {
			again := r.Clone(r.Context())
			again.URL.Path = "/orders/43"
			b.mux.ServeHTTP(w, again)
			return
		}
		ok(w, r)
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusAccepted {
		t.Errorf("got %d", got.Code)
	}
	b.redis.Take("order:43", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusConflict {
		t.Errorf("with 43 taken: got %d", got.Code)
	}
}

// Nor does it matter how the handler makes another request of the one that it has: what the
// copies of a request share is no proof that it is the same.
func TestGuard_AnotherResourceInTheSameRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key    string
		second func(r *http.Request) *http.Request
	}{
		"path": {"order:#{path.id}", func(r *http.Request) *http.Request {
			r.URL.Path = "/orders/43"
			return r
		}},
		"body": {"order:#{body.id}", func(r *http.Request) *http.Request {
			r.Body = jsonBody(`{"id": 43}`)
			return r
		}},
		"body of a copy": {"order:#{body.id}", func(r *http.Request) *http.Request {
			r = r.WithContext(r.Context())
			r.Body = jsonBody(`{"id": 43}`)
			return r
		}},
		"body that cannot be compared": {"order:#{body.id}", func(r *http.Request) *http.Request {
			r.Body = parts{jsonBody(`{"id": 43}`), nil}
			return r
		}},
		"host": {`order:#{tenant == "a" ? 42 : 43}`, func(r *http.Request) *http.Request {
			r.Host = "b"
			return r
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, httplock.WithVariable("tenant", func(r *http.Request) (string, error) { return r.Host, nil }))
			ran := 0
			err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
				if ran++; ran == 1 {
					b.mux.ServeHTTP(w, tt.second(r))
					return
				}
				ok(w, r)
			}, ruleset.Rule{Key: tt.key, WaitTime: ruleset.NoWait})
			if err != nil {
				t.Fatal(err)
			}
			b.redis.Take("order:43", time.Hour)
			got := b.do("POST", "/orders/42", strings.NewReader(`{"id": 42}`), func(r *http.Request) {
				r.Host = "a"
				r.Header.Set("Content-Type", "application/json")
			})
			if got.Code != http.StatusConflict || ran != 1 {
				t.Errorf("got %d after %d runs, want 409 after one", got.Code, ran)
			}
		})
	}
}

func jsonBody(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// parts is a body whose type cannot be compared.
type parts struct {
	io.ReadCloser
	read []string
}

// A handler that another one calls with another value of the path is for another resource.
func TestMiddleware_AnotherValueOfThePath(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("POST /orders/{id}") })))
	var guarded http.Handler
	guarded = b.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "42" {
			r.SetPathValue("id", "43")
			guarded.ServeHTTP(w, r)
			return
		}
		ok(w, r)
	}))
	b.mux.Handle("POST /orders/{id}", guarded)
	b.redis.Take("order:43", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusConflict {
		t.Errorf("got %d, want 409", got.Code)
	}
}

func TestCall_Variables(t *testing.T) {
	t.Parallel()
	type order struct {
		Shop string `json:"shop"`
	}
	b := newBench(t,
		httplock.WithVariable("user", func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }),
		httplock.WithClientIP(func(*http.Request) string { return "192.0.2.7" }),
		httplock.WithBody[order]("POST /pay"), httplock.WithMaxBody(64))
	err := b.guard.HandleFunc(b.mux, "POST /pay", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, httplock.Hold(r.Context()).Key(), " ", string(body), err)
	}, ruleset.Rule{Key: "#{user}:#{client_ip}:#{body.shop}:#{query.n}:#{method}"})
	if err != nil {
		t.Fatal(err)
	}
	user := func(r *http.Request) {
		r.Header.Set("X-User", "ann")
		r.Header.Set("Content-Type", "application/json")
	}
	got := b.do("POST", "/pay?n=1", strings.NewReader(`{"shop":"a"}`), user)
	if want := `ann:192.0.2.7:a:1:POST {"shop":"a"}<nil>`; got.Body.String() != want {
		t.Errorf("got %q, want %q", got.Body, want)
	}
	if got := b.do("POST", "/pay?n=1", strings.NewReader(`{"shop":"`+strings.Repeat("a", 64)+`"}`), user); got.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: got %d", got.Code)
	}
}

// What makes a route answer 500 is told to observers, once.
func TestGuard_WarnsOnceOfWhatCannotWork(t *testing.T) {
	t.Parallel()
	seen := &warnings{}
	b := newBench(t, core.WithObserver(seen.observer()),
		httplock.WithVariable("user", func(*http.Request) (string, error) { return "", nil }))
	if err := b.guard.HandleFunc(b.mux, "POST /pay", ok, ruleset.Rule{Key: "user:#{user}"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := b.do("POST", "/pay", nil); got.Code != http.StatusInternalServerError {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
	}
	if len(*seen) != 1 || !strings.Contains((*seen)[0], "such as authentication") {
		t.Errorf("observers were warned of %q", *seen)
	}
}

type warnings []string

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: func(p *ruleset.Problem) { *w = append(*w, p.Error()) }}}
}

// A form that the handler parses belongs to the request of net/http, which removes its
// files.
func TestHandle_FormComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("note", "thanks")
	_ = form.Close()
	r := httptest.NewRequest(http.MethodPost, "/orders/42", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	b.mux.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil || r.PostForm.Get("note") != "thanks" {
		t.Errorf("got %v %v", r.MultipartForm, r.PostForm)
	}
}

// An answer without a status has the status of the refusal, never of a success.
func TestErrorWriter_WithoutAStatus(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		write func(w http.ResponseWriter)
		code  int
	}{
		"Write":          {func(w http.ResponseWriter) { fmt.Fprint(w, "busy") }, http.StatusConflict},
		"WriteString":    {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "busy") }, http.StatusConflict},
		"ReadFrom":       {func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("busy")) }, http.StatusConflict},
		"Flush":          {func(w http.ResponseWriter) { w.(http.Flusher).Flush() }, http.StatusConflict},
		"a controller":   {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, http.StatusConflict},
		"its own status": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusLocked); fmt.Fprint(w, "busy") }, http.StatusLocked},
		"nothing":        {func(http.ResponseWriter) {}, http.StatusConflict},
	} {
		for _, opts := range [][]any{nil, {httplock.WithBuffer(1 << 10)}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, append(opts, httplock.WithErrorWriter(func(w http.ResponseWriter, _ *http.Request, _ *aspect.RefusedError) { tt.write(w) }))...)
				if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok, byID()); err != nil {
					t.Fatal(err)
				}
				b.redis.Take("order:42", time.Hour)
				if got := b.do("POST", "/orders/42", nil); got.Code != tt.code {
					t.Errorf("got %d, want %d", got.Code, tt.code)
				}
			})
		}
	}
}

func TestErrorWriter(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithErrorWriter(func(w http.ResponseWriter, r *http.Request, refused *aspect.RefusedError) {
		if r.URL.Path == "/orders/42" {
			http.Error(w, refused.Message, http.StatusTeapot)
		}
	}))
	if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok, byID()); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("order:42", time.Hour)
	b.redis.Take("order:43", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusTeapot || got.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v", got.Code, got.Header())
	}
	if got := b.do("POST", "/orders/43", nil); got.Code != failpolicy.Busy.Status().HTTP || got.Body.Len() != 0 {
		t.Errorf("a writer that writes nothing: got %d %q", got.Code, got.Body)
	}
}

func TestCaller_LivesOnAfterAnEarlyRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if err := httplock.Hold(ctx).Release(ctx); err != nil {
			t.Error(err)
		}
		if ctx.Err() == nil || httplock.Caller(ctx).Err() != nil {
			t.Errorf("the handler's context: %v, the caller's: %v", ctx.Err(), httplock.Caller(ctx).Err())
		}
		ok(w, r)
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusAccepted {
		t.Errorf("got %d", got.Code)
	}
	if ctx := t.Context(); httplock.Caller(ctx) != ctx || httplock.Hold(ctx) != nil {
		t.Error("outside a guard")
	}
}

// A handler sees what net/http gives it: Flush, ReadFrom, informational answers and the
// connection.
func TestWriter_IsThatOfNetHTTP(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		w.(http.Flusher).Flush()
		if _, err := io.Copy(w, strings.NewReader("paid")); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.mux)
	defer server.Close()
	response, err := server.Client().Post(server.URL+"/orders/42", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "paid" || response.StatusCode != http.StatusCreated {
		t.Errorf("got %d %q %v", response.StatusCode, body, err)
	}
}

func TestWriteRoutes(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithFallback("queue", http.NotFoundHandler()))
	for _, pattern := range []string{"POST /orders/{id}/pay", "GET example.com/orders"} {
		if err := b.guard.HandleFunc(b.mux, pattern, ok); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := b.guard.WriteRoutes(&got); err != nil {
		t.Fatal(err)
	}
	want := `{
  "routes": [
    {
      "method": "GET",
      "path": "/orders"
    },
    {
      "method": "POST",
      "path": "/orders/{id}/pay"
    }
  ],
  "fallbacks": [
    "queue"
  ]
}
`
	if got.String() != want {
		t.Errorf("got %s", got.String())
	}
}

// apart separates the options of a guard from the options of its lock client.
func apart(opts []any) (client []core.Option, guard []httplock.Option) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case core.Option:
			client = append(client, opt)
		case httplock.Option:
			guard = append(guard, opt)
		}
	}
	return client, guard
}
