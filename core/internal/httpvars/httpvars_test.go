package httpvars_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// host is the part of a request that a router supplies.
type host struct {
	path       map[string]string
	registered []any
	err        error
	calls      int
}

func (h *host) PathValue(name string) string { return h.path[name] }

func (h *host) Route() string { return "/orders/:id" }

func (h *host) ClientIP() string { return "192.0.2.1" }

func (h *host) Registered(i int) (any, error) {
	h.calls++
	if i >= len(h.registered) {
		return nil, h.err
	}
	return h.registered[i], h.err
}

func variables(tb testing.TB, c httpvars.Config) *httpvars.Variables {
	tb.Helper()
	v, err := httpvars.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func compile(tb testing.TB, v *httpvars.Variables, template string) *keyexpr.Template {
	tb.Helper()
	t, err := keyexpr.Compile(template, v.Schema())
	if err != nil {
		tb.Fatalf("Compile(%q): %v", template, err)
	}
	return t
}

func compileCondition(tb testing.TB, v *httpvars.Variables, expression string) *keyexpr.Condition {
	tb.Helper()
	c, err := keyexpr.CompileCondition(expression, v.Schema())
	if err != nil {
		tb.Fatalf("CompileCondition(%q): %v", expression, err)
	}
	return c
}

func wantReason(tb testing.TB, err error, want keyexpr.Reason) {
	tb.Helper()
	failure, ok := errors.AsType[*keyexpr.EvalError](err)
	if !ok || failure.Reason != want {
		tb.Errorf("got %v, want reason %v", err, want)
	}
}

func TestRequest_Key(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{PathParams: []string{"id"}, Registered: []keyexpr.Variable{
		{Name: "principal"}, {Name: "tenant", Type: keyexpr.TypeFor[tenant]()},
	}})
	tests := []struct {
		template string
		want     []string
	}{
		{`#{path.id}`, []string{"a b"}},
		{`#{route}`, []string{"/orders/%3Aid"}},
		{`#{client_ip}`, []string{"192.0.2.1"}},
		{`#{principal}`, []string{"bob"}},
		{`#{tenant.ID}`, []string{"5"}},
		{`#{body.id}:#{body.id}`, []string{"9007199254740993:9007199254740993"}},
		{`#{map(body.items, .sku)}`, []string{"a", "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			t.Parallel()
			r := post(t, "application/json; charset=utf-8", `{"id": 9007199254740993, "items": [{"sku": "b"}, {"sku": "a"}]}`)
			q := v.Request(r, &host{path: map[string]string{"id": "a b"}, registered: []any{"bob", tenant{5}}})
			got, err := compile(t, v, tt.template).Keys(q)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

type tenant struct{ ID int }

// Every variable is computed once for each request, however many expressions read it.
func TestRequest_ComputesVariablesOnce(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{Registered: []keyexpr.Variable{{Name: "principal"}}})
	h := &host{registered: []any{"bob"}}
	body := &countingBody{Reader: strings.NewReader(`{"id": 1}`)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.Header.Set("Content-Type", "application/json")
	q := v.Request(r, h)
	condition := compileCondition(t, v, `body.id == 1 and principal == "bob"`)
	if ok, err := condition.Eval(q); !ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	for range 2 {
		if key, err := compile(t, v, `#{principal}:#{body.id}:#{principal}`).Key(q); err != nil || key != "bob:1:bob" {
			t.Fatalf("got %q, %v", key, err)
		}
	}
	if h.calls != 1 || body.ends != 1 {
		t.Errorf("principal computed %d times, body read to its end %d times, want once", h.calls, body.ends)
	}
}

// A body that no expression uses is not read.
func TestRequest_UnusedBodyNotRead(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{PathParams: []string{"id"}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", failingBody{})
	original := r.Body
	if _, err := compile(t, v, `#{path.id}`).Key(v.Request(r, &host{path: map[string]string{"id": "1"}})); err != nil {
		t.Fatal(err)
	}
	if r.Body != original {
		t.Error("the body was replaced")
	}
}

func TestNew_Errors(t *testing.T) {
	t.Parallel()
	_, err := httpvars.New(httpvars.Config{Body: reflect.TypeFor[func()](), Registered: []keyexpr.Variable{{Name: "x", Type: keyexpr.TypeFor[chan int]()}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"func()", `"x"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %s", err, want)
		}
	}
	for _, name := range []string{"path", "client_ip", "let", "a-b", ""} {
		if _, err := httpvars.New(httpvars.Config{Registered: []keyexpr.Variable{{Name: name}}}); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
}

func TestCompile_AnyPathParam(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{AnyPathParam: true})
	for _, template := range []string{"#{path.id}", `#{path["order-id"]}`} {
		if compiled, err := keyexpr.Compile(template, v.Schema()); err != nil || !compiled.Uses("path") {
			t.Errorf("%s: got %v, want a template that uses path", template, err)
		}
	}
}

func TestCompile_PathParams(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{PathParams: []string{"orderId"}})
	_, err := keyexpr.Compile(`#{path.orderID}`, v.Schema())
	problem, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || problem.Suggestion != "path.orderId" {
		t.Errorf("got %v, want the suggestion path.orderId", err)
	}
}

func TestRequest_CookieValue(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Cookie", "cart=%31%32")
	raw := variables(t, httpvars.Config{})
	decoded := variables(t, httpvars.Config{CookieValue: func(raw string) string { return strings.ReplaceAll(raw, "%3", "") }})
	for v, want := range map[*httpvars.Variables]string{raw: "%2531%2532", decoded: "12"} {
		if got, err := compile(t, v, `#{cookie.cart}`).Key(v.Request(r, &host{})); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// NetHTTP has no registered variables.
func TestNetHTTP_HasNoRegisteredVariables(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{Registered: []keyexpr.Variable{{Name: "who"}}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	_, err := compile(t, v, `#{who}`).Key(v.Request(r, httpvars.NetHTTP(r)))
	wantReason(t, err, keyexpr.ReasonUnset)
}
