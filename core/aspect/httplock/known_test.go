package httplock_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A client cannot choose a method under which the handler runs without the rule that is
// put on it.
func TestHandle_NoMethodGoesPastTheRule(t *testing.T) {
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

// A method that only a rule names is that of a route, too.
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

// A method that a rule file names is under the rules of its pattern, too, before and after Check.
func TestHandle_MethodOfARuleIsUnderThoseOfItsPattern(t *testing.T) {
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

// A pattern with that method is another handler, with rules of its own.
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

// Rules that are put on a route that is known already, be it of another host or mux, or
// after Check and the first requests, are in force with the others.
func TestHandle_RulesOfAKnownRoute(t *testing.T) {
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
			if err := b.guard.Check(pattern); err != nil {
				t.Error(err)
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

// A handler that has each part of a request served by itself takes the lock of each.
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
