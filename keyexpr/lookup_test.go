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
		{`query.id[5] ?? "none"`, "none"},
		{`query.id[-1]`, "refused: a repeated value is counted from its first, 0"},
		{`query.id[:][-1]`, "y"},
		{`query.id[:][1:]`, "y"},
		{`path["orderId"]`, "42"},
		{`path["order" + "Id"]`, "refused: a name is a literal text and an index a literal integer: register a variable for what is chosen otherwise"},
		{`path?.orderId`, "42"},
		{`(path).orderId`, "42"},
		{`path["nothing"]`, "refused: there is no path parameter nothing: there are orderId, shop"},
		{`path.orderId[:]`, "42"},
		{`method[:]`, "POST"},
		// what is made by the expression
		{`keys(body.m1)[-1]`, "b"},
		{`(body.t ? body.xs : body.text)[:]`, "1 2 3"},
		{`(body.f ? body.xs : body.text)[:]`, "!wrong_type"},
		{`last(body.none)[:]`, "!missing"},
		{`body.null[:] ?? query.id[:]`, "x y"},
		{`body.m1[:]`, "!wrong_type"},
		{`(1)[:]`, "refused: 1 is an integer and cannot be sliced"},
		// several statements
		{`1; 2; body.n`, "refused: an expression is one value, without ;: write the value where it is used, or register a variable"},
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

// What reads like a name with hyphens, a method or a call is said to be none.
func TestLanguage_Habits(t *testing.T) {
	t.Parallel()
	checkSamples(t, []sample{
		{`header.X-Id ?? "d"`, "refused: header.X-Id is a subtraction"},
		{`query.a-b`, "refused: query.a-b is a subtraction"},
		{`query["a"]-b`, "refused: - cannot take a string"},
		{`header.X-Id-path.orderId`, "refused: header.X-Id-path is a subtraction"},
		{`path.orderId-1`, "refused: - cannot take a string"},
		{`method-x`, "refused: - cannot take a string"},
		{`body.a-b`, "refused: unknown name b: there are body, header, method, path, principal, query"},
		{`body()`, "refused: body is not known here: register a variable for the value"},
		{`unknown(1)`, "refused: unknown is not known here: register a variable for the value"},
		{`body.text()`, "refused: methods cannot be called: .text(): register a variable for the value"},
		{`body.text.trim()`, "refused: methods cannot be called: .trim()"},
		{`body.names.get(0)`, "refused: methods cannot be called: .get()"},
		{`body[path.orderId].size()`, "refused: methods cannot be called: .size()"},
		{`principal.x`, "refused: principal is a string and has no field x"},
		{`principal[0]`, "refused: principal is a string and has no elements"},
		{`map(principal, #)`, "refused: map cannot take a string"},
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
		{`"a" + 1`, "refused: + cannot take a string and an integer"},
		{`1 + "a"`, "refused: + cannot take an integer and a string"},
		{`body.n + "a"`, "!expression"},
		{`body.text + body.n`, "!expression"},
		{`body.t + body.t`, "!expression"},
		{`body.xs + body.xs`, "!expression"},
		{`body.text + string(body.n)`, "Ab-cD7"},
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
		{`body.text matches "^A"`, "refused: matches is not known here: register a variable for the value"},
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
		{`int("0x10")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int(" 1")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int("9223372036854775808")`, "refused: cannot be computed for these values: int cannot take a string, only an integer or the text of one"},
		{`int(1.5)`, "refused: cannot be computed for these values: int cannot take a number with a fraction or exponent, only an integer or the text of one"},
		{`1 % 0`, "refused: cannot be computed for these values: an integer is divided by zero"},
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
