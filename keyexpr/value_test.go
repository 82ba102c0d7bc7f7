package keyexpr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/operator"

	"github.com/interlock-go/interlock/keyexpr"
)

// An Env may give integers and floats of any Go type: their text is one key.
func TestValues_OfAnyGoType(t *testing.T) {
	t.Parallel()
	template := compile(t, `#{body.id}`)
	sum := compile(t, `#{body.id + 1}`)
	for _, id := range []any{
		7, int8(7), int16(7), int32(7), int64(7), uint(7), uint8(7), uint16(7), uint32(7), uint64(7), uintptr(7), json.Number("7"),
	} {
		env := keyexpr.Values{slotBody: object{"id": id}}
		if key, err := template.Key(env); err != nil || key != "7" {
			t.Errorf("%T: got %q, %v", id, key, err)
		}
		if key, err := sum.Key(env); err != nil || key != "8" {
			t.Errorf("%T + 1: got %q, %v", id, key, err)
		}
	}
	for value, noun := range map[any]string{
		1.5: "a number with a fraction or exponent", float32(1.5): "a number with a fraction or exponent", [1]int{1}: "an object", struct{}{}: "an object",
	} {
		_, err := template.Key(keyexpr.Values{slotBody: object{"id": value}})
		if reasonOf(t, err) != keyexpr.ReasonWrongType || !strings.Contains(err.Error(), "is "+noun) {
			t.Errorf("%T: got %v, want that it is %s", value, err, noun)
		}
	}
	for _, value := range []any{[]byte("x"), []string{"a"}, func() {}} {
		if _, err := template.Key(keyexpr.Values{slotBody: object{"id": value}}); reasonOf(t, err) != keyexpr.ReasonWrongType {
			t.Errorf("%T: got %v", value, err)
		}
	}
}

// What stands where it means nothing is refused, with its name.
func TestLanguage_MisplacedNames(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`#`, "refused: unexpected token \"#\""},
		{`#index`, "refused: unexpected token \"#\""},
		{`map(body.xs, #acc)`, "refused: #acc is not known here: # is the element, and .name a field of it"},
		{`map(body.xs, #count)`, "refused: #count is not known here: names stand without #"},
		{`let x = 1; let y = x; y + x`, "refused: let is not known here: write the value where it is used, or register a variable"},
		{`string(1, 2)`, "refused: string cannot take 2 arguments"},
		{`nowhere(1)`, "refused: nowhere is not known here: register a variable for the value"},
		{`body.x[1](2)`, "refused: unexpected token \"(\""},
		{`(1)[0]`, "refused: 1 is an integer and has no elements"},
		{`"abc".x`, "refused: \"abc\" is a string and has no field x"},
		{`any(body.xs, any(body.names, any(body.mixed, true)))`, "refused: any(…) cannot stand inside of another predicate: register a variable for the inner list"},
	})
}

// What package expr has, and this language has not, is reached in no way.
func TestLanguage_IsClosed(t *testing.T) {
	t.Parallel()
	for _, f := range builtin.Builtins {
		if languageFunctions[f.Name] {
			continue
		}
		for _, expression := range []string{f.Name + `(body.xs)`, f.Name + `(body.xs, body.n)`, f.Name + `(body.xs, true)`, `body.xs | ` + f.Name + `()`, `::` + f.Name + `(body.xs)`} {
			if got := outcome(t, expression); !strings.HasPrefix(got, "refused: ") {
				t.Errorf("%s: got %q", expression, got)
			}
		}
	}
	for name := range operator.Binary {
		if slices.Contains(strings.Fields("?? == != < <= > >= in and && or || + - * / % |"), name) {
			continue
		}
		if got := outcome(t, "body.text "+name+` body.text`); !strings.HasPrefix(got, "refused: ") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
