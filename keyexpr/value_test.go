package keyexpr_test

import (
	"encoding/json"
	"strings"
	"testing"

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
		{`map(body.xs, #acc)`, "refused: unknown pointer #acc"},
		{`map(body.xs, #count)`, "refused: unknown pointer #count"},
		{`let x = 1; let y = x; y + x`, "2"},
		{`let path = 1; path`, "1"},
		{`string(1, 2)`, "refused: too many arguments to call string"},
		{`nowhere(1)`, "refused: unknown function nowhere"},
		{`body.x[1](2)`, "refused: unexpected token \"(\""},
		{`(1)[0]`, "refused: 1 is an integer and has no elements"},
		{`"abc".x`, "refused: \"abc\" is a string and has no field x"},
		{`any(body.xs, any(body.names, any(body.mixed, true)))`, "refused: predicates can be nested 2 deep"},
		{`groupBy(body.xs, #)`, "refused: the function groupBy is off: its order changes from call to call"},
		{`duration("1s")`, "refused: the function duration is off: it is no key part"},
		{`timezone("UTC")`, "refused: the function timezone is off: it depends on the server"},
		{`toPairs(body.m1)`, "refused: the function toPairs is off: its order changes from call to call"},
		{`fromPairs([])`, "refused: the function fromPairs is off: it is no key part"},
		{`get(body.m1, "a")`, "refused: the function get is off: write value[\"name\"]"},
		{`fromJSON("1")`, "refused: the function fromJSON is off: it loses exact numbers"},
	})
}

// Every builtin that is off says why, and none of them is reached by another way.
func TestLanguage_OffBuiltinsSayWhy(t *testing.T) {
	t.Parallel()
	for name, reason := range keyexpr.OffBuiltins() {
		if reason == "" {
			t.Errorf("%s is off without a reason", name)
		}
		for _, expression := range []string{name + `(body.xs)`, `body.xs | ` + name + `()`, `::` + name + `(body.xs)`} {
			if got := outcome(t, expression); !strings.HasPrefix(got, "refused: ") {
				t.Errorf("%s: got %q", expression, got)
			}
		}
	}
}
