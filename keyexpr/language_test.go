package keyexpr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// languageBody has a value of each kind.
const languageBody = `{
	"text": "Ab-cD", "other": "b", "empty": "", "space": "  x ", "wide": "Größe", "n": 7, "m": 3, "neg": -7, "zero": 0, "big": 18446744073709551615,
	"half": 2.5, "t": true, "f": false, "null": null, "digits": "12", "hex": "0x1p-2", "b64": "aGk=",
	"xs": [3, 1, 2], "names": ["b", "a", "b"], "none": [], "mixed": ["a", 1, null], "nested": [[1, 2], [3, [4]]],
	"items": [{"sku": "b", "n": 2, "ok": true}, {"sku": "a", "n": 1, "ok": false}, {"sku": "c", "n": 3, "ok": true}],
	"m1": {"b": 1, "a": 2}, "m2": {"a": 2, "b": 1}, "m3": {"a": 2}
}`

// outcome is what an expression makes of languageBody: its keys, or the reason why there
// are none, with a ! before it.
func outcome(tb testing.TB, expression string) string {
	tb.Helper()
	template, err := keyexpr.Compile("#{"+expression+"}", requestSchema(tb))
	if err != nil {
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			tb.Fatalf("%s: %v is no *Error", expression, err)
		}
		return "refused: " + problem.Message
	}
	keys, err := template.Keys(request{path: entries{"orderId": {"42"}}, query: entries{"id": {"x", "y"}}, body: languageBody}.env(tb))
	if err != nil {
		return "!" + reasonOf(tb, err).String()
	}
	return strings.Join(keys, " ")
}

type sample struct{ expression, want string }

func checkSamples(t *testing.T, samples []sample) {
	t.Helper()
	for _, s := range samples {
		t.Run(s.expression, func(t *testing.T) {
			t.Parallel()
			if got := outcome(t, s.expression); got != s.want {
				t.Errorf("got %q, want %q", got, s.want)
			}
		})
	}
}

func TestLanguage_Texts(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`lower(body.text)`, "ab-cd"},
		{`upper(body.text)`, "AB-CD"},
		{`upper(body.wide)`, "GRÖßE"},
		{`lower(body.n)`, "!expression"},
		{`lower(body.null)`, "!missing"},
		{`lower(body.empty)`, "!empty"},
		{`trim(body.space)`, "x"},
		{`trim(body.text, "A")`, "refused: trim cannot take 2 arguments"},
		{`split(body.text, "-")`, "Ab cD"},
		{`split(body.text, "x")`, "Ab-cD"},
		{`split("a,b,c", ",", 2)`, "refused: split cannot take 3 arguments"},
		{`split(body.text, "")`, "refused: the separator of split is a literal text that is not empty"},
		{`len(body.text)`, "5"},
		{`len(body.wide)`, "5"},
		{`len(body.xs)`, "3"},
		{`len(body.m1)`, "2"},
		{`len(body.n)`, "!expression"},
		{`len(body.null)`, "!missing"},
		{`body.text[1:3]`, "b-"},
		{`body.text[:2]`, "Ab"},
		{`body.text[3:]`, "cD"},
		{`body.text[1:1]`, "!empty"},
	})
}

func TestLanguage_Numbers(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`body.n + body.m`, "10"},
		{`body.n - body.m`, "4"},
		{`body.n * body.m`, "21"},
		{`body.n % body.m`, "1"},
		{`-body.n`, "-7"},
		{`body.n / body.m`, "refused: body.n / body.m is a float; a key part is a string, a bool, an integer or an enum"},
		{`int(body.n / 7)`, "1"},
		{`int(body.n / body.m)`, "!expression"},
		{`int(2 ^ 3)`, "refused: ^ is not known here: register a variable for the value"},
		{`int(body.digits) + 1`, "13"},
		{`int(body.text)`, "!expression"},
		{`int(body.half)`, "!expression"},
		{`int(body.t)`, "!expression"},
		{`int(body.null)`, "!missing"},
		{`int(5.0)`, "5"},
		{`string(body.n) + "x"`, "7x"},
		{`string(body.big)`, "18446744073709551615"},
		{`string(body.t)`, "true"},
		{`string(body.half)`, "!expression"},
		{`string(body.xs)`, "!expression"},
		{`string(body.m1)`, "!expression"},
		{`body.big`, "18446744073709551615"},
		{`body.big + 1`, "!expression"},
		{`body.zero`, "0"},
		{`1 % body.zero`, "!expression"},
		{`0x1F`, "31"},
		{`1_000`, "1000"},
		{`body.n < body.m`, "false"},
		{`body.n <= 7`, "true"},
		{`body.n > 6.5`, "true"},
		{`body.n >= 8`, "false"},
		{`body.text < "Ac"`, "true"},
		{`body.text < body.n`, "!expression"},
		{`body.text + body.n`, "!expression"},
		{`body.text + string(body.n)`, "Ab-cD7"},
		{`1 + 2 * 3`, "7"},
		{`(1 + 2) * 3`, "9"},
		{`5 - 2 - 1`, "2"},
	})
}

func TestLanguage_Lists(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`body.xs[:]`, "1 2 3"},
		{`body.xs`, "!wrong_type"},
		{`body.xs[0]`, "3"},
		{`body.xs[-1]`, "2"},
		{`body.xs[3]`, "!missing"},
		{`body.xs[-4]`, "!missing"},
		{`body.xs[body.m]`, "refused: a name is a literal text and an index a literal integer: register a variable for what is chosen otherwise"},
		{`body.xs[1:]`, "!wrong_type"},
		{`body.xs[:][1:]`, "1 2"},
		{`body.n[0]`, "!wrong_type"},
		{`body.n.x`, "!wrong_type"},
		{`body.m1["c"]`, "!missing"},
		{`body.m1["c"] ?? "none"`, "none"},
		{`first(body.xs)`, "3"},
		{`last(body.xs)`, "2"},
		{`first(body.none)`, "!missing"},
		{`first(body.none) ?? "none"`, "none"},
		{`sort(body.xs)[2]`, "refused: sort is not known here: register a variable for the value"},
		{`1..3`, "refused: .. is not known here: register a variable for the value"},
		{`[path.orderId, "x"]`, "42 x"},
		{`["a", "b"][1]`, "b"},
		{`body.mixed[:]`, "!missing"},
		{`body.none[:]`, "!empty"},
		{`body.null[:]`, "!missing"},
		{`body.text[:]`, "!wrong_type"},
		{`query.id[:]`, "x y"},
		{`query.id[0]`, "x"},
		{`query.id[2]`, "!missing"},
		{`query.id[2] ?? "z"`, "z"},
		{`query.none[:]`, "!missing"},
		{`len(query.id[:])`, "2"},
		{`query.id`, "!repeated"},
		{`query[body.other]`, "refused: a name is a literal text and an index a literal integer: register a variable for what is chosen otherwise"},
		{`path["order" + "Id"]`, "refused: a name is a literal text and an index a literal integer: register a variable for what is chosen otherwise"},
		{`1 in body.xs`, "true"},
		{`9 in body.xs`, "false"},
		{`"a" in body.names`, "true"},
		{`"a" not in body.names`, "false"},
		{`0 < body.n + 1 < 50`, "true"},
		{`int(nil)`, "refused: cannot be computed for these values: int cannot take null, only an integer or the text of one"},
		{`body.other in ["a", "b"]`, "true"},
		{`"b" in split(body.text, "-")`, "false"},
		{`"cD" in split(body.text, "-")`, "true"},
		{`"a" in body.m1`, "true"},
		{`"c" in body.m1`, "false"},
		{`body.n in body.m1`, "!expression"},
		{`"a" in keys(body.m1)`, "true"},
		{`"a" in body.text`, "!expression"},
		{`body.items[1].sku`, "a"},
		{`body.items.sku`, "!wrong_type"},
		{`map(body.items, .sku)`, "a b c"},
		{`map(body.items, #.n)`, "1 2 3"},
		{`map(body.items, .sku + "-" + string(.n))`, "a-1 b-2 c-3"},
		{`map(body.items, #index)`, "refused: #index is not known here: # is the element, and .name a field of it"},
		{`map(body.xs, # * 2)`, "2 4 6"},
		{`map(body.items, .nowhere)`, "!missing"},
		{`map(body.items, .nowhere ?? "x")`, "x"},
		{`map(body.n, #)`, "!wrong_type"},
		{`filter(body.xs, # > 1)`, "2 3"},
		{`map(filter(body.items, .ok), .sku)`, "b c"},
		{`filter(body.items, .ok)[0].sku`, "b"},
		{`filter(body.xs, # > 9)`, "!empty"},
		{`filter(body.xs, #)`, "!expression"},
		{`find(body.items, .n == 3).sku`, "refused: find is not known here"},
		{`last(filter(body.items, .ok)).sku`, "c"},
		{`[path.orderId, last(filter(body.xs, # > 1))]`, "2 42"},
		{`last(filter(body.xs, # > 9))`, "!missing"},
		{`last(filter(body.xs, # > 9)) ?? "none"`, "none"},
		{`body.n + last(filter(body.xs, # > 1))`, "9"},
		{`filter(body.xs, # > 1)[-1]`, "2"},
		{`all(body.items, .n > 0)`, "true"},
		{`any(body.items, .n > 2)`, "true"},
		{`count(body.items, .ok)`, "refused: count is not known here"},
		{`body.items | filter(.ok) | map(.sku)`, "b c"},
		{`keys(body.m1)`, "a b"},
		{`keys(body.xs)`, "!expression"},
		{`len(keys(body.m3))`, "1"},
		{`{"a": body.n}.a`, "refused: a key or condition makes no objects: write the value where it is used, or register a variable"},
	})
}

func TestLanguage_Logic(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`body.t`, "true"},
		{`body.f`, "false"},
		{`not body.t`, "false"},
		{`!body.f`, "true"},
		{`body.t and body.f`, "false"},
		{`body.t && body.t`, "true"},
		{`body.t or body.null`, "true"},
		{`body.f || body.f`, "false"},
		{`body.f or body.null`, "!missing"},
		{`body.n and body.t`, "!expression"},
		{`not body.n`, "!expression"},
		{`body.t ? "a" : "b"`, "a"},
		{`body.f ? "a" : body.n`, "7"},
		{`body.n ? "a" : "b"`, "!expression"},
		{`body.null ? "a" : "b"`, "!missing"},
		{`if body.t {"a"} else {"b"}`, "refused: if is not known here: write condition ? value : otherwise"},
		{`body.null ?? "x"`, "x"},
		{`body.nowhere.deep[0].x ?? "x"`, "x"},
		{`body.null ?? body.nowhere ?? "y"`, "y"},
		{`body.empty ?? "x"`, "!empty"},
		{`body.null ?? body.nowhere`, "!missing"},
		{`body.null == nil`, "true"},
		{`body.nowhere == nil`, "true"},
		{`body.n != nil`, "true"},
		{`body.text == "Ab-cD"`, "true"},
		{`body.text != "Ab-cD"`, "false"},
		{`body.n == 7`, "true"},
		{`body.n == 7.0`, "true"},
		{`body.n == body.half`, "false"},
		{`body.n == body.text`, "false"},
		{`body.n == body.digits`, "false"},
		{`12 == body.digits`, "!expression"},
		{`body.t == "true"`, "!expression"},
		{`body.t == "yes"`, "false"},
		{`body.t == true`, "true"},
		{`body.xs == [3, 1, 2]`, "true"},
		{`body.xs == [3, 1]`, "false"},
		{`body.names == ["b", "a", "b"]`, "true"},
		{`body.xs == body.names`, "false"},
		{`body.m1 == body.m2`, "!expression"},
		{`body.m1 == body.m3`, "!expression"},
		{`body.m1 == body.xs`, "false"},
		{`body.big == body.n`, "!expression"},
		{`body.nested == body.nested`, "true"},
		{`[body.m1] == [body.m2]`, "!expression"},
		{`split(body.text, "-") == ["Ab", "cD"]`, "true"},
	})
}

// What a part is made of is known before a request comes, where the types are.
func TestLanguage_RefusedParts(t *testing.T) {
	t.Parallel()
	const kinds = "; a key part is a string, a bool, an integer or an enum"
	checkSamples(t, []sample{
		{`1.5`, "refused: 1.5 is a number with a fraction or exponent" + kinds},
		{`map(body.xs, # / 2)`, "refused: map(body.xs, # / 2) is a list, and each element is a float" + kinds},
		{`[1.5, body.half / 2]`, "refused: [1.5, body.half / 2] is a list, and each element is a float" + kinds},
		{`[[1], body.xs[:]]`, "refused: [[1], body.xs[:]] is a list, and each element is a list" + kinds},
		{`upper(1)`, "refused: upper cannot take an integer"},
		{`len(1)`, "refused: len cannot take an integer"},
		{`lower(query.id[:])`, "refused: lower cannot take a list"},
	})
}

// languageFunctions are the functions, as the package comment lists them.
var languageFunctions = map[string]bool{
	"lower": true, "upper": true, "trim": true, "nfc": true, "string": true, "int": true, "len": true, "keys": true, "first": true, "last": true,
	"split": true, "map": true, "filter": true, "any": true, "all": true,
}
