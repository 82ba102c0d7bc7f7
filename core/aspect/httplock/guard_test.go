package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

func TestGuard_SameRequestTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("POST /orders/{id}") })))
	counted := 0
	handler := b.guard.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		counted++
		if httplock.Hold(r.Context()) == nil {
			t.Error("the handler has no hold")
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

// A layer between two guards may copy the request. The context of the copy still carries the locks of the
// request.
func TestGuard_SameRequestCopied(t *testing.T) {
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

// A handler that passes the request to the mux again for another order takes the lock of that order, too.
func TestGuard_AnotherResource(t *testing.T) {
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
		t.Errorf("with order 43 taken: got %d", got.Code)
	}
}

// The guard recognizes a different request, however the handler creates it, although copies of a request share some parts.
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

// parts is a body whose type is not comparable.
type parts struct {
	io.ReadCloser
	read []string
}

// Observers get only one warning about a broken route.
func TestGuard_WarnsOnceOfABrokenRoute(t *testing.T) {
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
		t.Errorf("observers got the warnings %q", *seen)
	}
}

// A handler that serves the parts of a request one by one takes the lock of each part.
func TestGuard_PartsOfARequest(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(t *testing.T, r *http.Request) *http.Request{
		"header": func(t *testing.T, r *http.Request) *http.Request {
			t.Helper()
			p := httptest.NewRequest(http.MethodPost, "/orders", http.NoBody).WithContext(r.Context())
			p.Header.Set("X-Order", "42")
			return p
		},
		"query": func(t *testing.T, r *http.Request) *http.Request {
			t.Helper()
			p := httptest.NewRequest(http.MethodPost, "/orders?order=42", http.NoBody).WithContext(r.Context())
			p.Header = r.Header
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			err := b.guard.HandleFunc(b.mux, "POST /orders", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("all") != "" {
					b.mux.ServeHTTP(w, part(t, r))
					return
				}
				if httplock.Hold(r.Context()) == nil {
					t.Error("the part runs without its lock")
				}
				ok(w, r)
			}, ruleset.Rule{
				Key: `order:#{header["X-Order"] ?? query.order}`, When: `query.all == nil`, WaitTime: ruleset.NoWait,
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.do("POST", "/orders?all=1", nil); got.Code != http.StatusAccepted {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

// ServeMux serves HEAD with the handler of GET or with a handler for any method.
func TestGuard_HeadUnderTheRuleForGet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pattern string
		rules   []ruleset.Rule
		code    int
	}{
		"pattern of GET":            {"GET /orders/{id}", []ruleset.Rule{at("GET /orders/{id}")}, http.StatusConflict},
		"pattern without a method":  {"/orders/{id}", []ruleset.Rule{at("GET /orders/{id}")}, http.StatusConflict},
		"rule for every path below": {"/orders/{id}", []ruleset.Rule{{Endpoint: ruleset.HTTP("GET /orders/*"), Key: "order:42", WaitTime: ruleset.NoWait}}, http.StatusConflict},
		"rule for any method, too":  {"/orders/{id}", []ruleset.Rule{at("GET /orders/{id}"), {Endpoint: ruleset.HTTP("* /orders/{id}"), Key: "other"}}, http.StatusConflict},
		"rule for HEAD":             {"/orders/{id}", []ruleset.Rule{at("GET /orders/{id}"), {Endpoint: ruleset.HTTP("HEAD /orders/{id}"), None: true}}, http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, put := range map[string]func(b *bench) error{
				"Handle":     func(b *bench) error { return b.guard.HandleFunc(b.mux, tt.pattern, ok) },
				"Middleware": func(b *bench) error { b.mux.Handle(tt.pattern, b.guard.Middleware(http.HandlerFunc(ok))); return nil },
			} {
				b := newBench(t, httplock.WithRules(tt.rules...))
				if err := put(b); err != nil {
					t.Fatal(err)
				}
				if err := b.guard.Check(tt.pattern); err != nil {
					t.Fatal(err)
				}
				b.redis.Take("order:42", time.Hour)
				if got := b.do("HEAD", "/orders/42", nil); got.Code != tt.code {
					t.Errorf("%s: got %d, want %d", how, got.Code, tt.code)
				}
			}
		})
	}
}

// If a handler serves its request again with another method and the key contains the method, the second
// request takes another lock.
func TestGuard_AnotherMethod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "BREW" {
			r.Method = "POUR"
			b.mux.ServeHTTP(w, r)
			return
		}
		ok(w, r)
	}, byID(func(r *ruleset.Rule) { r.Key = "#{method}:#{path.id}" }))
	if err != nil {
		t.Fatal(err)
	}
	b.redis.Take("POUR:42", time.Hour)
	if got := b.do("BREW", "/orders/42", nil); got.Code != http.StatusConflict {
		t.Errorf("got %d", got.Code)
	}
}

// A client cannot choose its key by another method.
func TestGuard_VariableMethod(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/{id}"), Key: "#{method}:#{path.id}", WaitTime: ruleset.NoWait}))
	guarded := b.guard.Middleware(http.HandlerFunc(ok))
	b.mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		r.Method = "PUT"
		guarded.ServeHTTP(w, r)
	})
	b.redis.Take("POST:42", time.Hour)
	if got := b.do("POST", "/orders/42", nil); got.Code != http.StatusConflict {
		t.Errorf("got %d", got.Code)
	}
}

// preflight turns a request into a CORS preflight: a browser asks whether a page of another origin may send a POST.
func preflight(r *http.Request) {
	r.Header.Set("Origin", "https://shop.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
}

// A CORS preflight takes the lock only if a rule names OPTIONS.
func TestGuard_Preflight(t *testing.T) {
	t.Parallel()
	origin := func(r *http.Request) { r.Header.Set("Origin", "https://shop.example") }
	for _, tt := range []struct {
		pattern string
		in      string // the endpoint of the rule in a set, "" for a rule that is put on the pattern
		method  string
		change  func(*http.Request)
		code    int
	}{
		{"/orders/{id}", "", "OPTIONS", preflight, http.StatusAccepted},
		{"/orders/{id}", "* /orders/{id}", "OPTIONS", preflight, http.StatusAccepted},
		{"/orders/{id}", "* /orders/*", "OPTIONS", preflight, http.StatusAccepted},
		{"/orders/{id}", "*", "OPTIONS", preflight, http.StatusAccepted},
		{"OPTIONS /orders/{id}", "* /orders/{id}", "OPTIONS", preflight, http.StatusAccepted},
		{"/orders/{id}", "OPTIONS /orders/{id}", "OPTIONS", preflight, http.StatusConflict},
		{"/orders/{id}", "OPTIONS /orders/*", "OPTIONS", preflight, http.StatusConflict},
		{"OPTIONS /orders/{id}", "", "OPTIONS", preflight, http.StatusConflict},
		{"/orders/{id}", "", "OPTIONS", origin, http.StatusConflict},
		{"/orders/{id}", "", "POST", preflight, http.StatusConflict},
		{"/orders/{id}", "*", "POST", preflight, http.StatusConflict},
	} {
		t.Run(fmt.Sprint(tt.method, " of ", tt.pattern, " under ", tt.in), func(t *testing.T) {
			t.Parallel()
			rules := []ruleset.Rule{byID()}
			var opts []any
			if tt.in != "" {
				rules[0].Endpoint = ruleset.HTTP(tt.in)
				opts, rules = []any{httplock.WithRules(rules...)}, nil
			}
			b := newBench(t, opts...)
			if err := b.guard.HandleFunc(b.mux, tt.pattern, ok, rules...); err != nil {
				t.Fatal(err)
			}
			b.redis.Take("order:42", time.Hour)
			if got := b.do(tt.method, "/orders/42", nil, tt.change); got.Code != tt.code {
				t.Errorf("got %d, want %d", got.Code, tt.code)
			}
		})
	}
}

// A preflight begins no debounce window.
func TestGuard_PreflightBeginsNoWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "/orders/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, byID(setDebounce))
	if err != nil {
		t.Fatal(err)
	}
	b.wantWindow(t, http.MethodOptions, false, preflight)
	b.wantWindow(t, http.MethodOptions, true, preflight)
}
