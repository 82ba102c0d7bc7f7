package keyexpr_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/operator"
	"github.com/expr-lang/expr/vm"

	"github.com/interlock-go/interlock/keyexpr"
	"github.com/interlock-go/interlock/keyexpr/internal/alloctest"
)

// verdict is what becomes of a condition, and what the meter counted.
type verdict struct {
	work, bytes int
	refused     bool
}

func judge(tb testing.TB, c *keyexpr.Condition, env keyexpr.Env) verdict {
	tb.Helper()
	work, bytes, err := c.Spent(env)
	v := verdict{work: work, bytes: bytes}
	if err == nil {
		return v
	}
	switch reason := reasonOf(tb, err); reason {
	case keyexpr.ReasonTooCostly:
		v.refused = true
	case keyexpr.ReasonExpression: // such as an index out of range
	default:
		tb.Fatalf("%v: %v", c, err)
	}
	return v
}

// worstAccepted is the largest load of a request of a size that is accepted.
func worstAccepted(tb testing.TB, h *hostile, c *keyexpr.Condition, size int) (env hostileRequest, refused bool) {
	tb.Helper()
	if !judge(tb, c, h.env(size, size)).refused {
		return h.env(size, size), false
	}
	low, high := 0, size
	for high-low > max(high/200, 1) {
		if middle := (low + high) / 2; judge(tb, c, h.env(middle, size)).refused {
			high = middle
		} else {
			low = middle
		}
	}
	return h.env(low, size), true
}

// Whatever the values are: an expression spends no more than the budget of its
// request, allocates no more than that, and the same every time.
func TestBudget_HoldsForHostileValues(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	const slack = 128 << 10 // of the error, the machine and the test
	for i := range hostiles {
		h := &hostiles[i]
		c := h.condition(t)
		for _, size := range []int{34_000, 1 << 20} {
			for _, load := range []int{size / 20, size} {
				env := h.env(load, size)
				work, bytes := keyexpr.BudgetOf(size)
				first := judge(t, c, env)
				if !first.refused && (first.work > work || first.bytes > bytes) {
					t.Errorf("%s: %d of %d bytes are accepted and cost %+v, of %d, %d", h.name, load, size, first, work, bytes)
				}
				var second verdict
				if allocated := alloctest.Least(func() { second = judge(t, c, env) }); allocated > uint64(bytes+slack) {
					t.Errorf("%s: %d of %d bytes allocate %d, of %d", h.name, load, size, allocated, bytes)
				}
				if second.refused != first.refused || !first.refused && second != first { // where it is refused depends on the order of maps
					t.Errorf("%s: %d of %d bytes: first %+v, then %+v", h.name, load, size, first, second)
				}
			}
		}
	}
}

// The price covers what is allocated, so that the limit of bytes means bytes.
func TestBudget_CoversAllocations(t *testing.T) {
	for i := range hostiles {
		h := &hostiles[i]
		c := h.condition(t)
		env, _ := worstAccepted(t, h, c, 34_000)
		judged := judge(t, c, env)
		if allocated := alloctest.Least(func() { judge(t, c, env) }); allocated > uint64(judged.bytes+judged.bytes/4+8<<10) {
			t.Errorf("%s: allocates %d bytes, paid for %d", h.name, allocated, judged.bytes)
		}
	}
}

func TestBudget_IsTheSizeOfTheRequest(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `any(body.xs, {let x = #; any(body.ys, # == x)})`}).condition(t)
	pairs := func(n int) keyexpr.Values { return keyexpr.Values{slotBody: numbers(n * 10)} }
	tests := []struct {
		name    string
		env     keyexpr.Env
		refused bool
	}{
		{"100 by 100 in a small request", hostileRequest{pairs(100), 1000}, false},
		{"140 by 140 in a small request", hostileRequest{pairs(140), 1500}, true},
		{"140 by 140 of unknown size", pairs(140), false},
		{"1,000 by 1,000 of unknown size", pairs(1000), true},
		{"1,000 by 1,000 in 1 MiB", hostileRequest{pairs(1000), 1 << 20}, true},
		{"1,000 by 1,000 in 128 MiB", hostileRequest{pairs(1000), 128 << 20}, false},
		{"a size that is none", hostileRequest{pairs(140), -1 << 40}, true},
		{"a size that cannot be", hostileRequest{pairs(140), 1 << 62}, false},
	}
	for _, tt := range tests {
		if got := judge(t, c, tt.env).refused; got != tt.refused {
			t.Errorf("%s: refused is %v", tt.name, got)
		}
	}
}

// asking counts how often a request is asked for its size.
type asking struct {
	keyexpr.Values

	asked int
}

func (a *asking) Size() int { a.asked++; return 1000 }

func TestBudget_AsksForTheSizeOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `any(body.xs, {let x = #; any(body.ys, # == x)})`}).condition(t)
	for n, want := range map[int]int{100: 0, 1000: 1} {
		env := &asking{Values: keyexpr.Values{slotBody: numbers(n * 10)}}
		judge(t, c, env)
		if env.asked != want {
			t.Errorf("%d elements: asked %d times, want %d", n, env.asked, want)
		}
	}
}

// The failure names the expression, and nothing of the request.
func TestBudget_Failure(t *testing.T) {
	t.Parallel()
	template := compile(t, `order:#{join(body.ids, body.glue)}`)
	values := keyexpr.Values{slotBody: object{"ids": list(8000, 8, func(int) any { return "se" + "cret" }), "glue": strings.Repeat("secret", 10_000)}}
	_, err := template.Key(values)
	if got := reasonOf(t, err); got != keyexpr.ReasonTooCostly || got.String() != "too_costly" {
		t.Errorf("got reason %v", got)
	}
	if text := err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, `join(body.ids, body.glue) costs more`) ||
		!strings.Contains(text, "key order:#{") {
		t.Errorf("got %q", text)
	}
}

// No error of a function shows the value that it cannot take.
func TestBudget_ErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	values := keyexpr.Values{slotBody: object{"a": "secret", "xs": []any{"secret", 1}}}
	for _, expression := range []string{
		`float(body.a) > 1`, `int(body.a) > 1`, `len(sort(body.xs, body.a)) > 1`, `fromBase64(body.a + "!") == ""`, `upper(body.xs) == ""`,
		`join(body.xs) == ""`, `max(body.xs) == 1`, `len(keys(body.a)) > 1`, `body.a < 1`, `len(1..body.a) > 1`, `abs(body.a) > 1`, `body.a in body.a`,
		`len(sortBy(body.xs, #, body.a)) > 1`, `bitand(body.a, 1) > 1`, `body.xs contains body.a`, `any(body.a, true)`, `len(take(body.xs, body.a)) > 1`,
	} {
		c := (&hostile{expression: expression}).condition(t)
		if _, err := c.Eval(values); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

// An evaluation that was refused, or dear, leaves nothing to the next one.
func TestBudget_IsNewForEachRequest(t *testing.T) {
	t.Parallel()
	template := compile(t, `order:#{join(body.ids, "-")}`)
	dear := keyexpr.Values{slotBody: object{"ids": list(8000, 8, func(int) any { return strings.Repeat("x", 50_000) })}}
	cheap := keyexpr.Values{slotBody: object{"ids": []any{"a", "b"}}}
	for range 100 {
		if _, err := template.Key(dear); reasonOf(t, err) != keyexpr.ReasonTooCostly {
			t.Fatal(err)
		}
		if key, err := template.Key(cheap); err != nil || key != "order:a-b" {
			t.Fatalf("got %q, %v", key, err)
		}
	}
}

// The parts of a template share one budget, and long keys are part of it.
func TestBudget_OfATemplate(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	long := strings.Repeat("é", 300_000)
	tests := []struct {
		name, template string
		body           object
		refused        bool
	}{
		{"one long value", `k:#{body.a}`, object{"a": long[:100_000]}, false},
		{"parts", `k:#{lower(body.a)}:#{upper(body.a)}:#{lower(body.a)}:#{upper(body.a)}:#{lower(body.a)}`, object{"a": long[:100_000]}, true},
		{"a list beside a long value", `k:#{body.a}:#{body.ids[:]}`, object{"a": long[:100_000], "ids": list(800, 8, func(i int) any { return i })}, true},
		{"a long list of equals", `k:#{split(body.a, ",")}`, object{"a": strings.Repeat("x,", 300_000)}, true},
		{"one long integer", `k:#{body.a}`, object{"a": json.Number(strings.Repeat("7", 100_000))}, false},
		{"long integers", `k:#{body.a}:#{body.a}`, object{"a": json.Number(strings.Repeat("7", 200_000))}, true},
		{"a long integer for each element", `k:#{let x = body.a; map(body.ids, x)}`, object{"a": json.Number(strings.Repeat("7", 20_000)), "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"a long text for each element", `k:#{map(body.ids, body.none ?? body.a)}`, object{"a": long, "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"a rest of a long text for each element", `k:#{map(body.ids, body.a[#:])}`, object{"a": long, "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"long texts of lists", `k:#{flatten(map(body.ids, [body.a, body.a]))}`, object{"a": long, "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"long texts of two lists", `k:#{concat(map(body.ids, body.a), map(body.ids, body.a))}`, object{"a": long, "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"a list of percent signs", `k:#{body.ids[:]}`, object{"ids": list(600_000, 6000, func(i int) any { return itoa(i) + strings.Repeat("%", 6000) })}, true},
		{"a name of new objects", `k:#{map(body.ids, string(len({(body.a): "x"})))}`, object{"a": long, "ids": list(8000, 8, func(i int) any { return i })}, true},
		{"a list of long texts", `k:#{body.ids[:]}`, object{"ids": list(800, 8, func(i int) any { return long[2*i:] })}, true},
	}
	for _, tt := range tests {
		template := compile(t, tt.template)
		env := hostileRequest{keyexpr.Values{slotBody: tt.body}, 600_000}
		var err error
		if allocated := alloctest.Least(func() { _, err = template.Keys(env) }); allocated > 4<<20 {
			t.Errorf("%s: allocates %d bytes", tt.name, allocated)
		}
		if tt.refused && reasonOf(t, err) != keyexpr.ReasonTooCostly || !tt.refused && err != nil {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
}

// A text is paid for by its length before it is looked at: where that is too much already,
// it makes no difference what the text is.
func TestBudget_LooksAtWhatIsPaid(t *testing.T) {
	t.Parallel()
	const size = 3_000_000
	ids := list(8000, 8, func(i int) any { return i })
	ascii := hostileRequest{keyexpr.Values{slotBody: object{"a": strings.Repeat("x", size), "ids": ids}}, 0}
	others := hostileRequest{keyexpr.Values{slotBody: object{"a": strings.Repeat("é", size/2), "ids": ids}}, 0}
	spenders := map[string]interface {
		Spent(env keyexpr.Env) (work, bytes int, err error)
	}{"the elements of a list": compile(t, `k:#{map(body.ids, body.none ?? body.a)}`), "a part beside a list": compile(t, `k:#{body.a}:#{body.ids[:]}`)}
	for _, expression := range []string{`upper(body.a) == "x"`, `lower(body.a) == "x"`, `trim(body.a) == "x"`, `trim("x", body.a) == "x"`} {
		spenders[expression] = (&hostile{expression: expression}).condition(t)
	}
	for name, s := range spenders {
		work, bytes, err := s.Spent(ascii)
		if reasonOf(t, err) != keyexpr.ReasonTooCostly || work > 20*size {
			t.Errorf("%s: costs %d, %v", name, work, err)
		}
		otherWork, otherBytes, err := s.Spent(others)
		if reasonOf(t, err) != keyexpr.ReasonTooCostly || work != otherWork || bytes != otherBytes {
			t.Errorf("%s: ASCII costs %d and %d bytes, other characters %d and %d, %v", name, work, bytes, otherWork, otherBytes, err)
		}
	}
}

// uniq of what a client sends takes time in proportion to it.
func TestBudget_UniqIsLinear(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `len(uniq(split(body.a, ","))) == 0`}).condition(t)
	one, four := judge(t, c, hostileRequest{keyexpr.Values{slotBody: csv(5000)}, 1 << 20}), judge(t, c, hostileRequest{keyexpr.Values{slotBody: csv(20_000)}, 1 << 20})
	if one.refused || four.refused || four.work > 5*one.work {
		t.Errorf("5 kB cost %+v, 20 kB %+v", one, four)
	}
}

// Texts beside numbers and bools that read like them are not compared by ==, and one
// for uniq.
func TestBudget_UniqIsTheLanguages(t *testing.T) {
	t.Parallel()
	values := []any{1, "one", 1.0, true, "yes", nil, "a", "a", 1.5, 1.5, 0, false, []any{1, 2}, []any{1, 2}, object{"a": 1}, object{"a": 1}, object{"a": 2}, 1, nil, math.Copysign(0, -1), "", "é"}
	env := keyexpr.Values{slotBody: object{"xs": values}}
	kept := 0
	for i := range values { // as the language does it: each against those that it kept
		first := true
		for j := range i {
			c := (&hostile{expression: `body.xs[` + itoa(i) + `] == body.xs[` + itoa(j) + `]`}).condition(t)
			same, err := c.Eval(env)
			if err != nil {
				t.Fatal(err)
			}
			first = first && !same
		}
		if first {
			kept++
		}
	}
	c := (&hostile{expression: `len(uniq(body.xs)) == ` + itoa(kept)}).condition(t)
	if ok, err := c.Eval(env); err != nil || !ok {
		t.Errorf("uniq does not keep %d of %d values: %v", kept, len(values), err)
	}
}

// constantBuiltins take the same time for any operands.
var constantBuiltins = map[string]bool{
	"abs": true, "ceil": true, "floor": true, "round": true, "first": true, "last": true, "take": true,
	"bitand": true, "bitor": true, "bitxor": true, "bitnand": true, "bitshl": true, "bitshr": true, "bitushr": true, "bitnot": true,
}

// constantOperators likewise; matches has a price of its own for each pattern.
var constantOperators = map[string]bool{
	"and": true, "&&": true, "or": true, "||": true, "not": true, "!": true, "??": true, "matches": true,
	"-": true, "*": true, "/": true, "%": true, "**": true, "^": true,
}

// Every builtin, operator and operation of the language has a price or is off. A
// version of the language that brings a new one fails here.
func TestBudget_KnowsTheLanguage(t *testing.T) {
	t.Parallel()
	metered, loops, constant := keyexpr.Metered(), keyexpr.Loops(), constantBuiltins
	off := keyexpr.OffBuiltins()
	for _, f := range builtin.Builtins {
		classes := 0
		for _, is := range []bool{metered[f.Name], loops[f.Name], constant[f.Name], off[f.Name] != ""} {
			if is {
				classes++
			}
		}
		if classes != 1 {
			t.Errorf("the builtin %s is in %d of metered, loops, constant and off", f.Name, classes)
		}
	}
	for _, table := range []map[string]operator.Operator{operator.Binary, operator.Unary} {
		for name := range table {
			if name != "|" && !constantOperators[name] && !metered[name] { // | calls what is right of it
				t.Errorf("the operator %s has no price", name)
			}
		}
	}
	// Operations that code for keys never has: what takes their place is metered.
	unpaid := []vm.Opcode{
		vm.OpInvalid, vm.OpLoadField, vm.OpLoadMethod, vm.OpLoadEnv, vm.OpFetch, vm.OpFetchField, vm.OpMethod, vm.OpIn, vm.OpRange,
		vm.OpMatches, vm.OpMatchesConst, vm.OpContains, vm.OpCall, vm.OpCall0, vm.OpCallFast, vm.OpCallSafe, vm.OpCallTyped,
		vm.OpCast, vm.OpGroupBy, vm.OpProfileStart, vm.OpProfileEnd,
	}
	known := keyexpr.PaidOpcodes()
	for _, op := range unpaid {
		if known[byte(op)] {
			t.Errorf("the operation %d is paid and unpaid", op)
		}
		known[byte(op)] = true
	}
	for op := vm.OpInvalid; op <= vm.OpEnd; op++ {
		if !known[byte(op)] {
			t.Errorf("the operation %d of the machine is not known", op)
		}
	}
	if len(known) != int(vm.OpEnd)+1 {
		t.Errorf("%d operations are known, the machine has %d", len(known), vm.OpEnd+1)
	}
}

// Every name with a price has a hostile sample.
func TestBudget_HasSamples(t *testing.T) {
	t.Parallel()
	sampled := map[string]bool{}
	for i := range hostiles {
		sampled[strings.Fields(hostiles[i].name)[0]] = true
	}
	for _, names := range []map[string]bool{keyexpr.Metered(), keyexpr.Loops()} {
		for name := range names {
			if !sampled[name] {
				t.Errorf("%s has no hostile sample", name)
			}
		}
	}
}

// A pattern that a request brings could cost any time.
func TestBudget_PatternsAreLiteral(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{
		`body.a matches body.b`, `"x" matches path.orderId`, `body.a matches "^" + body.b`, `let p = "x"; body.a matches p`,
	} {
		_, err := keyexpr.CompileCondition(expression, requestSchema(t))
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || !strings.Contains(problem.Message, "must be a literal text") || !strings.Contains(problem.Suggestion, ` matches "`) {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

type typed struct {
	IDs    []int
	Labels map[string]string
	Grid   [][]int
	Any    any
}

// What is converted of Go values is what an expression uses.
func TestBudget_ConvertsWhatIsUsed(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	schema, err := keyexpr.Argument(reflect.TypeFor[*typed]())
	if err != nil {
		t.Fatal(err)
	}
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
		{`#{in.Labels[string(in.IDs[400000]) ?? "x"] ?? in.Labels["k" + string(in.IDs[400000])]}`, "v", 0},
		{`#{"k7" in in.Labels ? 1 : 2}`, "1", 0},
		{`#{in.Grid[800][800]}`, "8", 0},
		{`#{in.Any.id}`, "7", 0},
		{`#{len(in.IDs)}`, "", keyexpr.ReasonTooMany},
		{`#{len(in.Grid)}`, "", keyexpr.ReasonTooMany},
		{`#{len(in.Any.xs)}`, "", keyexpr.ReasonTooMany},
		{`#{keys(in.Labels)}`, "", keyexpr.ReasonExpression},
		{`#{in.Labels == in.Labels ? 1 : 2}`, "", keyexpr.ReasonExpression},
	}
	for _, tt := range tests {
		template := compileFor(t, tt.template, schema)
		var keys []string
		if allocated := alloctest.Least(func() { keys, err = template.Keys(keyexpr.Values{large}) }); allocated > 1<<20 {
			t.Errorf("%s: allocates %d bytes", tt.template, allocated)
		}
		if tt.reason != 0 && reasonOf(t, err) != tt.reason || tt.reason == 0 && (err != nil || keys[0] != tt.key) {
			t.Errorf("%s: got %q, %v", tt.template, keys, err)
		}
	}
}

// A long integer of a Go value is read each time that it is converted.
func TestBudget_OfLongIntegersInGoValues(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	schema, err := keyexpr.Argument(reflect.TypeFor[*typed]())
	if err != nil {
		t.Fatal(err)
	}
	template := compileFor(t, `#{len(map(1..1000, in.Any.xs))}`, schema)
	digits := json.Number(strings.Repeat("7", 100_000))
	env := keyexpr.Values{&typed{Any: object{"xs": []any{digits}}}}
	allocated := alloctest.Least(func() { _, err = template.Key(env) })
	if reasonOf(t, err) != keyexpr.ReasonTooCostly || allocated > 4<<20 {
		t.Errorf("allocates %d bytes: %v", allocated, err)
	}
}
