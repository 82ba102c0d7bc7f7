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

// applied are the operators and functions of the language with operands A and B, however
// they may be written.
func applied() []string {
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

// Whatever fails with whatever values: the error says why, and shows none of them.
func TestEvalError_ShowsNoValueOfAnyType(t *testing.T) {
	t.Parallel()
	failures := 0
	for _, form := range applied() {
		c, err := keyexpr.Compile(`#{len([`+strings.NewReplacer("A", "body.a", "B", "body.b").Replace(form)+`])}`, requestSchema(t))
		if err != nil {
			continue // such as a function with too few arguments
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

// A bound of a slice, be it of an object, is a value of the request.
func TestEvalError_OfASlice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ slice, body, want string }{
		{`body.id[1:4]`, `{"id": 7}`, "an integer cannot be sliced, only a string or a list"},
		{`body.id[:4]`, `{"id": {"card": "4111-1111"}}`, "an object cannot be sliced, only a string or a list"},
		{`body.id[:4]`, `{"id": true}`, "a bool cannot be sliced, only a string or a list"},
	} {
		_, err := compile(t, `order:#{`+tt.slice+`}`).Key(body(tt.body).env(t))
		failure, ok := errors.AsType[*keyexpr.EvalError](err)
		if want := "cannot be computed for these values: " + tt.want; !ok || failure.Reason != keyexpr.ReasonExpression || failure.Detail != want {
			t.Errorf("%s of %s: got %v, want %s", tt.slice, tt.body, err, want)
		}
	}
}

// What fails names types in the words of the package comment.
func TestEvalError_NamesTypesInWords(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[*typed](), keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := keyexpr.DecodeJSON([]byte(`{"a": {"x": 1}, "s": "x", "xs": [1]}`))
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
	} {
		_, err := compileFor(t, `#{`+expression+`}`, schema).Keys(keyexpr.Values{&typed{}, sent})
		if reasonOf(t, err) != keyexpr.ReasonExpression || !strings.HasSuffix(err.Error(), "for these values: "+want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	for expression, want := range map[string]string{
		`first(in.Labels)`:        "first cannot take a map",
		`filter(in.Labels, true)`: "filter cannot take a map",
		`lower(in.IDs)`:           "lower cannot take a list",
		`in.IDs + 1`:              "+ cannot take a list",
		`true + 1`:                "+ cannot take a bool",
		`"a" < 1`:                 "< cannot take a string and an integer",
		`1.5 % 2`:                 "% takes integers only",
		`"a" in "abc"`:            "in cannot take a string",
		`not 1`:                   "not cannot take an integer",
		`1 and true`:              "and cannot take an integer",
		`1 ? 2 : 3`:               "the condition of ? : cannot take an integer",
		`filter(in.IDs, 1)`:       "the predicate of filter cannot take an integer",
	} {
		_, err := keyexpr.Compile(`#{`+expression+`}`, schema)
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Message != want {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}
