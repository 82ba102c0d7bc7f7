package keyexpr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func argumentKeys[T any](tb testing.TB, template string, in T, format ...keyexpr.Format) ([]string, error) {
	tb.Helper()
	schema := argumentSchema[T](tb)
	return compileFor(tb, template, schema, format...).Keys(keyexpr.Values{in})
}

type identified struct {
	Text   string
	Signed int64
	Small  uint8
	Any    any
	List   []any
}

// One id yields one key, whatever its place and type are, because only its text counts.
func TestTemplate_OneIDOneKey(t *testing.T) {
	t.Parallel()
	in := identified{Text: "42", Signed: 42, Small: 42, List: []any{"42", 42, uint8(42), 42.0}}
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		for _, part := range []string{"42", `"42"`, "40 + 2", "in.Text", "in.Signed", "in.Small", "in.List"} {
			if got, err := argumentKeys(t, `order:#{`+part+`}:x`, in, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("%s: got %q, %v, want order:42:x alone", part, got, err)
			}
		}
		for _, claim := range []any{"42", 42, uint64(42), 42.0, json.Number("42")} {
			if got, err := argumentKeys(t, `order:#{in.Any}:x`, identified{Any: claim}, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("%T: got %q, %v, want order:42:x alone", claim, got, err)
			}
		}
	}
}

// A number can be a key part only if it is written as an integer, and then exactly as written. Handlers
// disagree about the text of 5.0, which is 5 for some and 5.0 for others.
func TestTemplate_Numbers(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 400)
	for number, want := range map[string]string{
		`0`: "0", `-7`: "-7", `9007199254740993`: "9007199254740993",
		`9223372036854775807`: "9223372036854775807", `9223372036854775808`: "9223372036854775808", `-9223372036854775808`: "-9223372036854775808",
		`18446744073709551615`: "18446744073709551615", `18446744073709551616`: "18446744073709551616", `-9223372036854775809`: "-9223372036854775809",
		digits: digits, `-` + digits: `-` + digits,
		`-0`: "", `0.0`: "", `-0.0`: "", `5.0`: "", `5e0`: "", `1E2`: "", `0.1`: "", `1e400`: "", `-1e400`: "", `1e-300`: "", `1e999999999`: "", `1.5e1`: "",
	} {
		got, err := compile(t, `#{body.id}`).Keys(body(`{"id": ` + number + `}`).env(t))
		text, textErr := compile(t, `#{body.id}`).Keys(body(`{"id": "` + number + `"}`).env(t))
		if textErr != nil || !slices.Equal(text, []string{number}) {
			t.Errorf("the text %.30s: got %q, %v", number, text, textErr)
		}
		switch {
		case want != "" && (err != nil || !slices.Equal(got, []string{want})):
			t.Errorf("%.30s: got %q, %v", number, got, err)
		case want == "" && (err == nil || reasonOf(t, err) != keyexpr.ReasonWrongType):
			t.Errorf("%.30s: got %q, %v, want a wrong type", number, got, err)
		}
	}
}

// The text of a Go number is the text of its value. So a claim that was decoded as a float64 has the text of
// an integer if it contains that integer exactly.
func TestTemplate_GoFloats(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		42.0: "42", -42.0: "-42", float32(42): "42", 0.0: "0", float64(1<<53 - 1): "9007199254740991",
		0.5: "", float64(1 << 53): "", -float64(1 << 53): "", 1e300: "",
	} {
		got, err := argumentKeys(t, `#{in.Any}`, identified{Any: value})
		switch {
		case want != "" && (err != nil || !slices.Equal(got, []string{want})):
			t.Errorf("%v: got %q, %v, want %s", value, got, err, want)
		case want == "" && (err == nil || reasonOf(t, err) != keyexpr.ReasonWrongType):
			t.Errorf("%v: got %q, %v, want a wrong type", value, got, err)
		}
	}
}

// A condition can compare a number that is too large for a float.
func TestCondition_HugeNumbers(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{`1e400`: true, `-1e400`: false, `1e999999999`: true, `-1e999999999`: false, `5e0`: true} {
		condition := conditionFor(t, `body.n > 4`, requestSchema(t))
		if got, err := condition.Eval(body(`{"n": ` + number + `}`).env(t)); err != nil || got != want {
			t.Errorf("%s: got %t, %v", number, got, err)
		}
	}
}

func TestFromJSONNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[json.Number]any{
		"0": 0, "7": 7, "-7": -7, "9223372036854775807": 9223372036854775807, "-9223372036854775808": -9223372036854775808,
		"9223372036854775808": uint64(1) << 63, "18446744073709551615": uint64(1<<64 - 1), "18446744073709551616": json.Number("18446744073709551616"),
		"-9223372036854775809": json.Number("-9223372036854775809"), "": nil, "5.5": 5.5, "5.0": 5.0, "1e3": 1000.0, "-2.5": -2.5,
	} {
		if got := keyexpr.FromJSONNumber(number); got != want {
			t.Errorf("%s: got %v (%T), want %v", number, got, got, want)
		}
	}
}

// An Env may return integers and floats of any Go type. The same number always yields the same key.
func TestTemplate_ValuesOfAllGoTypes(t *testing.T) {
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
