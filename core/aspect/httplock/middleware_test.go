package httplock_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A method that only a rule names has a route, too.
func TestMiddleware_MethodOfARule(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(byID(func(r *ruleset.Rule) { r.Endpoint = ruleset.HTTP("PROPFIND /orders/{id}") })))
	b.mux.Handle("/orders/{id}", b.guard.Middleware(http.HandlerFunc(ok)))
	if err := b.guard.Check("/orders/{id}"); err != nil {
		t.Error(err)
	}
	b.redis.Take("order:42", time.Hour)
	for method, code := range map[string]int{"PROPFIND": http.StatusConflict, "BREW": http.StatusAccepted} {
		if got := b.do(method, "/orders/42", nil); got.Code != code {
			t.Errorf("%s: got %d, want %d", method, got.Code, code)
		}
	}
}

func TestMiddleware_NoPattern(t *testing.T) {
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

// If a handler calls another handler with another path value, the inner guard takes the lock of the other
// resource.
func TestMiddleware_AnotherPathValue(t *testing.T) {
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

// A guard that runs before the router cannot determine the route, whatever layers are between the two.
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
			every := ruleset.Rule{Endpoint: ruleset.HTTP("* /*"), Key: "every:#{client_ip}"} // the route has an exact rule
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
				t.Errorf("observers got the warnings %q", *seen)
			}
		})
	}
}

// Without a rule there is nothing to lock, so the place of the guard does not matter.
func TestMiddleware_BeforeTheRouterWithoutRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mux.HandleFunc("POST /orders/{id}", ok)
	if got := serve(b.guard.Middleware(b.mux), "POST", "/orders/42"); got.Code != http.StatusAccepted {
		t.Errorf("got %d", got.Code)
	}
}

// If a router leaves the method out of its patterns, the method of the request may differ from the matched method, because
// a layer before the guard may have changed it.
func TestMiddleware_PatternWithoutMethod(t *testing.T) {
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
			orders := newSubrouter("/orders")
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
				t.Errorf("observers got the warnings %q, want %q", *seen, tt.warning)
			}
		})
	}
}
