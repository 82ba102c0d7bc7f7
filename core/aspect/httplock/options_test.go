package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestNew_EveryBadOption(t *testing.T) {
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
		"client is nil", "nil Option", "WithSet: given twice", "together with WithSet", "WithRules: the rule of grpc /shop.v1.Orders/Pay is not for an HTTP route", "WithRules: the rule of grpc /shop.v1.Orders/Pay is not for an HTTP route", "WithErrorWriter", `WithFallback("")`, `WithVariable("a")`,
		`WithVariable: keyexpr: the variable "path" is built in: choose another name`, `WithBody: route "orders"`, "WithMaxBody(0)", "WithClientIP", "WithBuffer(0)", `"twice"): given twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
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

func TestWithProfile(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithProfile("skipping", ruleset.Rule{OnBusy: failpolicy.Skip}))
	for pattern, rule := range map[string]ruleset.Rule{
		"POST /skips/{id}":   byID(func(r *ruleset.Rule) { r.Profile = "skipping" }),
		"POST /refuses/{id}": byID(),
	} {
		if err := b.guard.HandleFunc(b.mux, pattern, ok, rule); err != nil {
			t.Fatal(err)
		}
	}
	b.redis.Take("order:42", time.Hour)
	for target, code := range map[string]int{"/skips/42": http.StatusNoContent, "/refuses/42": http.StatusConflict} {
		if got := b.do(http.MethodPost, target, http.NoBody).Code; got != code {
			t.Errorf("%s: got %d, want %d", target, got, code)
		}
	}
	err := b.guard.HandleFunc(b.mux, "POST /unknown/{id}", ok, byID(func(r *ruleset.Rule) { r.Profile = "skiping" }))
	if err == nil || !strings.Contains(err.Error(), `write "skipping"`) {
		t.Errorf("unknown profile: got %v, want a suggestion", err)
	}
}
