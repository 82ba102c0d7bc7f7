package httplock_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

func at(pattern string) ruleset.Rule {
	return byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP(pattern) })
}

// below is a router below a prefix. Like chi's it registers what is behind the prefix, and
// writes the whole path into the pattern of a request, without the method.
type below struct {
	prefix   string
	handlers map[string]http.Handler // by method
	path     string                  // registered, behind the prefix
}

func (b *below) Handle(pattern string, handler http.Handler) {
	method, path, _ := strings.Cut(pattern, " ")
	b.handlers[method], b.path = handler, path
}

func (b *below) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.SetPathValue("id", strings.TrimPrefix(r.URL.Path, b.prefix+"/"))
	r.Pattern = b.prefix + b.path
	b.handlers[r.Method].ServeHTTP(w, r)
}

func newBelow(prefix string) *below {
	return &below{prefix: prefix, handlers: map[string]http.Handler{}}
}

// silent is a router of one handler that does not set the pattern of a request.
type silent struct{ http.Handler }

func (s *silent) Handle(_ string, handler http.Handler) { s.Handler = handler }

// serve serves a request to a handler that is not a mux.
func serve(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, http.NoBody))
	return w
}

// A handler on a subrouter is registered with a part of its route. Under that part it would
// run without the rule of its route, and under the rules of every other subrouter.
func TestHandle_OnASubrouter(t *testing.T) {
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
			orders := newBelow("/orders")
			if err := b.guard.HandleFunc(orders, "POST /{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }, tt.code...); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := serve(orders, "POST", "/orders/42"); got.Code != http.StatusInternalServerError {
					t.Errorf("got %d", got.Code)
				}
			}
			if len(*seen) != 1 || !strings.Contains((*seen)[0], `registered "POST /{id}"`) || !strings.Contains((*seen)[0], `matched "/orders/{id}"`) || !strings.Contains((*seen)[0], "Middleware") {
				t.Errorf("observers were warned of %q", *seen)
			}
			if err := b.guard.Check("POST /orders/{id}"); (err == nil) != (tt.file == nil) {
				t.Errorf("Check: got %v", err)
			}
		})
	}
}

// A router that does not say which pattern it has matched may be below another one.
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

// ServeMux serves HEAD with the handler of GET, and so does a handler without a method.
func TestGuard_HeadIsUnderTheRuleForGet(t *testing.T) {
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

// Before its router a guard cannot know a route, whatever is between the two.
func TestMiddleware_BeforeTheRouter(t *testing.T) {
	t.Parallel()
	copied := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(r.Context())) })
	}
	for name, around := range map[string]func(guard func(http.Handler) http.Handler, mux http.Handler) http.Handler{
		"around the mux":               func(guard func(http.Handler) http.Handler, mux http.Handler) http.Handler { return guard(mux) },
		"around a copy of the request": func(guard func(http.Handler) http.Handler, mux http.Handler) http.Handler { return guard(copied(mux)) },
		"within another mux": func(guard func(http.Handler) http.Handler, mux http.Handler) http.Handler {
			return muxOf(guard(copied(mux)))
		},
		"around StripPrefix": func(guard func(http.Handler) http.Handler, mux http.Handler) http.Handler {
			outer := http.NewServeMux()
			outer.Handle("/orders/", guard(http.StripPrefix("", copied(mux))))
			return outer
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			every := ruleset.Rule{Endpoint: ruleset.HTTP("* /*"), Key: "every:#{method}"} // the route has its own rule
			b := newBench(t, core.WithObserver(seen.observer()), httplock.WithRules(at("POST /orders/{id}"), every, ruleset.Rule{Endpoint: ruleset.HTTP("GET /orders/{id}"), None: true}))
			b.mux.HandleFunc("POST /orders/{id}", func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") })
			shop := around(b.guard.Middleware, b.mux)
			if err := b.guard.Check("POST /orders/{id}", "GET /orders/{id}", "POST /carts"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := serve(shop, "POST", "/orders/42"); got.Code != http.StatusInternalServerError {
					t.Errorf("got %d", got.Code)
				}
			}
			if len(*seen) != 1 || !strings.Contains((*seen)[0], "Middleware") || !strings.Contains((*seen)[0], "router") {
				t.Errorf("observers were warned of %q", *seen)
			}
		})
	}
}

// Without a rule there is nothing to lock, wherever the guard is.
func TestMiddleware_BeforeTheRouterWithoutRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mux.HandleFunc("POST /orders/{id}", ok)
	if got := serve(b.guard.Middleware(b.mux), "POST", "/orders/42"); got.Code != http.StatusAccepted {
		t.Errorf("got %d", got.Code)
	}
}

// Of a router that leaves the method out of its patterns, the method of the request is not
// what it has matched: a layer before the guard may have changed it.
func TestMiddleware_PatternWithoutTheMethodThatWasMatched(t *testing.T) {
	t.Parallel()
	override := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Method = "PUT"
			next.ServeHTTP(w, r)
		})
	}
	named := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Pattern = r.Method + " " + r.Pattern
			next.ServeHTTP(w, r)
		})
	}
	post, put := at("POST /orders/{id}"), byID(func(r *ruleset.Rule) { r.Endpoint, r.Key = ruleset.HTTP("PUT /orders/{id}"), "put:#{path.id}" })
	for name, tt := range map[string]struct {
		rules    []ruleset.Rule
		patterns []string
		layers   []func(http.Handler) http.Handler // before the guard, from the outside
		code     int
		warning  string
	}{
		"one method":                 {[]ruleset.Rule{post}, []string{"POST /orders/{id}"}, []func(http.Handler) http.Handler{override}, http.StatusConflict, ""},
		"several methods":            {[]ruleset.Rule{post, put}, []string{"POST /orders/{id}", "PUT /orders/{id}"}, []func(http.Handler) http.Handler{override}, 500, `"POST /orders/{id}"`},
		"several, one with a rule":   {[]ruleset.Rule{post}, []string{"POST /orders/{id}", "PUT /orders/{id}"}, []func(http.Handler) http.Handler{override}, 500, "POST, PUT"},
		"several, and it is named":   {[]ruleset.Rule{post, put}, []string{"POST /orders/{id}", "PUT /orders/{id}"}, []func(http.Handler) http.Handler{named, override}, http.StatusConflict, ""},
		"several under one rule":     {[]ruleset.Rule{at("* /orders/{id}")}, []string{"POST /orders/{id}", "PUT /orders/{id}"}, []func(http.Handler) http.Handler{override}, http.StatusConflict, ""},
		"several without a rule":     {[]ruleset.Rule{at("POST /other/{id}")}, []string{"POST /orders/{id}", "PUT /orders/{id}", "POST /other/{id}"}, []func(http.Handler) http.Handler{override}, http.StatusAccepted, ""},
		"a pattern that has none":    {[]ruleset.Rule{put}, []string{"/orders/{id}"}, nil, http.StatusAccepted, ""},
		"a pattern that Check lacks": {[]ruleset.Rule{at("* /orders/{id}")}, nil, nil, 500, `"/orders/{id}"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			b := newBench(t, httplock.WithRules(tt.rules...), core.WithObserver(seen.observer()))
			handler := b.guard.Middleware(http.HandlerFunc(ok))
			for i := range tt.layers {
				handler = tt.layers[len(tt.layers)-1-i](handler)
			}
			orders := newBelow("/orders")
			orders.Handle("POST /{id}", handler)
			if tt.patterns != nil {
				if err := b.guard.Check(tt.patterns...); err != nil {
					t.Fatal(err)
				}
			}
			b.redis.Take("order:42", time.Hour)
			for range 2 {
				if got := serve(orders, "POST", "/orders/42"); got.Code != tt.code {
					t.Errorf("got %d, want %d", got.Code, tt.code)
				}
			}
			if (len(*seen) == 1) != (tt.warning != "") || tt.warning != "" && !strings.Contains((*seen)[0], tt.warning) {
				t.Errorf("observers were warned of %q, want %q", *seen, tt.warning)
			}
		})
	}
}

// A handler that serves its request again with another method, through its mux, is for
// another resource where the key is over the method.
func TestGuard_AnotherMethodIsAnotherRequest(t *testing.T) {
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

// Patterns that are given to Check have to be guarded by Middleware, or registered by Handle.
func TestCheck_RuleOfARouteThatNothingGuards(t *testing.T) {
	t.Parallel()
	const pattern = "POST /orders/{id}"
	for name, tt := range map[string]struct {
		rule ruleset.Rule
		do   func(b *bench)
		want bool
	}{
		"neither":                   {at(pattern), func(*bench) {}, true},
		"neither, below a wildcard": {ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/*"), Key: "orders:#{method}"}, func(*bench) {}, true},
		"Middleware":                {at(pattern), func(b *bench) { b.mux.Handle(pattern, b.guard.Middleware(http.HandlerFunc(ok))) }, false},
		"Handle":                    {at(pattern), func(b *bench) { _ = b.guard.HandleFunc(b.mux, pattern, ok) }, false},
		"Handle without a method":   {at(pattern), func(b *bench) { _ = b.guard.HandleFunc(b.mux, "/orders/{id}", ok) }, false},
		"Handle of another":         {at(pattern), func(b *bench) { _ = b.guard.HandleFunc(b.mux, "PUT /orders/{id}", ok) }, true},
		"no rule":                   {ruleset.Rule{Endpoint: ruleset.HTTP(pattern), None: true}, func(*bench) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, httplock.WithRules(tt.rule))
			tt.do(b)
			err := b.guard.Check(pattern)
			if (err != nil) != tt.want || err != nil && (!strings.Contains(err.Error(), pattern) || !strings.Contains(err.Error(), "Middleware") || !strings.Contains(err.Error(), "Handle")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A client does not choose its key by another method.
func TestGuard_VariableMethodIsThatOfTheRoute(t *testing.T) {
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
