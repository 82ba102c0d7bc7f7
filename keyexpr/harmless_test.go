package keyexpr_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// operands have the same digits in a value of each type that an expression can meet.
func operands() []any {
	return []any{
		"4111-1111", 41111111, -41111111, 4111.1111, uint64(11111111111111111111), json.Number("41111111111111111111111"),
		[]any{"4111-1111", 41111111},
		object{"card": "4111-1111"},
		true, 0,
	}
}

// applied are the operators and builtins of the language with operands a and b, however
// they may be written.
func applied() []string {
	forms := []string{
		"-a", "not a", "a and b", "a or b", "a ? 1 : 2", "a - b", "a * b", "a / b", "a % b", "a ** b", "a not in b", `a matches "x"`,
		"a[b]", "a[0]", "a.x", "a[1:4]", "a[b:]", "a[:b]", "a[b:4]", "a[:]", "{(a): b}", "[a, b][a]", "let x = a; x[b:4]",
		"sortBy(a, #, b)", "map(a, #[b:])", "filter(a, b)",
	}
	for _, name := range slices.Sorted(maps.Keys(keyexpr.Metered())) {
		forms = append(forms, "a "+name+" b")
	}
	for _, names := range []map[string]bool{keyexpr.Metered(), keyexpr.Loops(), constantBuiltins} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			for _, arguments := range []string{"(a)", "(a, b)", "(a, b, a)", "(a, b, a, b)", "([a], b)", "([a, b])", "(1, a)"} {
				forms = append(forms, name+arguments)
			}
		}
	}
	return forms
}

// Whatever fails with whatever values: the error says why, and shows none of them.
func TestEvalError_ShowsNoValueOfAnyType(t *testing.T) {
	t.Parallel()
	failures := 0
	for _, form := range applied() {
		c, err := keyexpr.Compile(`#{let a = body.a; let b = body.b; len([`+form+`])}`, requestSchema(t))
		if err != nil {
			continue // such as a builtin with too many arguments
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
	if failures < 5000 {
		t.Errorf("only %d failures were seen", failures)
	}
}

// A bound of a slice, be it of an object, is a value of the request.
func TestEvalError_OfASlice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ slice, body, want string }{
		{`body.id[1:4]`, `{"id": 7}`, "an integer cannot be sliced, only a string or a list"},
		{`body.id[body.from:4]`, `{"id": 7, "from": "4111-1111"}`, "an integer cannot be sliced, only a string or a list"},
		{`body.id[body.from:4]`, `{"id": 12345678901234567890123, "from": {"card": "4111-1111"}}`, "an integer cannot be sliced, only a string or a list"},
		{`body.id[:4]`, `{"id": {"card": "4111-1111"}}`, "an object cannot be sliced, only a string or a list"},
		{`body.id[:4]`, `{"id": true}`, "a bool cannot be sliced, only a string or a list"},
		{`body.id[body.from:]`, `{"id": "7", "from": "4111-1111"}`, "invalid operation: int(string)"},
		{`bitshl(1, body.by)`, `{"by": -41111111}`, "invalid operation: negative shift count"},
	} {
		_, err := compile(t, `order:#{`+tt.slice+`}`).Key(body(tt.body).env(t))
		failure, ok := errors.AsType[*keyexpr.EvalError](err)
		if want := "cannot be computed for these values: " + tt.want; !ok || failure.Reason != keyexpr.ReasonExpression || failure.Detail != want {
			t.Errorf("%s of %s: got %v, want %s", tt.slice, tt.body, err, want)
		}
	}
}

// What fails names types in the words of these pages, and none of this package.
func TestEvalError_NamesTypesInWords(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[*typed](), keyexpr.Variable{Name: "body", Type: keyexpr.JSONType()})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := keyexpr.DecodeJSON([]byte(`{"a": {"x": 1}, "n": 12345678901234567890123, "xs": [1]}`))
	if err != nil {
		t.Fatal(err)
	}
	large := &typed{Labels: map[string]string{}}
	for i := range 1500 {
		large.Labels["k"+itoa(i)] = "v"
	}
	for expression, want := range map[string]string{
		`len(in.Labels)`:    "has more than 1000 entries",
		`keys(in.Labels)`:   "has more than 1000 entries",
		`body.a + 1`:        "invalid operation: object + int",
		`-body.a`:           "invalid operation: - object",
		`body.a < 1`:        "invalid operation: object < int",
		`abs(body.a)`:       "invalid argument for abs (type object)",
		`sum([body.a])`:     "invalid operation: object + int",
		`body.n - 1`:        "invalid operation: integer - int",
		`body.xs - 1`:       "invalid operation: list - int",
		`1 in body.n`:       `operator "in" not defined on integer`,
		`bitand(body.a, 1)`: "cannot use object as argument (type int) to call bitand",
		`1..body.a`:         "invalid operation: int(object)",
	} {
		_, err := compileFor(t, `#{`+expression+`}`, schema).Keys(keyexpr.Values{large, sent})
		if reasonOf(t, err) != keyexpr.ReasonExpression || !strings.HasSuffix(err.Error(), "for these values: "+want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for expression, want := range map[string]string{
		`first(in.Labels)`:        "cannot get first element from map",
		`filter(in.Labels, true)`: "builtin filter takes only array (got map)",
		`({"a": 1}) - 1`:          "invalid operation: - (mismatched types map and int)",
		`lower(in.IDs)`:           "cannot use []int as argument (type string) to call lower",
	} {
		_, err := keyexpr.Compile(`#{`+expression+`}`, schema)
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || !strings.HasPrefix(problem.Message, want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}
