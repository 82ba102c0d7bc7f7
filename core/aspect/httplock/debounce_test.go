package httplock_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// setDebounce gives a rule a window that outlives the test.
func setDebounce(r *ruleset.Rule) { r.WaitTime, r.Debounce = 0, time.Hour }

// A window begins after a success. Only some statuses are a success.
func TestDebounce_Statuses(t *testing.T) {
	t.Parallel()
	for status, begins := range map[int]bool{
		http.StatusOK: true, http.StatusCreated: true, http.StatusAccepted: true, http.StatusNoContent: true, http.StatusPartialContent: true,
		http.StatusSeeOther:        true, // the answer to a form that was accepted
		http.StatusMultipleChoices: false, http.StatusMovedPermanently: false, http.StatusFound: false, http.StatusNotModified: false,
		http.StatusTemporaryRedirect: false, http.StatusPermanentRedirect: false, http.StatusBadRequest: false, http.StatusInternalServerError: false,
	} {
		for name, opts := range map[string][]any{"": nil, " buffered": {httplock.WithBuffer(1 << 10)}} {
			t.Run(fmt.Sprint(status, name), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, opts...)
				err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, byID(setDebounce))
				if err != nil {
					t.Fatal(err)
				}
				b.wantWindow(t, "POST", begins)
			})
		}
	}
}

// wantWindow sends a request and checks whether a window begins, in which the next request is refused.
func (b *bench) wantWindow(t *testing.T, method string, begins bool, change ...func(*http.Request)) {
	t.Helper()
	if got := b.do(method, "/orders/42", nil, change...); got.Code == http.StatusTooManyRequests {
		t.Fatalf("%s: got %d", method, got.Code)
	}
	if got := b.do("POST", "/orders/42", nil); (got.Code == http.StatusTooManyRequests) != begins {
		t.Errorf("POST after %s: got %d; want a window: %v", method, got.Code, begins)
	}
}

// A handler that succeeds may cancel the window.
func TestDebounce_Canceled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		aspect.CancelDebounce(r.Context())
		ok(w, r)
	}, byID(setDebounce))
	if err != nil {
		t.Fatal(err)
	}
	b.wantWindow(t, "POST", false)
}

// HEAD, OPTIONS and TRACE begin no window, unless a rule names the method.
func TestDebounce_HeadOptionsTrace(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodTrace} {
		for _, tt := range []struct {
			pattern string
			in      string // the endpoint of the rule in a set, "" for a rule that is put on the pattern
			begins  bool
		}{
			{"/orders/{id}", "", false},
			{"/orders/{id}", "* /orders/{id}", false},
			{"/orders/{id}", "* /orders/*", false},
			{"/orders/{id}", "*", false},
			{"/orders/{id}", method + " /orders/{id}", true},
			{"/orders/{id}", method + " /orders/*", true},
			{method + " /orders/{id}", "", true},
		} {
			t.Run(fmt.Sprint(method, " of ", tt.pattern, " under ", tt.in), func(t *testing.T) {
				t.Parallel()
				rules := []ruleset.Rule{byID(setDebounce)}
				var opts []any
				if tt.in != "" {
					rules[0].Endpoint = ruleset.HTTP(tt.in)
					post := byID(setDebounce)
					post.Endpoint = ruleset.HTTP("POST /orders/{id}")
					opts, rules = []any{httplock.WithRules(rules[0], post)}, nil
				}
				b := newBench(t, opts...)
				if err := b.guard.HandleFunc(b.mux, tt.pattern, ok, rules...); err != nil {
					t.Fatal(err)
				}
				if tt.pattern != "/orders/{id}" {
					if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok, byID(setDebounce)); err != nil {
						t.Fatal(err)
					}
				}
				b.wantWindow(t, method, tt.begins)
			})
		}
	}
}
