package httplock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A mux within a mux, and a path of which a part is cut off: the route is that of the mux
// which has the handler.
func TestHandle_WithinOtherMuxes(t *testing.T) {
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

// A redirect to the path with a slash is the mux's and takes no lock.
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

// A rule that names the wildcards of a pattern in another way matches nothing.
func TestCheck_OtherNamesOfWildcards(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/{order}"), Key: "order:#{path.order}"}))
	if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(); err == nil || !strings.Contains(err.Error(), `did you mean "POST /orders/{id}"?`) {
		t.Errorf("got %v", err)
	}
}

// A body that is larger than a handler outside allows is refused where the key is over it,
// and else the handler meets the limit as without a guard.
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
			}, ruleset.Rule{Key: key, WaitTime: time.Minute}) // a body is read before the wait
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

// A time limit around the guard ends a wait, and no handler runs after it.
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

// A client that waits to be asked for its body is not asked by a guard that refuses.
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

// A key is over a body whose length nobody has announced, and the handler gets its trailers.
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

// A middleware that changes the method before the mux has the rule of that method.
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

// A wildcard that may be empty yields no key then, and not the key of all.
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

// A handler that aborts the connection, and one that takes it, free the lock.
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
			server.Close() // which waits for the handlers, but not for a hijacked one
			until(t, func() bool {
				state, err := b.locks.Lock("order:42").State(context.Background())
				return err == nil && len(state.Holders) == 0
			})
		}
	}
}
