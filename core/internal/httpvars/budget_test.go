package httpvars_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

func get(tb testing.TB, query url.Values) *http.Request {
	tb.Helper()
	return httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/?"+query.Encode(), nil)
}

// The cost of expressions over a request with a query of 34 kB is bounded.
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
		{`k:#{split(query.ids, ",")}`, url.Values{"ids": {ids.String()}}, keyexpr.ReasonTooLong},
		{`k:#{query.ids[:]}`, url.Values{"ids": strings.Split(ids.String(), ",")}, keyexpr.ReasonTooMany},
		{`k:#{query.a}`, url.Values{"a": {long}}, keyexpr.ReasonTooLong},
		{`k:#{query.a + query.b}`, url.Values{"a": {long[:4000]}, "b": {long[:4000]}}, keyexpr.ReasonTooLong},
		{`k:#{any(query.ids[:], upper(query.a) == #) ? 1 : 2}`, url.Values{"ids": strings.Split(ids.String(), ",")[:900], "a": {long[:4000]}}, keyexpr.ReasonTooLong},
		{`k:#{any(query.ids[:], # in query.ids[:]) ? 1 : 2}`, url.Values{"ids": strings.Split(ids.String(), ",")[:900]}, 0},
		{`k:#{any(query.ids[:], # in query.a[:]) ? 1 : 2}`, url.Values{"ids": strings.Split(ids.String(), ",")[:900], "a": strings.Split(ids.String(), ",")[1000:1900]}, keyexpr.ReasonTooLong},
	}
	v := variables(t, httpvars.Config{})
	for _, tt := range tests {
		template := compile(t, v, tt.template)
		q := v.Request(get(t, tt.query), &host{})
		_, err := template.Keys(q) // parses the query
		if allocated := leastAllocated(func() { _, err = template.Keys(q) }); allocated > 4<<20 {
			t.Errorf("%s: allocates %d bytes", tt.template, allocated)
		}
		if tt.want == 0 && err == nil {
			continue
		}
		wantReason(t, err, tt.want)
	}
}

// The header is parsed once, however often expressions read cookies.
func TestRequest_ParsesCookiesOnce(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	v := variables(t, httpvars.Config{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`["1"`+strings.Repeat(`,"no"`, 900)+`]`))
	r.Header.Set("Content-Type", "application/json")
	for i := range 1000 {
		r.AddCookie(&http.Cookie{Name: "c" + strconv.Itoa(i), Value: strconv.Itoa(i)})
	}
	condition := compileCondition(t, v, `cookie.c0 == "0" and any(body, # == cookie.c2 or # == cookie.none)`)
	var found bool
	var err error
	allocated := leastAllocated(func() { found, err = condition.Eval(v.Request(r, &host{})) })
	if err != nil || found {
		t.Errorf("got %v, %v", found, err)
	}
	if allocated > 2<<20 {
		t.Errorf("allocates %d bytes", allocated)
	}
}

// leastAllocated calls f five times and returns the fewest bytes that the process allocated during
// a call: a garbage collection and other goroutines only add to them.
func leastAllocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
