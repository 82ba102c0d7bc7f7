package keyexpr_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/keyexpr"
)

// failingRequests contains templates and requests that yield no key. Each message shows an operator the part
// that failed and, if helpful, what to write.
var failingRequests = []struct {
	template string
	request  request
}{
	// missing
	{`o:#{path.orderId}`, request{}},
	{`o:#{query.id}`, request{}},
	{`o:#{header["X-Id"]}`, request{}},
	{`o:#{body}`, request{}},
	{`o:#{body.id}`, request{}},
	{`o:#{body.id}`, body(`{"id": null}`)},
	{`o:#{body.a.b.c}`, body(`{"a": {}}`)},
	{`o:#{body["strange name"].x}`, body(`{}`)},
	{`o:#{body.a[2]}`, body(`{"a": [1]}`)},
	{`o:#{query.id[1]}`, request{query: entries{"id": {"a"}}}},
	{`o:#{query.id[:]}`, request{}},
	{`o:#{map(body.items, .sku)}`, body(`{}`)},
	{`o:#{map(body.items, .sku)}`, body(`{"items": [{"sku": "a"}, {}]}`)},
	{`o:#{body.id == 1 ? "a" : "b"}`, body(`{}`)},
	{`o:#{"x-" + body.id}`, body(`{}`)},
	{`o:#{string(body.id)}`, body(`{}`)},
	{`o:#{body.ids[:]}`, body(`{"ids": ["a", null]}`)},
	{`o:#{body.ids[:]}`, body(`{}`)},
	{`o:#{body.a?.b}`, body(`{}`)},
	{`#{"o:" + string(body.id)}`, body(`{"id": null}`)},
	{`o:#{query.a == "x" ? "y" : "z"}`, request{}},
	// empty
	{`o:#{path.orderId}`, path("")},
	{`o:#{body.id}`, body(`{"id": ""}`)},
	{`#{"o:" + path.orderId}`, path("")},
	{`o:#{query.id ?? "none"}`, request{query: entries{"id": {""}}}},
	{`#{"o:" + (query.id ?? "")}`, request{}},
	{`o:#{trim(path.orderId)}`, path(" ")},
	{`o:#{"x-" + trim(path.orderId)}`, path(" ")},
	{`o:#{body.ids[:]}`, body(`{"ids": []}`)},
	{`o:#{body.ids[:]}`, body(`{"ids": ["a", ""]}`)},
	// of the wrong type
	{`o:#{body.id}`, body(`{"id": 1.5}`)},
	{`o:#{body.id}`, body(`{"id": 1e3}`)},
	{`o:#{body.id}`, body(`{"id": {}}`)},
	{`o:#{body.ids[:]}`, body(`{"ids": [{}]}`)},
	{`o:#{body.id}`, body(`{"id": [1]}`)},
	{`o:#{body.id[:]}`, body(`{"id": "a"}`)},
	{`o:#{body.id.x}`, body(`{"id": "a"}`)},
	{`o:#{body.id[0]}`, body(`{"id": "a"}`)},
	{`o:#{body.x}`, body(`[1]`)},
	{`o:#{body[0]}`, body(`{"a": 1}`)},
	{`o:#{map(body.items, .sku)}`, body(`{"items": {"sku": 1}}`)},
	{`o:#{body.ids[:]}`, body(`{"ids": [1.5]}`)},
	{`o:#{body.ids[:]}`, body(`{"ids": [[1]]}`)},
	// repeated, too many
	{`o:#{query.id}`, request{query: entries{"id": {"a", "b"}}}},
	{`o:#{header["X-Id"]}`, request{header: entries{"X-Id": {"a", "b"}}}},
	{`o:#{query.id ?? "x"}`, request{query: entries{"id": {"a", "b"}}}},
	{`o:#{lower(query.id)}`, request{query: entries{"id": {"a", "b"}}}},
	{`o:#{body.ids[:]}`, body(`{"ids": [` + strings.Repeat("1,", 1000) + `1]}`)},
	{`o:#{len(body.ids)}`, body(`{"ids": [` + strings.Repeat("1,", 1000) + `1]}`)},
	// expressions
	{`o:#{body.a + body.b}`, body(`{"a": 1, "b": "x"}`)},
	{`o:#{body.a + 1}`, body(`{"a": 18446744073709551615}`)},
	{`o:#{body.a - 1}`, body(`{"a": "x"}`)},
	{`o:#{1 % body.a}`, body(`{"a": 0}`)},
	{`o:#{body.a > 1 ? 1 : 2}`, body(`{"a": "x"}`)},
	{`o:#{body.a and body.a}`, body(`{"a": "x"}`)},
	{`o:#{not body.a}`, body(`{"a": "x"}`)},
	{`o:#{lower(body.a)}`, body(`{"a": 1}`)},
	{`o:#{int(body.a)}`, body(`{"a": "x"}`)},
	{`o:#{int(body.a)}`, body(`{"a": 1.5}`)},
	{`o:#{string(body.a)}`, body(`{"a": {}}`)},
	{`o:#{string(body.a)}`, body(`{"a": 1.5}`)},
	{`o:#{keys(body.a)}`, body(`{"a": 1}`)},
	{`o:#{"a" in body.a ? 1 : 2}`, body(`{"a": 1}`)},
	{`o:#{body.a in body.b ? 1 : 2}`, body(`{"a": 1, "b": {}}`)},
	{`o:#{body.a == "1" ? 1 : 2}`, body(`{"a": 1}`)},
	{`o:#{filter(body.a, #)}`, body(`{"a": [1]}`)},
	{`o:#{body.a[1:0]}`, body(`{"a": "x"}`)},
	{`o:#{body.a[1:4]}`, body(`{"a": 7}`)},
	// beyond the limits
	{`o:#{body.a}`, body(`{"a": "` + strings.Repeat("x", 5000) + `"}`)},
	{`o:#{lower(body.a)}`, body(`{"a": "` + strings.Repeat("x", 5000) + `"}`)},
	{`o:#{any(body.a, # in body.b) ? 1 : 2}`, body(`{"a": [` + strings.Repeat("1,", 999) + `1], "b": [` + strings.Repeat("2,", 999) + `2]}`)},
	// faults of the application
	{`o:#{principal}`, request{}},
	{`o:#{principal}`, request{principal: ""}},
	{`o:#{principal ?? "none"}`, request{}},
}

func TestEvalError_Messages(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, tt := range failingRequests {
		keys, err := compile(t, tt.template).Keys(tt.request.env(t))
		failure, ok := errors.AsType[*keyexpr.EvalError](err)
		if !ok {
			t.Errorf("%s of %.60s: got %q, %v", tt.template, tt.request.body, keys, err)
			continue
		}
		if failure.Template != tt.template || strings.Contains(err.Error(), "$") {
			t.Errorf("%s: got %v, which contains another template or an internal name", tt.template, err)
		}
		b.WriteString("=== " + tt.template + " " + abbreviate(tt.request.body) + "\n" + failure.Reason.String() + ": " + err.Error() + "\n")
	}
	golden.Assert(t, b.String(), "requests.golden")
}

func abbreviate(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// An error is written to logs, which must not contain the values that a client sent.
func TestEvalError_ShowsNoValue(t *testing.T) {
	t.Parallel()
	const secret = "5ecret"
	requests := []request{
		body(`{"a": "` + secret + `", "b": "` + secret + `", "i": "` + secret + `", "id": "` + secret + `", "ids": ["` + secret + `", null], "items": "` + secret + `", "name": "` + secret + `", "x": "` + secret + `"}`),
		body(`{"a": ["` + secret + `"], "b": {"` + secret + `": 1}, "i": "` + secret + `", "id": {"` + secret + `": "` + secret + `"}, "ids": {"` + secret + `": 1}, "items": [{"` + secret + `": 1}]}`),
		{path: entries{"orderId": {secret, secret}}, query: entries{"id": {secret, secret}}, header: entries{"X-Id": {secret, secret}}},
	}
	for _, tt := range failingRequests {
		for _, r := range requests {
			if _, err := compile(t, tt.template).Keys(r.env(t)); err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s shows a value of the request: %v", tt.template, err)
			}
		}
	}
}

// brokenEnv is an Env whose methods fail.
type brokenEnv struct{ err error }

func (b brokenEnv) Value(int) (any, error) { return nil, b.err }

func (b brokenEnv) Items(int, string) ([]string, error) { return nil, b.err }

func TestEvalError_FromEnv(t *testing.T) {
	t.Parallel()
	cause := errors.New("the store is down")
	known := &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: "needs a body of JSON", Err: cause}
	named := &keyexpr.EvalError{Reason: keyexpr.ReasonTooLarge, Subject: "the upload", Detail: "is too large"}
	tests := []struct {
		template, want string
		err            error
		reason         keyexpr.Reason
	}{
		{`#{path.orderId}`, "keyexpr: key #{path.orderId}: path.orderId cannot be computed: the store is down", cause, keyexpr.ReasonInternal},
		{`#{query.id[:]}`, "keyexpr: key #{query.id[:]}: query.id[:] cannot be computed: the store is down", cause, keyexpr.ReasonInternal},
		{`#{query.id ?? "x"}`, `keyexpr: key #{query.id ?? "x"}: query.id cannot be computed: the store is down`, cause, keyexpr.ReasonInternal},
		{`#{body.id}`, "keyexpr: key #{body.id}: body.id needs a body of JSON: the store is down", known, keyexpr.ReasonBadBody},
		{`#{lower(body.id)}`, "keyexpr: key #{lower(body.id)}: body.id needs a body of JSON: the store is down", known, keyexpr.ReasonBadBody},
		{`#{map(body.ids, .x)}`, "keyexpr: key #{map(body.ids, .x)}: body.ids needs a body of JSON: the store is down", known, keyexpr.ReasonBadBody},
		{`#{body.id}`, "keyexpr: key #{body.id}: the upload is too large", named, keyexpr.ReasonTooLarge},
		{`#{method}`, "keyexpr: key #{method}: method cannot be computed: the store is down", cause, keyexpr.ReasonInternal},
		{`#{principal}`, "keyexpr: key #{principal}: principal cannot be computed: the store is down", cause, keyexpr.ReasonInternal},
	}
	for _, tt := range tests {
		_, err := compile(t, tt.template).Keys(brokenEnv{tt.err})
		if err == nil || err.Error() != tt.want || reasonOf(t, err) != tt.reason {
			t.Errorf("%s: got %v, want %s", tt.template, err, tt.want)
		}
		if !errors.Is(tt.err, named) && !errors.Is(err, cause) {
			t.Errorf("%s: %v does not wrap its cause", tt.template, err)
		}
	}
	if known.Subject != "" || known.Template != "" {
		t.Errorf("the error of the Env was changed: %+v", known)
	}
}

func TestReason_String(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for r := keyexpr.ReasonMissing; r <= keyexpr.ReasonInternal; r++ {
		name := r.String()
		if name == "unknown" || name == "" || seen[name] || strings.ToLower(name) != name || strings.Contains(name, " ") {
			t.Errorf("reason %d is called %q", r, name)
		}
		seen[name] = true
	}
	for _, r := range []keyexpr.Reason{0, keyexpr.ReasonInternal + 1, 255} {
		if got := r.String(); got != "unknown" {
			t.Errorf("reason %d is called %q, want unknown", r, got)
		}
	}
}

// operands contains a value of each type that an expression can read, all with the same digits.
func operands() []any {
	return []any{
		"4111-1111", 41111111, -41111111, 4111.1111, uint64(11111111111111111111), json.Number("41111111111111111111111"),
		[]any{"4111-1111", 41111111},
		object{"card": "4111-1111"},
		true, 0,
	}
}

// operations returns the operators and functions of the language with operands A and B, in all notations.
func operations() []string {
	forms := []string{
		"-A", "not A", "A and B", "A or B", "A ? 1 : 2", "A + B", "A - B", "A * B", "A / B", "A % B", "A in B", "A not in B", "A == B", "A != B",
		"A < B", "A <= B", "A > B", "A >= B", "A[0]", "A.x", "A[1:4]", "A[-1:]", "A[:]", "[A, B][1]", `split(A, ",")`,
		"map(A, #[2:])", "map(A, # + B)", "filter(A, B)", "any(A, B)", "all(A, # < B)",
	}
	for _, name := range slices.Sorted(maps.Keys(languageFunctions)) {
		forms = append(forms, name+"(A)", name+"([A])", name+"(A + B)", name+"(A[:2])")
	}
	return forms
}

// The error of any operation explains the failure and shows no value.
func TestEvalError_ShowsNoValueOfAllTypes(t *testing.T) {
	t.Parallel()
	failures := 0
	for _, form := range operations() {
		c, err := keyexpr.Compile(`#{len([`+strings.NewReplacer("A", "body.a", "B", "body.b").Replace(form)+`])}`, requestSchema(t))
		if err != nil {
			continue // a function may have too few arguments
		}
		for _, a := range operands() {
			for _, b := range operands() {
				_, err := c.Key(keyexpr.Values{slotBody: object{"a": a, "b": b}})
				if err == nil {
					continue
				}
				failures++
				if strings.Contains(err.Error(), "1111") || strings.HasSuffix(err.Error(), "these values") {
					t.Errorf("%s of %v and %v: %v", form, a, b, err)
				}
			}
		}
	}
	if failures < 4000 {
		t.Errorf("only %d failures were seen", failures)
	}
}

// Failures name types in the words of the package comment.
func TestEvalError_NamesTypesInWords(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[*typed](t, keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()})
	sent, err := keyexpr.DecodeJSON([]byte(`{"a": {"x": 1}, "s": "x", "xs": [1], "n": 7, "t": true}`))
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		`body.a + 1`:            "+ cannot take an object and an integer",
		`-body.a`:               "- cannot take an object",
		`body.a < 1`:            "an object and an integer have no order",
		`body.xs - 1`:           "- cannot take a list and an integer",
		`"x" in body.s`:         "in needs a list or a map, not a string",
		`1 in body.a`:           "in needs a string, not an integer",
		`lower(body.xs)`:        "lower needs a string, not a list",
		`int(body.s)`:           "int cannot take a string, only an integer or the text of one",
		`keys(body.xs)`:         "keys cannot take a list",
		`not body.s`:            "not needs a bool, not a string",
		`any(body.xs, #)`:       "the predicate of any needs a bool, not an integer",
		`7 % (len(body.s) - 1)`: "an integer is divided by zero",
		`body.n[1:4]`:           "an integer cannot be sliced, only a string or a list",
		`body.a[:4]`:            "an object cannot be sliced, only a string or a list",
		`body.t[:4]`:            "a bool cannot be sliced, only a string or a list",
	} {
		_, err := compileFor(t, `#{`+expression+`}`, schema).Keys(keyexpr.Values{&typed{}, sent})
		if reasonOf(t, err) != keyexpr.ReasonExpression || !strings.HasSuffix(err.Error(), "for these values: "+want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for expression, want := range map[string]string{
		`first(in.Labels)`:        "first cannot take a map",
		`filter(in.Labels, true)`: "filter cannot take a map",
		`in.IDs + 1`:              "+ cannot take a list",
		`"a" < 1 ? 1 : 2`:         "< cannot take a string and an integer",
		`"a" in "abc"`:            "in cannot take a string",
		`1 and true`:              "and cannot take an integer",
		`filter(in.IDs, 1)`:       "the predicate of filter cannot take an integer",
	} {
		_, err := keyexpr.Compile(`#{`+expression+`}`, schema)
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Message != want {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}
