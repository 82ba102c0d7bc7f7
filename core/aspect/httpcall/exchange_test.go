package httpcall_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/internal/preview"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// router is the Router of a request with a path parameter id.
type router struct{ ran int }

func (*router) PathValue(string) string     { return "42" }
func (*router) Route() string               { return "/orders/{id}" }
func (*router) ClientIP() string            { return "192.0.2.1" }
func (*router) Registered(int) (any, error) { return nil, nil }
func (*router) Abandoned() bool             { return false }

func (r *router) Run(context.Context, httpcall.Handlers) httpcall.RunResult {
	r.ran++
	return httpcall.RunResult{Writer: httpcall.WriterOf(httptest.NewRecorder())}
}

// entryOf compiles a rule for POST /orders/{id}.
func entryOf(t *testing.T, rule ruleset.Rule) *httpcall.Entry {
	t.Helper()
	locks, err := core.New(redistest.New(t).Client())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	a, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpcall.NewConfig()
	entry := aspect.NewRegistry(a, aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(e ruleset.Endpoint) ruleset.Endpoint { return e },
		Compile: func(_ *ruleset.Set, e ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
			return cfg.Compile(a, httpcall.Route{Endpoint: e, Params: []string{"id"}}, rules)
		},
	}).Compile(ruleset.HTTP("POST /orders/{id}"), rule)
	if entry.Err != nil {
		t.Fatal(entry.Err)
	}
	return entry
}

// A preview shows the locks of a request. Serve runs no handler, and Abort keeps the adapter from running one.
func TestServe_Preview(t *testing.T) {
	t.Parallel()
	entry := entryOf(t, ruleset.Rule{Key: "order:#{path.id}"})
	var names []string
	ctx := context.WithValue(t.Context(), preview.Key{}, func(_ aspect.Site, _ []*ruleset.Resolved, p *aspect.Preview, env keyexpr.Env) {
		names, _ = p.Names(0, env)
	})
	r := &router{}
	result := httpcall.Serve(&httpcall.Call{
		Entry: entry, Request: httptest.NewRequest(http.MethodPost, "/orders/42", http.NoBody).WithContext(ctx),
		Writer: httpcall.WriterOf(httptest.NewRecorder()), Router: r,
	})
	if len(names) != 1 || names[0] != "order:42" {
		t.Errorf("the preview shows %q", names)
	}
	if result.Unguarded || !result.Abort || r.ran != 0 {
		t.Errorf("got %+v, handlers ran %d times", result, r.ran)
	}
}

func TestServe_Result(t *testing.T) {
	t.Parallel()
	entry := entryOf(t, ruleset.Rule{Key: "order:#{path.id}"})
	r := &router{}
	result := httpcall.Serve(&httpcall.Call{
		Entry: entry, Request: httptest.NewRequest(http.MethodPost, "/orders/42", http.NoBody),
		Writer: httpcall.WriterOf(httptest.NewRecorder()), Router: r,
	})
	if result.Unguarded || result.Abort || result.Refusal != nil || r.ran != 1 {
		t.Errorf("got %+v, handlers ran %d times", result, r.ran)
	}
}
