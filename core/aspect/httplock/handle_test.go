package httplock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

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
		"mux or the handler is nil":   b.guard.Handle(nil, "POST /a", http.HandlerFunc(ok)),
		"write a pattern with a path": b.guard.HandleFunc(b.mux, "POST orders", ok),
		"path parameter i":            b.guard.HandleFunc(b.mux, "POST /b/{id}", ok, ruleset.Rule{Key: "b:#{path.i}"}),
		"the rule is put on http POST /c": b.guard.HandleFunc(b.mux, "POST /c", ok,
			ruleset.Rule{Endpoint: ruleset.HTTP("POST /d"), Key: "c"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that contains %q", err, want)
		}
	}
	for _, path := range []string{"/b/1", "/c"} {
		if got := b.do("POST", path, nil); got.Code != http.StatusInternalServerError {
			t.Errorf("%s: got %d", path, got.Code)
		}
	}
	err := b.guard.Check()
	for _, want := range []string{`Handle("POST /a"): the mux or the handler is nil`, `Handle("POST orders")`, "path parameter i", "put on http POST /c"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: got %v, want %q in it", err, want)
		}
	}
	err = b.guard.Check("POST /e", "bad")
	if err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("Check: got %v", err)
	}
}

// A form that the handler parses belongs to the request of net/http, so that net/http removes its files.
func TestHandle_FormBelongsToTheRequest(t *testing.T) {
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

// A client cannot choose a method under which the handler runs without its rule.
func TestHandle_EveryMethodIsUnderTheRule(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.guard.HandleFunc(b.mux, "/orders/{id}", ok, byID()); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("order:42", time.Hour)
	for _, method := range []string{"POST", "post", "TRACE", "PROPFIND", "BREW", "*"} {
		if got := b.do(method, "/orders/42", nil); got.Code != http.StatusConflict {
			t.Errorf("%s: got %d", method, got.Code)
		}
	}
	if err := b.guard.Check(); err != nil {
		t.Error(err)
	}
}

// A method that only a rule file names is also under the rules of its pattern, before and after Check.
func TestHandle_MethodThatOnlyARuleNames(t *testing.T) {
	t.Parallel()
	named := ruleset.Rule{Endpoint: ruleset.HTTP("PURGE /orders/{id}"), Name: "purge", Key: "purge:#{path.id}", WaitTime: ruleset.NoWait}
	b := newBench(t, httplock.WithRules(named))
	rule := byID(func(r *ruleset.Rule) { r.Name = "order" })
	if err := b.guard.HandleFunc(b.mux, "/orders/{id}", ok, rule); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, key := range []string{"order:42", "purge:42"} {
			b.redis.Take(key, time.Hour)
			if got := b.do("PURGE", "/orders/42", nil); got.Code != http.StatusConflict {
				t.Errorf("beside %s: got %d", key, got.Code)
			}
			b.redis.Free(key)
		}
		if got := b.do("PURGE", "/orders/42", nil); got.Code != http.StatusAccepted {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
		if err := b.guard.Check(); err != nil { // the rule matches
			t.Error(err)
		}
	}
}

// A pattern with that method is another handler, with separate rules.
func TestHandle_PatternOfANamedMethod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for pattern, rules := range map[string][]ruleset.Rule{"/orders/{id}": {byID()}, "PURGE /orders/{id}": nil} {
		if err := b.guard.HandleFunc(b.mux, pattern, ok, rules...); err != nil {
			t.Fatal(err)
		}
	}
	b.redis.Take("order:42", time.Hour)
	for method, code := range map[string]int{"PURGE": http.StatusAccepted, "BREW": http.StatusConflict} {
		if got := b.do(method, "/orders/42", nil); got.Code != code {
			t.Errorf("%s: got %d, want %d", method, got.Code, code)
		}
	}
}

// Rules that are added to a known route apply together with its other rules: from another host or mux, even after Check
// and the first requests.
func TestHandle_RulesForAKnownRoute(t *testing.T) {
	t.Parallel()
	const pattern = "POST /orders/{id}"
	named := func(name string) ruleset.Rule {
		return byID(func(r *ruleset.Rule) { r.Name, r.Key = name, name+":#{path.id}" })
	}
	for name, before := range map[string]func(t *testing.T, b *bench){
		"another mux": func(t *testing.T, b *bench) {
			t.Helper()
			if err := b.guard.HandleFunc(http.NewServeMux(), pattern, ok, named("first")); err != nil {
				t.Error(err)
			}
		},
		"the same rule": func(t *testing.T, b *bench) {
			t.Helper()
			if err := b.guard.HandleFunc(http.NewServeMux(), pattern, ok, named("second")); err != nil {
				t.Error(err)
			}
		},
		"Check": func(t *testing.T, b *bench) {
			t.Helper()
			if err := b.guard.Check(pattern); err == nil {
				t.Error("Check passes before there is a rule")
			}
		},
		"a request": func(_ *testing.T, b *bench) {
			mux := http.NewServeMux()
			mux.Handle(pattern, b.guard.Middleware(http.HandlerFunc(ok)))
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders/42", http.NoBody))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			before(t, b)
			if err := b.guard.HandleFunc(b.mux, pattern, ok, named("second")); err != nil {
				t.Fatal(err)
			}
			b.redis.Take("second:42", time.Hour)
			if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusConflict {
				t.Errorf("got %d", got.Code)
			}
			if err := b.guard.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func at(pattern string) ruleset.Rule {
	return byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP(pattern) })
}

// subrouter is a router below a prefix. Like a router of chi, it registers paths without the prefix and writes the whole
// path into the pattern of a request, without the method.
type subrouter struct {
	prefix   string
	handlers map[string]http.Handler // by method
	path     string                  // as registered, without the prefix
}

func (b *subrouter) Handle(pattern string, handler http.Handler) {
	method, path, _ := strings.Cut(pattern, " ")
	b.handlers[method], b.path = handler, path
}

func (b *subrouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.SetPathValue("id", strings.TrimPrefix(r.URL.Path, b.prefix+"/"))
	r.Pattern = b.prefix + b.path
	b.handlers[r.Method].ServeHTTP(w, r)
}

func newSubrouter(prefix string) *subrouter {
	return &subrouter{prefix: prefix, handlers: map[string]http.Handler{}}
}

// silent is a router with one handler that does not set the pattern of a request.
type silent struct{ http.Handler }

func (s *silent) Handle(_ string, handler http.Handler) { s.Handler = handler }

// serve serves a request with a handler that is not a mux.
func serve(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, http.NoBody))
	return w
}

// A handler on a subrouter is registered with only a part of its route, so its requests are refused.
// Otherwise it would run without the rule of its route and under the rules of other subrouters.
func TestHandle_Subrouter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file []ruleset.Rule
		code []ruleset.Rule
	}{
		"rule of a file": {file: []ruleset.Rule{at("POST /orders/{id}")}},
		"rule in Go":     {code: []ruleset.Rule{byID()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			b := newBench(t, httplock.WithRules(tt.file...), core.WithObserver(seen.observer()))
			orders := newSubrouter("/orders")
			if err := b.guard.HandleFunc(orders, "POST /{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }, tt.code...); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := serve(orders, "POST", "/orders/42"); got.Code != http.StatusInternalServerError {
					t.Errorf("got %d", got.Code)
				}
			}
			if len(*seen) != 1 || !strings.Contains((*seen)[0], `registered "POST /{id}"`) || !strings.Contains((*seen)[0], `matched "/orders/{id}"`) || !strings.Contains((*seen)[0], "Middleware") {
				t.Errorf("observers got the warnings %q", *seen)
			}
			if err := b.guard.Check("POST /orders/{id}"); (err == nil) != (tt.file == nil) {
				t.Errorf("Check: got %v", err)
			}
		})
	}
}

// A router that does not set the pattern may be nested in another router.
func TestHandle_RouterWithoutPatterns(t *testing.T) {
	t.Parallel()
	b, router := newBench(t), &silent{}
	if err := b.guard.HandleFunc(router, "POST /orders/{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }, byID()); err != nil {
		t.Fatal(err)
	}
	if got := serve(router, "POST", "/orders/42"); got.Code != http.StatusInternalServerError {
		t.Errorf("got %d", got.Code)
	}
}

// In nested muxes, and if a prefix of the path is stripped, the route is the route of the mux that contains the handler.
func TestHandle_NestedMuxes(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]func(inner http.Handler) http.Handler{
		"below a prefix that is cut off": func(inner http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/api/", http.StripPrefix("/api", inner))
			return mux
		},
		"below two": func(inner http.Handler) http.Handler {
			within, mux := http.NewServeMux(), http.NewServeMux()
			within.Handle("/", inner)
			mux.Handle("/api/", http.StripPrefix("/api", within))
			return mux
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok, byID()); err != nil {
				t.Fatal(err)
			}
			b.mux = muxOf(outer(b.mux))
			b.redis.Take("order:42", time.Hour)
			for id, code := range map[string]int{"42": http.StatusConflict, "43": http.StatusAccepted} {
				if got := b.do("POST", "/api/orders/"+id, nil); got.Code != code {
					t.Errorf("%s: got %d", id, got.Code)
				}
			}
		})
	}
}

func muxOf(h http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	return mux
}

// The mux redirects to the path with a slash, without taking a lock.
func TestHandle_RedirectOfTheMux(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.guard.HandleFunc(b.mux, "/orders/{id}/", ok, byID()); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("order:42", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code < 300 || got.Code > 399 {
		t.Errorf("got %d", got.Code)
	}
	if got := b.do("POST", "/orders/42/", nil); got.Code != http.StatusConflict {
		t.Errorf("with the slash: got %d", got.Code)
	}
}

// A body that is larger than an outer handler allows is refused if the key reads it. Otherwise the handler meets the limit
// as without a guard.
func TestHandle_WithinMaxBytesHandler(t *testing.T) {
	t.Parallel()
	const limit = 16
	for key, code := range map[string]int{"#{body.id}": http.StatusRequestEntityTooLarge, "#{path.id}": http.StatusTeapot} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
				got, err := io.ReadAll(r.Body)
				if _, large := errors.AsType[*http.MaxBytesError](err); large && len(got) == limit {
					w.WriteHeader(http.StatusTeapot)
				}
			}, ruleset.Rule{Key: key, WaitTime: time.Minute}) // the guard reads the body before the wait
			if err != nil {
				t.Fatal(err)
			}
			b.mux = muxOf(http.MaxBytesHandler(b.mux, limit))
			for name, body := range map[string]io.Reader{
				"a known length":    strings.NewReader(`{"id": "42", "note": "` + strings.Repeat("x", limit) + `"}`),
				"an unknown length": io.MultiReader(strings.NewReader(`{"id": "42", "note": "` + strings.Repeat("x", limit) + `"}`)),
			} {
				got := b.do("POST", "/orders/42", body, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") })
				if got.Code != code {
					t.Errorf("%s: got %d %s", name, got.Code, got.Body)
				}
			}
		})
	}
}

// A timeout around the guard stops a wait, and no handler runs after it.
func TestHandle_WithinTimeoutHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok, byID(func(r *ruleset.Rule) { r.WaitTime = ruleset.WaitForever }))
	if err != nil {
		t.Fatal(err)
	}
	inner := b.mux
	b.mux = muxOf(http.TimeoutHandler(inner, 100*time.Millisecond, "no time"))
	b.redis.Take("order:42", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusServiceUnavailable && got.Code != http.StatusConflict {
		t.Errorf("got %d", got.Code)
	}
	b.mux = muxOf(http.TimeoutHandler(inner, time.Hour, "no time"))
	if got := b.do("POST", "/orders/43", nil); got.Code != http.StatusAccepted {
		t.Errorf("with time: got %d", got.Code)
	}
}

// A guard that refuses does not ask a client for the body that it announces with Expect: 100-continue.
func TestHandle_ExpectContinue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), err, r.Trailer.Get("X-Sum"))
	}, byID())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(b.mux)
	defer server.Close()
	ask := func(id string) (*bufio.Reader, net.Conn) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /orders/%s HTTP/1.1\r\nHost: shop\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n", id)
		return bufio.NewReader(conn), conn
	}
	b.redis.Take("order:42", time.Hour)
	answer, conn := ask("42")
	defer conn.Close()
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, " 409 ") {
		t.Errorf("got %q %v", line, err)
	}

	answer, other := ask("43")
	defer other.Close()
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("got %q %v", line, err)
	}
	if _, err := answer.ReadString('\n'); err != nil { // the empty line
		t.Fatal(err)
	}
	fmt.Fprint(other, "4\r\npaid\r\n0\r\nX-Sum: 7\r\n\r\n")
	response, err := http.ReadResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "paid<nil>7" {
		t.Errorf("got %q %v", body, err)
	}
}

// A key may read a body of unknown length, and the handler still gets its trailers.
func TestHandle_BodyOfUnknownLength(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /pay", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, httplock.Hold(r.Context()).Key(), " ", string(body), err, r.Trailer.Get("X-Sum"))
	}, ruleset.Rule{Key: "order:#{body.id}"})
	if err != nil {
		t.Fatal(err)
	}
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(b.mux)
		server.EnableHTTP2 = http2
		server.StartTLS()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/pay", io.MultiReader(strings.NewReader(`{"id": 42}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Trailer = http.Header{"X-Sum": {"7"}}
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		server.Close()
		if want := `order:42 {"id": 42}<nil>7`; err != nil || string(body) != want {
			t.Errorf("HTTP/2 %v: got %q %v, want %q", http2, body, err, want)
		}
	}
}

// If a middleware changes the method before the mux, the rule of the new method applies.
func TestHandle_MethodOverride(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, method := range []string{"POST", "DELETE"} {
		if err := b.guard.HandleFunc(b.mux, method+" /orders/{id}", ok, byID(func(r *ruleset.Rule) { r.Key = method + ":#{path.id}" })); err != nil {
			t.Fatal(err)
		}
	}
	inner := b.mux
	b.mux = muxOf(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Method = r.Header.Get("X-Method")
		inner.ServeHTTP(w, r)
	}))
	b.redis.Take("DELETE:42", time.Hour)
	for method, code := range map[string]int{"DELETE": http.StatusConflict, "POST": http.StatusAccepted} {
		got := b.do("POST", "/orders/42", nil, func(r *http.Request) { r.Header.Set("X-Method", method) })
		if got.Code != code {
			t.Errorf("%s: got %d", method, got.Code)
		}
	}
}

// An empty wildcard yields no key. Otherwise all such requests would share one key.
func TestHandle_EmptyWildcard(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.guard.HandleFunc(b.mux, "POST /files/{id...}", ok, byID()); err != nil {
		t.Fatal(err)
	}
	if got := b.do("POST", "/files/", nil); got.Code != http.StatusBadRequest {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

// The lock is free after a handler has aborted or hijacked the connection.
func TestHandle_EndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]http.HandlerFunc{
		"abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"hijack": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		},
	} {
		for _, opts := range [][]any{nil, {httplock.WithBuffer(1 << 10)}} {
			b := newBench(t, opts...)
			if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", end, byID()); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(b.mux)
			response, err := server.Client().Post(server.URL+"/orders/42", "text/plain", nil)
			if err == nil {
				_ = response.Body.Close()
				t.Errorf("%s: got %d", name, response.StatusCode)
			}
			server.Close() // Close does not wait for a hijacked connection
			until(t, func() bool {
				state, err := b.locks.Lock("order:42").State(context.Background())
				return err == nil && len(state.Holders) == 0
			})
		}
	}
}
