package httplock_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Every pattern that is passed to Check must be guarded by Middleware or registered by Handle.
func TestCheck_UnguardedRoute(t *testing.T) {
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

// A rule whose wildcards have other names than the pattern matches nothing.
func TestCheck_NamesOfWildcards(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithRules(ruleset.Rule{Endpoint: ruleset.HTTP("POST /orders/{order}"), Key: "order:#{path.order}"}))
	if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", ok); err != nil {
		t.Fatal(err)
	}
	if err := b.guard.Check(); err == nil || !strings.Contains(err.Error(), `did you mean "POST /orders/{id}"?`) {
		t.Errorf("got %v", err)
	}
}

// The message about a rule in a file uses the field names of files.
func TestCheck_OnLostFailNeedsABuffer(t *testing.T) {
	t.Parallel()
	set, err := ruleset.Load("locks.yaml", []byte("rules:\n  - http: POST /orders/*\n    key: \"order:#{path.id}\"\n    on_lost: fail\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, httplock.WithSet(set))
	err = b.guard.Check("POST /orders/{id}")
	if want := `locks.yaml:4:14: rule of http POST /orders/*: on_lost: the route has no buffer`; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "or write on_lost: cancel") {
		t.Errorf("got %v, want %s in it", err, want)
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
