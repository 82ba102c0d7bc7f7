package httplock_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// preflight makes a request a question of a browser: may a page of another origin send a POST?
func preflight(r *http.Request) {
	r.Header.Set("Origin", "https://shop.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
}

// A CORS preflight is not the operation: it takes the lock only where a rule names OPTIONS.
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

// With debounce its answer begins no window.
func TestGuard_PreflightBeforeADebouncedRequest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "/orders/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, byID(debounced))
	if err != nil {
		t.Fatal(err)
	}
	b.wantWindow(t, http.MethodOptions, false, preflight)
	b.wantWindow(t, http.MethodOptions, true, preflight)
}
