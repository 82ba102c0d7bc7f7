package keyexpr_test

import (
	"testing"
)

// Names and indexes, written out or computed: what they find, and what is said of those
// that find nothing.
func TestLanguage_Lookups(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		// entries of a keyed variable
		{`query["id"][0]`, "x"},
		{`query["id"][:]`, "x y"},
		{`query[lower("ID")]`, "!repeated"},
		{`query[lower("ID")][:]`, "x y"},
		{`query[lower("ID")][0]`, `refused: query[lower("ID")] is a string and has no elements`},
		{`query[body.other] ?? "none"`, "none"},
		{`query[body.n]`, "!wrong_type"},
		{`query[body.null]`, "!missing"},
		{`query.id[5] ?? "none"`, "none"},
		{`query.id[-1]`, "refused: a repeated value is counted from its first, 0"},
		{`query.id[:][-1]`, "y"},
		{`query.id[:][1:]`, "y"},
		{`path["orderId"]`, "42"},
		{`path["order" + "Id"]`, "42"},
		{`path[lower("orderId")]`, "!missing"},
		{`path?.orderId`, "42"},
		{`(path).orderId`, "42"},
		{`path["nothing"]`, "refused: there is no path parameter nothing: there are orderId, shop"},
		{`path.orderId[:]`, "42"},
		{`method[:]`, "POST"},
		// what is made by the expression
		{`[body.m1, {"a": 1}][0].a`, "2"},
		{`{"k": body.n, "l": 2}.k`, "7"},
		{`{(body.other): 1}.b`, "1"},
		{`{(body.n): 1}["7"]`, "!expression"},
		{`{"a": body.nowhere}.a`, "!missing"},
		{`{"a": body.nowhere ?? 1}.a`, "1"},
		{`values(body.m1)[0]`, "2"},
		{`keys(body.m1)[-1]`, "b"},
		{`(body.t ? body.xs : body.text)[:]`, "1 2 3"},
		{`(body.f ? body.xs : body.text)[:]`, "!wrong_type"},
		{`find(body.nested, false)[:]`, "!missing"},
		{`last(body.none)[:]`, "!missing"},
		{`body.null[:] ?? query.id[:]`, "x y"},
		{`body.m1[:]`, "!wrong_type"},
		{`(1)[:]`, "refused: 1 is an integer and cannot be sliced"},
		{`body.m1[1.5]`, "refused: a name or an index cannot be a float"},
		{`body.xs[true]`, "refused: a name or an index cannot be a bool"},
		{`body.xs[body.text]`, "!wrong_type"},
		{`body.m1[body.xs]`, "!wrong_type"},
		{`body.text[body.n]`, "!wrong_type"},
		{`body.xs[body.zero]`, "3"},
		{`body.xs[body.neg] ?? "none"`, "none"},
		// several statements
		{`1; 2; body.n`, "7"},
		{`body.nowhere; body.n`, "!missing"},
		{`let x = body.n; x + 1; x`, "7"},
		{`let x = query.id[:]; x[1]`, "y"},
		{`let path = "own"; path`, "own"},
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
		{`7 in 1..9`, "true"},
		{`body.n in 1..9`, "true"},
		{`body.n in 8..9`, "false"},
		{`body.half in 1..9`, "false"},
		{`int(body.digits) in 1..12`, "true"},
		{`int(body.digits) in 13..9`, "false"},
		{`int(body.digits) not in 1..12`, "false"},
		{`int(body.digits) in body.zero..12`, "true"},
		{`body.text not in ["a"]`, "true"},
		{`body.big in [1]`, "!expression"},
		{`"x" in query.id[:]`, "true"},
	})
}

// What reads like a name with hyphens, a method or a call is said to be none.
func TestLanguage_Habits(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`header.X-Id ?? "d"`, "refused: header.X-Id is a subtraction"},
		{`query.a-b`, "refused: query.a-b is a subtraction"},
		{`query["a"]-b`, "refused: query.a-b is a subtraction"},
		{`header.X-Id-path.orderId`, "refused: header.X-Id is a subtraction"},
		{`path.orderId-1`, "refused: invalid operation: - (mismatched types string and int)"},
		{`method-x`, "refused: unknown name x: there are body, header, method, path, principal, query"},
		{`body.a-b`, "refused: unknown name b: there are body, header, method, path, principal, query"},
		{`body()`, "refused: unknown function body"},
		{`unknown(1)`, "refused: unknown function unknown"},
		{`body.text()`, "refused: methods cannot be called: .text()"},
		{`body.text.trim()`, "refused: methods cannot be called: .trim()"},
		{`body.names.get(0)`, "refused: methods cannot be called: .get()"},
		{`body[path.orderId].size()`, "refused: methods cannot be called: .size()"},
		{`map(body.items, #acc)`, "refused: unknown pointer #acc"},
		{`principal.x`, "refused: principal is a string and has no field x"},
		{`principal[0]`, "refused: principal is a string and has no elements"},
		{`map(principal, #)`, "refused: builtin map takes only array (got string)"},
		{`query.id[0].x`, "refused: query.id[0] is a string and has no field x"},
		{`(path ?? 1).orderId`, "refused: path is a set of values, one per path parameter"},
		{`[query]`, "refused: query is a set of values, one per query parameter"},
		{`len(header)`, "refused: header is a set of values, one per header"},
	})
}

// Operands of another type are refused where the types are known, and fail where not.
func TestLanguage_Operands(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`"a" + 1`, "refused: invalid operation: + (mismatched types string and int)"},
		{`1 + "a"`, "refused: invalid operation: + (mismatched types int and string)"},
		{`body.n + "a"`, "!expression"},
		{`body.text + body.n`, "!expression"},
		{`body.t + body.t`, "!expression"},
		{`body.xs + body.xs`, "!expression"},
		{`body.text + string(body.n)`, "Ab-cD7"},
		{`string(body.t) + "-" + string(body.n)`, "true-7"},
		{`not 1`, "refused: invalid operation: not (mismatched type int)"},
		{`-"a"`, "refused: invalid operation: - (mismatched type string)"},
		{`-body.text`, "!expression"},
		{`-body.neg`, "7"},
		{`+body.n`, "7"},
		{`7 % 2.5`, "refused: invalid operation: % (mismatched types int and float64)"},
		{`body.n % body.zero`, "!expression"},
		{`body.n % body.half`, "!expression"},
		{`body.n % 4`, "3"},
		{`body.neg % 4`, "-3"},
		{`body.text matches "^A"`, "true"},
		{`body.n matches "^A"`, "!expression"},
		{`body.null matches "^A"`, "!missing"},
		{`body.text matches "("`, "refused: error parsing regexp: missing closing ): `(`"},
		{`body.text not matches "^A"`, "false"},
		{`body.text not contains "z"`, "true"},
		{`body.text contains body.n`, "!expression"},
		{`body.null contains "a"`, "!missing"},
		{`body.text startsWith body.text`, "true"},
		{`body.big == body.big`, "!expression"},
		{`body.big ?? 1`, "18446744073709551615"},
		{`string(body.big)`, "18446744073709551615"},
		{`int(body.big)`, "!expression"},
		{`body.null ?? nil`, "!missing"},
		{`(body.null ?? nil) == nil`, "true"},
		{`nil == nil`, "true"},
		{`body.half > body.m`, "false"},
		{`body.text < body.other`, "true"},
		{`body.text < body.n`, "!expression"},
		{`body.xs < body.xs`, "!expression"},
	})
}

// A constant that cannot be computed is refused with the reason.
func TestLanguage_Constants(t *testing.T) {
	t.Parallel()
	const failed = "refused: cannot be computed for these values: "
	checkSamples(t, []sample{
		{`0x10`, "16"},
		{`1_000`, "1000"},
		{`9223372036854775807`, "9223372036854775807"},
		{`9223372036854775807 + 1`, "-9223372036854775808"},
		{`"\u00e9"`, "é"},
		{"`raw`", "raw"},
		{`int("+1")`, "1"},
		{`int("01")`, "1"},
		{`int(1e3)`, "1000"},
		{`int("0x10")`, failed + "int() cannot take a string that is no integer"},
		{`int(" 1")`, failed + "int() cannot take a string that is no integer"},
		{`int("9223372036854775808")`, failed + "int() cannot take a string that is no integer"},
		{`int(1.5)`, failed + "int() cannot take a number with a fraction or exponent that is no integer"},
		{`float("inf") > 1`, failed + "float() cannot take a string that is no number"},
		{`bitshl(1, -1)`, failed + "invalid operation: negative shift count"},
		{`fromBase64("!")`, failed + "illegal base64 data at input byte 0"},
		{`1 % 0`, failed + "runtime error: integer divide by zero"},
		{`"a\x00"`, "refused: the control character U+0000 does not belong into a key"},
		{`"a" + "\n"`, "refused: the control character U+000A does not belong into a key"},
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
