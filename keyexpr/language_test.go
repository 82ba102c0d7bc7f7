package keyexpr_test

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser/operator"

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

// outcome returns the keys that an expression yields for languageBody, or "!" and the reason if it yields
// none.
func outcome(tb testing.TB, expression string) string {
	tb.Helper()
	template, err := keyexpr.Compile("#{"+expression+"}", requestSchema(tb))
	if err != nil {
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			tb.Fatalf("%s: %v is not an *Error", expression, err)
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
		{`nfc("e\u0301") == "\u00e9"`, "true"},
		{`nfc(body.wide) == body.wide`, "true"},
		{`nfc(body.n)`, "!expression"},
		{`nfc(body.empty)`, "!empty"},
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
		{`body.n / body.m`, "refused: body.n / body.m is a float; a key part is a string, a bool, an integer or an enum: register a variable for its text (WithVariable)"},
		{`int(body.n / 7)`, "1"},
		{`int(body.n / body.m)`, "!expression"},
		{`int(2 ^ 3)`, "refused: ^ is not known here: register a variable for the value (WithVariable)"},
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
		{`body.xs[body.m]`, "refused: a name is a literal text and an index a literal integer: register a variable for the value (WithVariable)"},
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
		{`sort(body.xs)[2]`, "refused: sort is not known here: register a variable for the value (WithVariable)"},
		{`1..3`, "refused: .. is not known here: register a variable for the value (WithVariable)"},
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
		{`query[body.other]`, "refused: a name is a literal text and an index a literal integer: register a variable for the value (WithVariable)"},
		{`9 in body.xs`, "false"},
		{`"a" in body.names`, "true"},
		{`"a" not in body.names`, "false"},
		{`0 < body.n + 1 < 50`, "true"},
		{`int(nil)`, "refused: cannot be computed for these values: int cannot take null, only an integer or the text of one"},
		{`body.other in ["a", "b"]`, "true"},
		{`"b" in split(body.text, "-")`, "false"},
		{`"cD" in split(body.text, "-")`, "true"},
		{`"c" in body.m1`, "false"},
		{`body.n in body.m1`, "!expression"},
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
		{`{"a": body.n}.a`, "refused: a key or condition makes no objects: write the value where it is used, or register a variable for it (WithVariable)"},
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

// Types that cannot be part of a key are refused at start-up, if they are known.
func TestLanguage_RefusedParts(t *testing.T) {
	t.Parallel()
	const kinds = "; a key part is a string, a bool, an integer or an enum"
	checkSamples(t, []sample{
		{`1.5`, "refused: 1.5 is a number with a fraction or exponent" + kinds},
		{`map(body.xs, # / 2)`, "refused: map(body.xs, # / 2) is a list, and each element is a float" + kinds + ": register a variable for its text (WithVariable)"},
		{`[1.5, body.half / 2]`, "refused: [1.5, body.half / 2] is a list, and each element is a float" + kinds + ": register a variable for its text (WithVariable)"},
		{`[[1], body.xs[:]]`, "refused: [[1], body.xs[:]] is a list, and each element is a list" + kinds},
		{`upper(1)`, "refused: upper cannot take an integer"},
		{`len(1)`, "refused: len cannot take an integer"},
		{`lower(query.id[:])`, "refused: lower cannot take a list"},
	})
}

// The package comment lists every function.
func TestLanguage_DocumentedFunctions(t *testing.T) {
	t.Parallel()
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(comment), "// # The language\n")
	table, _, _ = strings.Cut(table, "// Everything else")
	shown := map[string]bool{}
	for _, call := range regexp.MustCompile(`\b([a-z]+)\(`).FindAllStringSubmatch(table, -1) {
		shown[call[1]] = true
	}
	if !maps.Equal(shown, languageFunctions) {
		t.Errorf("the package comment shows %v, the language has %v", shown, languageFunctions)
	}
}

// languageFunctions are the functions of the language.
var languageFunctions = map[string]bool{
	"lower": true, "upper": true, "trim": true, "nfc": true, "string": true, "int": true, "len": true, "keys": true, "first": true, "last": true,
	"split": true, "map": true, "filter": true, "any": true, "all": true,
}

// Names and indexes, literal or computed, and the messages for those that do not exist.
func TestLanguage_Lookups(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		// entries of a keyed variable
		{`query["id"][0]`, "x"},
		{`query["id"][:]`, "x y"},
		{`query.id[5] ?? "none"`, "none"},
		{`query.id[-1]`, "refused: the index of a repeated value must be 0 or more"},
		{`query.id[:][-1]`, "y"},
		{`query.id[:][1:]`, "y"},
		{`path["orderId"]`, "42"},
		{`path["order" + "Id"]`, "refused: a name is a literal text and an index a literal integer: register a variable for the value (WithVariable)"},
		{`path?.orderId`, "42"},
		{`(path).orderId`, "42"},
		{`path["nothing"]`, "refused: path parameter nothing does not exist: there are orderId, shop"},
		{`path.orderId[:]`, "42"},
		{`method[:]`, "POST"},
		// values that the expression creates
		{`keys(body.m1)[-1]`, "b"},
		{`(body.t ? body.xs : body.text)[:]`, "1 2 3"},
		{`(body.f ? body.xs : body.text)[:]`, "!wrong_type"},
		{`last(body.none)[:]`, "!missing"},
		{`body.null[:] ?? query.id[:]`, "x y"},
		{`body.m1[:]`, "!wrong_type"},
		{`(1)[:]`, "refused: 1 is an integer and cannot be sliced"},
		// several statements
		{`1; 2; body.n`, "refused: an expression is one value, without ;: write the value where it is used, or register a variable for it (WithVariable)"},
	})
}

func TestLanguage_Membership(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`nil in body.names`, "false"},
		{`nil in body.mixed`, "true"},
		{`nil in body.m1`, "false"},
		{`body.null in body.m1`, "!missing"},
		{`(body.null ?? nil) in body.m1`, "false"},
		{`"a" in body.m1`, "true"},
		{`"a" in keys(body.m1)`, "true"},
		{`"A" in body.m1`, "false"},
		{`1 in body.m1`, "!expression"},
		{`"a" in body.null`, "!missing"},
		{`"a" in (body.null ?? nil)`, "false"},
		{`"a" in body.text`, "!expression"},
		{`1 in body.xs`, "true"},
		{`1.0 in body.xs`, "true"},
		{`"1" in body.xs`, "!expression"},
		{`[1, 2] in body.nested`, "true"},
		{`[2, 1] in body.nested`, "false"},
		{`body.text not in ["a"]`, "true"},
		{`body.big in [1]`, "!expression"},
		{`"x" in query.id[:]`, "true"},
	})
}

// For names with hyphens, and for methods and calls of other languages, the message explains the mistake.
func TestLanguage_Habits(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`query.a-b`, "refused: query.a-b is a subtraction"},
		{`query["a"]-b`, "refused: - cannot take a string"},
		{`header.X-Id-path.orderId`, "refused: header.X-Id-path is a subtraction"},
		{`path.orderId-1`, "refused: - cannot take a string"},
		{`method-x`, "refused: - cannot take a string"},
		{`body.a-b`, "refused: unknown name b: there are body, header, method, path, principal, query; WithVariable adds others"},
		{`body()`, "refused: body is not known here: register a variable for the value (WithVariable)"},
		{`unknown(1)`, "refused: unknown is not known here: register a variable for the value (WithVariable)"},
		{`body.text()`, "refused: methods cannot be called: .text(): register a variable for the value (WithVariable)"},
		{`principal.x`, "refused: principal is a string and has no field x"},
		{`principal[0]`, "refused: principal is a string and has no elements"},
		{`map(principal, #)`, "refused: map cannot take a string"},
		{`query.id[0].x`, "refused: query.id[0] is a string and has no field x"},
		{`(path ?? 1).orderId`, "refused: path is a set of values, one per path parameter"},
		{`[query]`, "refused: query is a set of values, one per query parameter"},
		{`len(header)`, "refused: header is a set of values, one per header"},
	})
}

// Operands of a wrong type are refused at start-up if their types are known, and for the request
// otherwise.
func TestLanguage_Operands(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`"a" + 1`, "refused: + cannot take a string and an integer"},
		{`1 + "a"`, "refused: + cannot take an integer and a string"},
		{`body.n + "a"`, "!expression"},
		{`body.t + body.t`, "!expression"},
		{`body.xs + body.xs`, "!expression"},
		{`string(body.t) + "-" + string(body.n)`, "true-7"},
		{`not 1`, "refused: not cannot take an integer"},
		{`-"a"`, "refused: - cannot take a string"},
		{`-body.text`, "!expression"},
		{`-body.neg`, "7"},
		{`+body.n`, "7"},
		{`7 % 2.5`, "refused: % takes integers only"},
		{`body.n % body.zero`, "!expression"},
		{`body.n % body.half`, "!expression"},
		{`body.n % 4`, "3"},
		{`body.neg % 4`, "-3"},
		{`body.text matches "^A"`, "refused: matches is not known here: register a variable for the value (WithVariable)"},
		{`body.big == body.big`, "!expression"},
		{`body.big ?? 1`, "18446744073709551615"},
		{`int(body.big)`, "!expression"},
		{`body.null ?? nil`, "!missing"},
		{`(body.null ?? nil) == nil`, "true"},
		{`nil == nil`, "true"},
		{`body.half > body.m`, "false"},
		{`body.text < body.other`, "true"},
		{`body.xs < body.xs`, "!expression"},
	})
}

// A constant that cannot be computed is refused with the reason.
func TestLanguage_Constants(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`9223372036854775807`, "9223372036854775807"},
		{`9223372036854775807 + 1`, "-9223372036854775808"},
		{`"\u00e9"`, "é"},
		{"`raw`", "raw"},
		{`int("+1")`, "1"},
		{`int("01")`, "1"},
		{`int(1e3)`, "1000"},
		{`int("0x10")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int(" 1")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int("9223372036854775808")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int(1.5)`, "refused: cannot be computed for these values: int cannot take a number with a fraction or exponent, only an integer or the text of one"},
		{`1 % 0`, "refused: cannot be computed for these values: an integer is divided by zero"},
		{`"a\x00"`, "refused: the control character U+0000 cannot be part of a key"},
		{`"a" + "\n"`, "refused: the control character U+000A cannot be part of a key"},
		{`"x%~y"`, `refused: "%~" marks the hash of an overlong key and cannot be literal text`},
		{`trim(" ")`, "refused: the part is always empty"},
		{`[]`, "!empty"},
		{`[nil]`, "!missing"},
		{`[""]`, "!empty"},
		{`["a", nil]`, "!missing"},
		{`["a", ""]`, "!empty"},
		{`[1, "1", true, "true"]`, "1 true"},
	})
}

// A misplaced name is refused, and the message contains it.
func TestLanguage_MisplacedNames(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`#`, "refused: # is the element of a list, and known only inside map, filter, any and all"},
		{`#index`, "refused: # is the element of a list, and known only inside map, filter, any and all"},
		{`map(body.xs, #acc)`, "refused: #acc is not known here: # is the element, and .name a field of it"},
		{`map(body.xs, #count)`, "refused: #count is not known here: names stand without #"},
		{`let x = 1; let y = x; y + x`, "refused: let is not known here: write the value where it is used, or register a variable for the value (WithVariable)"},
		{`string(1, 2)`, "refused: string cannot take 2 arguments"},
		{`nowhere(1)`, "refused: nowhere is not known here: register a variable for the value (WithVariable)"},
		{`body.x[1](2)`, "refused: unexpected token \"(\""},
		{`(1)[0]`, "refused: 1 is an integer and has no elements"},
		{`"abc".x`, "refused: \"abc\" is a string and has no field x"},
		{`any(body.xs, any(body.names, any(body.mixed, true)))`, "refused: any(…) cannot be inside another predicate: register a variable for the inner list (WithVariable)"},
	})
}

// Features of package expr that are not part of this language cannot be reached.
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

// lawExpressions are expressions over languageBody and a request. Together they use the whole language.
var lawExpressions = []string{
	`path.orderId`, `query.id[:]`, `query["id"][1]`, `header["x-id"]`, `body.text`, `body.items[1].sku`,
	`map(body.items, .sku)`, `map(body.items, .sku + path.shop)`, `filter(body.xs, # > 1)[:]`, `any(body.xs, string(#) == query.id[0])`, `body.t ? path.shop : query.none`,
	`body.f ? path.shop : header.none ?? principal`, `body.none ?? query.none ?? "none"`, `"a" in body.m1`, `method in ["GET", "POST"]`,
	`[method, path.shop]`, `first(map(query.id[:], upper(#)))`, `query.id[0] == "x"`, `all(body.xs, # > 0)`, `(path.shop + "-" + method) | lower()`, `body.n > 5 and path.shop != ""`,
	`body.xs == [3, 1, 2] or query.none == "x"`, `len(query.id[:]) + body.n`, `1 < body.n < 9`, `principal`, `string(body.n) + principal`, `not (body.null == nil)`,
	`1 + 1`, `"text"`, `[1, 2]`, `path.nowhere ?? 1`, `keys(body.m1)`,
}

func lawEnv(tb testing.TB) keyexpr.Values {
	tb.Helper()
	return request{
		path: entries{"orderId": {"42"}, "shop": {"s"}}, query: entries{"id": {"x", "y"}}, header: entries{"X-Id": {"h"}}, body: languageBody, principal: "p",
	}.env(tb)
}

// The right side of ?? does not matter if the left side has a value.
func TestLanguage_DefaultOfPresentValue(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`body.text`, `body.n`, `body.t`, `body.f`, `body.zero`, `body.big`, `body.xs[0]`, `body.m1.a`, `path.orderId`, `query.id[0]`, `query.id[1]`, `method`, `body.items[1].sku`,
		`upper(body.text)`, `body.n + 1`, `string(body.n)`, `first(filter(body.items, .n == 3)).sku`, `body.t ? 1 : 2`, `body.xs[:]`, `query.id[:]`, `map(body.items, .sku)`, `split(body.text, "-")`,
	} {
		bare := outcome(t, value)
		for _, other := range []string{`"x"`, `1`, `nil`, `body.nowhere`, `body.text`, `path.shop`, `1 % body.zero`, `[1]`} {
			if got := outcome(t, "("+value+") ?? "+other); got != bare && !strings.HasPrefix(got, "refused: ") && !isList(bare, got) {
				t.Errorf("%s yields %q, with ?? %s %q", value, bare, other, got)
			}
		}
	}
}

// isList reports whether got differs from bare only because the element type of a list is unknown under ??.
func isList(bare, got string) bool { return strings.Contains(bare, " ") && got == "!wrong_type" }

// A predicate can read its element and the variables outside it, but not the element of an earlier loop.
func TestLanguage_Scopes(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`map(map(body.items, .n), # * 2)`, "2 4 6"},
		{`map(body.items, method)`, "POST"},
		{`map(body.nested, len(#))`, "2"},
		{`map(body.nested, #[0])`, "1 3"},
		{`map(query.id[:], upper(#))`, "X Y"},
		{`any(body.items, .nowhere == 1)`, "!missing"},
		{`any(body.items, (.nowhere ?? 0) == 0)`, "true"},
		{`map(body.items, .sku.x)`, "!wrong_type"},
		{`map(body.items, #.sku)`, "a b c"},
		{`map(body.items, #["sku"])`, "a b c"},
		{`map(body.items, .n)[0]`, "2"},
	})
}

// The word in is a variable where an operand is expected, and an operator elsewhere.
func TestLanguage_VariableNamedIn(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[map[string]any](t)
	in := map[string]any{"a": "x", "list": []any{"x", "y"}, "in": "i", "no": "z"}
	for expression, want := range map[string]string{
		`in.a`: "x", `in["a"]`: "x", `in.in`: "i", `in["in"]`: "i", `in?.a`: "x", `in.a in in.list`: "true", `in.no in in.list`: "false", `in.no not in in.list`: "true",
		`not (in.a in in.list)`: "false", `"a" in in`: "true", `"b" in in`: "false", `[in.a, in.in]`: "i x", `(in).a`: "x", `-1 in [in.a, -1]`: "true", //nolint:dupword // a variable and an operator
		`upper(in.a) in ["X"]`: "true", `map(in.list, # in in.list)`: "true", `map(filter(in.list, # in [in.a]), upper(#))`: "X", `in.a == "x" ? in.in : in.no`: "i",
		`in.none ?? in.a`: "x", `"in" + in.a`: "inx", `/* in */ in.a`: "x",
	} {
		keys, err := compileFor(t, `#{`+expression+`}`, schema).Keys(keyexpr.Values{in})
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
	for expression, want := range map[string]string{
		`in.a in`: "ends too early", `in in`: "ends too early", `in in in in`: "ends too early", `in.`: "ends too early", `in "a"`: `unexpected token "a"`, `in 'a`: "no closing quote", //nolint:dupword // a variable and an operator
	} {
		_, err := keyexpr.Compile(`#{`+expression+`}`, schema)
		if err == nil || strings.Contains(err.Error(), "ɪ") {
			t.Errorf("%s: got %v", expression, err)
		}
		_, err = keyexpr.CompileCondition(expression, schema)
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || strings.Contains(err.Error(), "ɪ") || !strings.Contains(problem.Message, want) || problem.Line != 1 || problem.Column < 1 {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}
