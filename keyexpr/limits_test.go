package keyexpr_test

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// isRefused reports whether a condition refuses the values of a request because of a limit.
func isRefused(tb testing.TB, c *keyexpr.Condition, env keyexpr.Env) (refused bool) {
	tb.Helper()
	_, err := c.Eval(env)
	if err == nil {
		return false
	}
	switch reason := reasonOf(tb, err); reason {
	case keyexpr.ReasonTooLong, keyexpr.ReasonTooMany:
		return true
	case keyexpr.ReasonExpression: // for example a text that reads like a number
	default:
		tb.Fatalf("%v: %v", c, err)
	}
	return false
}

// worstAccepted returns the Env of the largest request of up to size bytes that the condition accepts.
func worstAccepted(tb testing.TB, h *hostileCase, c *keyexpr.Condition, size int) (env keyexpr.Values, refused bool) {
	tb.Helper()
	if !isRefused(tb, c, h.env(size)) {
		return h.env(size), false
	}
	low, high := 0, size
	for high-low > max(high/200, 1) {
		if middle := (low + high) / 2; isRefused(tb, c, h.env(middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return h.env(low), true
}

// An expression allocates little for all values, accepted or refused, and has the same result each time.
func TestLimits_HostileValues(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	const most = 2 << 20
	for i := range hostileCases {
		h := &hostileCases[i]
		c := h.condition(t)
		for _, size := range []int{34_000, 1 << 20} {
			worst, _ := worstAccepted(t, h, c, size)
			for _, env := range []keyexpr.Values{worst, h.env(size / 20), h.env(size)} {
				first := isRefused(t, c, env)
				second := first
				if allocated := leastAllocated(func() { second = isRefused(t, c, env) }); allocated > most {
					t.Errorf("%s: a request of %d bytes allocates %d", h.name, size, allocated)
				}
				if second != first {
					t.Errorf("%s: a request of %d bytes is refused: %v, then %v", h.name, size, first, second)
				}
			}
		}
	}
}

// Ordinary requests never reach the limits, whatever a client can make long in them.
func TestLimits_AcceptOrdinaryRequests(t *testing.T) {
	t.Parallel()
	for i := range hostileCases {
		h := &hostileCases[i]
		if isRefused(t, h.condition(t), h.env(250)) {
			t.Errorf("%s: a request of 250 bytes is refused", h.name)
		}
	}
}

// If a request is refused, every larger one is refused, too.
func TestLimits_RefuseLargerRequests(t *testing.T) {
	t.Parallel()
	for i := range hostileCases {
		h := &hostileCases[i]
		c := h.condition(t)
		refusedAt := 0
		for _, load := range []int{1000, 4000, 16_000, 64_000, 256_000} {
			refused := isRefused(t, c, h.env(load))
			if refused && refusedAt == 0 {
				refusedAt = load
			}
			if !refused && refusedAt > 0 {
				t.Errorf("%s: refused at %d bytes, accepted at %d", h.name, refusedAt, load)
			}
		}
	}
}

// Every function has a hostile sample.
func TestLimits_EveryFunctionHasSample(t *testing.T) {
	t.Parallel()
	sampled := map[string]bool{}
	for i := range hostileCases {
		sampled[strings.Fields(hostileCases[i].name)[0]] = true
	}
	for name := range languageFunctions {
		if !sampled[name] {
			t.Errorf("%s has no hostile sample", name)
		}
	}
}

// The limits have the documented values.
func TestLimits_MatchDocumentation(t *testing.T) {
	t.Parallel()
	repeated := func(n int, element string) string { return "[" + strings.Repeat(element+",", n-1) + element + "]" }
	for _, tt := range []struct {
		expression, body string
		reason           keyexpr.Reason // 0: the request is accepted
	}{
		{`body.a`, `{"a": "` + strings.Repeat("x", 4096) + `"}`, 0},
		{`body.a`, `{"a": "` + strings.Repeat("x", 4097) + `"}`, keyexpr.ReasonTooLong},
		{`body.none ?? body.a`, `{"a": "` + strings.Repeat("x", 4097) + `"}`, keyexpr.ReasonTooLong},
		{`lower(body.a)`, `{"a": "` + strings.Repeat("X", 4096) + `"}`, 0},
		{`lower(body.a)`, `{"a": "` + strings.Repeat("X", 4097) + `"}`, keyexpr.ReasonTooLong},
		{`body.a + body.a`, `{"a": "` + strings.Repeat("x", 2048) + `"}`, 0},
		{`body.a + body.a`, `{"a": "` + strings.Repeat("x", 2049) + `"}`, keyexpr.ReasonTooLong},
		{`body.a == "" ? 1 : 2`, `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, 0},
		{`body.a != nil`, `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, 0},
		{`body.a[:3]`, `{"a": "` + strings.Repeat("x", 1<<20) + `"}`, 0},
		{`len(body.xs)`, `{"xs": ` + repeated(1000, "1") + `}`, 0},
		{`len(body.xs)`, `{"xs": ` + repeated(1001, "1") + `}`, keyexpr.ReasonTooMany},
		{`len(split(body.a, ","))`, `{"a": "` + strings.Repeat(",", 999) + `"}`, 0},
		{`len(split(body.a, ","))`, `{"a": "` + strings.Repeat(",", 1000) + `"}`, keyexpr.ReasonTooMany},
		{`any(body.xs, # in body.ys)`, `{"xs": ` + repeated(100, "1") + `, "ys": ` + repeated(100, "2") + `}`, 0},
		{`any(body.xs, # in body.ys)`, `{"xs": ` + repeated(150, "1") + `, "ys": ` + repeated(150, "2") + `}`, keyexpr.ReasonTooLong},
		{`any(body.xs, lower(#) == "")`, `{"xs": ` + repeated(1000, `"`+strings.Repeat("x", 100)+`"`) + `}`, 0},
		{`any(body.xs, lower(#) == "")`, `{"xs": ` + repeated(1000, `"`+strings.Repeat("x", 300)+`"`) + `}`, keyexpr.ReasonTooLong},
	} {
		_, err := compile(t, `k:#{`+tt.expression+`}`).Keys(body(tt.body).env(t))
		if tt.reason == 0 && err != nil || tt.reason != 0 && (err == nil || reasonOf(t, err) != tt.reason) {
			t.Errorf("%s of %.60s…: got %v, want reason %v", tt.expression, tt.body, err, tt.reason)
		}
	}
}

// The message names the expression and shows no value.
func TestLimits_Message(t *testing.T) {
	t.Parallel()
	template := compile(t, `order:#{map(body.ids, # + body.glue)}`)
	_, err := template.Key(keyexpr.Values{slotBody: object{"ids": list(8000, 8, func(int) any { return "secret" }), "glue": strings.Repeat("secret", 500)}})
	if got := reasonOf(t, err); got != keyexpr.ReasonTooLong {
		t.Errorf("got reason %v", got)
	}
	want := "keyexpr: key order:#{map(body.ids, # + body.glue)}: map(body.ids, # + body.glue) computes with more than 256 KiB of text"
	if err.Error() != want {
		t.Errorf("got %q", err)
	}
}

// A refused evaluation does not reduce the limits of the next one.
func TestLimits_ResetForEachRequest(t *testing.T) {
	t.Parallel()
	template := compile(t, `order:#{map(body.ids, # + "-")}`)
	long := keyexpr.Values{slotBody: object{"ids": list(8000, 8, func(int) any { return strings.Repeat("x", 4000) })}}
	short := keyexpr.Values{slotBody: object{"ids": []any{"a"}}}
	for range 100 {
		if _, err := template.Key(long); reasonOf(t, err) != keyexpr.ReasonTooLong {
			t.Fatal(err)
		}
		if key, err := template.Key(short); err != nil || key != "order:a-" {
			t.Fatalf("got %q, %v", key, err)
		}
	}
}

// The parts of a template share the limits. Long keys count towards them, too.
func TestLimits_PartsShareRoom(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	long := strings.Repeat("é", 2000)
	ids := func(element func(i int) any) []any { return list(8000, 8, element) }
	number := func(i int) any { return i }
	tests := []struct {
		name, template string
		body           object
		refused        bool
	}{
		{"one long value", `k:#{body.a}`, object{"a": long}, false},
		{"a longer one", `k:#{body.a}`, object{"a": long + long}, true},
		{"parts", `k:#{lower(body.a)}:#{upper(body.a)}:#{lower(body.a)}:#{upper(body.a)}:#{lower(body.a)}`, object{"a": long}, false},
		{"a list beside long values", `k:#{body.a}:#{body.ids[:]}`, object{"a": long, "ids": ids(func(i int) any { return i % 90 })}, true},
		{"a list beside a value", `k:#{body.a}:#{body.ids[:]}`, object{"a": long[:1000], "ids": ids(func(i int) any { return i % 90 })}, false},
		{"a list of equals", `k:#{split(body.a, ",")}`, object{"a": strings.Repeat("x,", 999) + "x"}, false},
		{"one long integer", `k:#{body.a}`, object{"a": json.Number(strings.Repeat("7", 4000))}, false},
		{"a longer integer", `k:#{body.a}`, object{"a": json.Number(strings.Repeat("7", 200_000))}, true},
		{"a long integer for each element", `k:#{map(body.ids, body.a)}`, object{"a": json.Number(strings.Repeat("7", 4000)), "ids": ids(number)}, true},
		{"a long text for each element", `k:#{map(body.ids, body.none ?? body.a)}`, object{"a": long, "ids": ids(number)}, true},
		{"a list of percent signs", `k:#{body.ids[:]}`, object{"ids": list(600_000, 6000, func(i int) any { return itoa(i) + strings.Repeat("%", 3000) })}, true},
		{"a list of long texts", `k:#{body.ids[:]}`, object{"ids": ids(func(i int) any { return long[2*i:] })}, true},
	}
	for _, tt := range tests {
		template := compile(t, tt.template)
		var err error
		if allocated := leastAllocated(func() { _, err = template.Keys(keyexpr.Values{slotBody: tt.body}) }); allocated > 2<<20 {
			t.Errorf("%s: allocates %d bytes", tt.name, allocated)
		}
		if tt.refused && reasonOf(t, err) != keyexpr.ReasonTooLong || !tt.refused && err != nil {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

type typed struct {
	IDs    []int
	Labels map[string]string
	Grid   [][]int
	Any    any
}

// An expression converts only the Go values that it uses.
func TestLimits_ConvertsOnlyUsedValues(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	schema := argumentSchema[*typed](t)
	large := &typed{IDs: make([]int, 500_000), Labels: map[string]string{}, Grid: make([][]int, 900), Any: object{"xs": make([]any, 500_000), "id": 7}}
	large.IDs[400_000] = 4
	for i := range 50_000 {
		large.Labels["k"+itoa(i)] = "v"
	}
	for i := range large.Grid {
		large.Grid[i] = make([]int, 900)
	}
	large.Grid[800][800] = 8
	tests := []struct {
		template, key string
		reason        keyexpr.Reason
	}{
		{`#{in.IDs[400000]}`, "4", 0},
		{`#{in.Labels.k49999}`, "v", 0},
		{`#{"k7" in in.Labels ? 1 : 2}`, "1", 0},
		{`#{in.Grid[800][800]}`, "8", 0},
		{`#{in.Any.id}`, "7", 0},
		{`#{len(in.IDs)}`, "", keyexpr.ReasonTooMany},
		{`#{len(in.Grid)}`, "900", 0},
		{`#{len(in.Any.xs)}`, "", keyexpr.ReasonTooMany},
		{`#{keys(in.Labels)}`, "", keyexpr.ReasonTooMany},
		{`#{len(in.Labels)}`, "", keyexpr.ReasonTooMany},
		{`#{map(in.IDs[:3], in.Grid[800][800])}`, "", keyexpr.ReasonTooMany},
		{`#{in.Grid == in.Grid ? 1 : 2}`, "", keyexpr.ReasonTooLong},
		{`#{len(filter(in.Grid, #[800] == 8))}`, "", keyexpr.ReasonTooLong},
	}
	for _, tt := range tests {
		template := compileFor(t, tt.template, schema)
		var keys []string
		var err error
		if allocated := leastAllocated(func() { keys, err = template.Keys(keyexpr.Values{large}) }); allocated > 1<<20 {
			t.Errorf("%s: allocates %d bytes", tt.template, allocated)
		}
		if tt.reason != 0 && reasonOf(t, err) != tt.reason || tt.reason == 0 && (err != nil || keys[0] != tt.key) {
			t.Errorf("%s: got %q, %v", tt.template, keys, err)
		}
	}
}

// A conversion counts each time that an expression uses the value.
func TestLimits_RepeatedConversions(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	schema := argumentSchema[*typed](t, keyexpr.Variable{Name: "xs", Type: keyexpr.ListType(keyexpr.TypeFor[int]())})
	labels := map[string]string{}
	for i := range 900 {
		labels["k"+itoa(i)] = "v"
	}
	in := &typed{IDs: make([]int, 900), Labels: labels, Any: object{"digits": json.Number(strings.Repeat("7", 100_000)), "xs": make([]any, 900)}}
	for _, expression := range []string{`len(in.IDs)`, `keys(in.Labels)[0]`, `len(in.Any.xs)`, `(in.Any.digits ?? 1) == nil ? 1 : 2`} {
		template := compileFor(t, `#{map(xs, `+expression+`)}`, schema)
		var err error
		allocated := leastAllocated(func() { _, err = template.Key(keyexpr.Values{in, list(1000, 1, func(i int) any { return i })}) })
		if reasonOf(t, err) != keyexpr.ReasonTooLong || allocated > 4<<20 {
			t.Errorf("%s: allocates %d bytes: %v", expression, allocated, err)
		}
	}
}

// leastAllocated calls f five times and returns the fewest bytes that the process allocated during
// a call, because a garbage collection and other goroutines only add bytes.
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

// A long value of a request is refused in any part.
func TestLimits_LongValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	env := request{path: entries{"orderId": {long}}, query: entries{"id": {long, long}}}.env(t)
	for _, template := range []string{`#{path.orderId}`, `#{query.id[0]}`, `#{query.id[:]}`, `#{path.orderId ?? "x"}`, `#{[path.orderId]}`} {
		if _, err := compile(t, template).Keys(env); reasonOf(t, err) != keyexpr.ReasonTooLong {
			t.Errorf("%s: got %v", template, err)
		}
	}
}
