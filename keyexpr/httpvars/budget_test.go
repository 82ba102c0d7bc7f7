package httpvars_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/httpvars"
	"github.com/interlock-go/interlock/keyexpr/internal/alloctest"
)

func get(tb testing.TB, query url.Values) *http.Request {
	tb.Helper()
	return httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/?"+query.Encode(), nil)
}

// What one request with a query of 34 kB can make an expression do.
func TestRequest_Budget(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	var ids strings.Builder
	for i := range 3_000 {
		ids.WriteString(strconv.Itoa(i) + ",")
	}
	long := strings.Repeat("a", 17_000)
	tests := []struct {
		template string
		query    url.Values
		want     keyexpr.Reason
	}{
		{`k:#{uniq(split(query.ids, ","))}`, url.Values{"ids": {ids.String()}}, keyexpr.ReasonTooMany},
		{`k:#{uniq(split(query.ids, ",")) == reverse(uniq(split(query.ids, ","))) ? 1 : 2}`, url.Values{"ids": {ids.String() + ids.String()}}, keyexpr.ReasonTooCostly},
		{`k:#{replace(query.a, "", query.b)}`, url.Values{"a": {long}, "b": {long}}, keyexpr.ReasonTooCostly},
		{`k:#{join(split(query.a, ""), query.b)}`, url.Values{"a": {long}, "b": {long}}, keyexpr.ReasonTooCostly},
		{`k:#{query.a matches "(a|b|ab|ba){1,50}x{1,50}$" ? 1 : 2}`, url.Values{"a": {long}}, keyexpr.ReasonTooCostly},
		{`k:#{any(split(query.a, ""), {let x = #; any(split(query.a, ""), # != x)}) ? 1 : 2}`, url.Values{"a": {long}}, keyexpr.ReasonTooCostly},
	}
	v := variables(t, httpvars.Config{})
	for _, tt := range tests {
		template := compile(t, v, tt.template)
		q := v.Request(get(t, tt.query), &host{})
		if _, err := template.Keys(q); err == nil { // parses the query
			t.Errorf("%s: no error", tt.template)
		}
		var err error
		if allocated := alloctest.Least(func() { _, err = template.Keys(q) }); allocated > 4<<20 {
			t.Errorf("%s: allocates %d bytes", tt.template, allocated)
		}
		wantReason(t, err, tt.want)
	}
}

// The size is what was received and read.
func TestRequest_Size(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := post(t, "application/json", `{"id": 1}`)
	r.Header = http.Header{"A": {"bc", "d"}}
	r.Host, r.URL = "host", &url.URL{Path: "/xy", RawQuery: "a=1"}
	q := v.Request(r, &host{})
	const line = len("POST") + len("host") + len("/xy") + len("a=1") + len("Abc") + len("Ad")
	if got := q.Size(); got != line {
		t.Errorf("got %d before the body is read, want %d", got, line)
	}
	if err := q.Buffer(); err != nil {
		t.Fatal(err)
	}
	if got, want := q.Size(), line+len(`{"id": 1}`); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if got := v.Request(&http.Request{}, &host{}).Size(); got != 0 {
		t.Errorf("an empty request has %d bytes", got)
	}
}

// However often cookies are asked for, the header is read twice at most.
func TestRequest_CookiesAreReadOnce(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	v := variables(t, httpvars.Config{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`["c1","c2","no"`+strings.Repeat(`,"no"`, 900)+`]`))
	r.Header.Set("Content-Type", "application/json")
	for i := range 1000 {
		r.AddCookie(&http.Cookie{Name: "c" + strconv.Itoa(i), Value: strconv.Itoa(i)})
	}
	r.AddCookie(&http.Cookie{Name: "c1", Value: "again"})
	condition, err := keyexpr.CompileCondition(`cookie.c0 == "0" and one(body, (cookie[#] ?? "") == "2")`, v.Schema())
	if err != nil {
		t.Fatal(err)
	}
	allocated := alloctest.Least(func() { _, err = condition.Eval(v.Request(r, &host{})) })
	if failure, ok := errors.AsType[*keyexpr.EvalError](err); !ok || failure.Reason != keyexpr.ReasonRepeated {
		t.Errorf("got %v, want c1 to be repeated", err)
	}
	r.Header.Set("Cookie", strings.TrimSuffix(r.Header.Get("Cookie"), "; c1=again"))
	var isOne bool
	allocated += alloctest.Least(func() { isOne, err = condition.Eval(v.Request(r, &host{})) })
	if err != nil || !isOne {
		t.Errorf("got %v, %v", isOne, err)
	}
	if allocated > 4<<20 {
		t.Errorf("allocates %d bytes", allocated)
	}
}
