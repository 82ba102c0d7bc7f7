package keyexpr_test

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// hostileRequest is the Env of a request of a size.
type hostileRequest struct {
	keyexpr.Values

	size int
}

func (h hostileRequest) Size() int { return h.size }

// hostile is an expression and the values that make it dear: the body for about n
// bytes of a request.
type hostile struct {
	name, expression string
	body             func(n int) map[string]any
}

func (h *hostile) env(load, size int) hostileRequest {
	return hostileRequest{keyexpr.Values{slotBody: h.body(load), slotMethod: "POST"}, size}
}

func (h *hostile) condition(tb testing.TB) *keyexpr.Condition {
	tb.Helper()
	c, err := keyexpr.CompileCondition(h.expression, requestSchema(tb))
	if err != nil {
		tb.Fatalf("%s: %v", h.expression, err)
	}
	return c
}

type object = map[string]any

func itoa(i int) string { return strconv.Itoa(i) }

func texts(n int) object { return object{"a": strings.Repeat("a", n), "b": "b", "n": n} }

// twoTexts are equal up to their ends.
func twoTexts(n int) object {
	a := strings.Repeat("a", n/2)
	return object{"a": a + "x", "b": strings.Clone(a) + "y"}
}

// needle begins like the text everywhere and ends otherwise.
func needle(n int) object {
	return object{"a": strings.Repeat("a", n/2) + strings.Repeat("a", n/4), "b": strings.Repeat("a", n/4) + "b"}
}

func wideTexts(n int) object {
	return object{"a": strings.Repeat("ɐ", n/4), "b": strings.Repeat("ɑ", n/4)}
}

func commas(n int) object { return object{"a": strings.Repeat(",", n), "b": ","} }

func csv(n int) object {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strconv.Itoa(i) + ",")
	}
	return object{"a": b.String()}
}

// list has up to 1,000 elements, the most that an expression takes.
func list(n, each int, element func(i int) any) []any {
	elements := make([]any, min(n/each, 1000))
	for i := range elements {
		elements[i] = element(i)
	}
	return elements
}

func numbers(n int) object {
	return object{"xs": list(n/2, 5, func(i int) any { return 1000 + i }), "ys": list(n/2, 5, func(i int) any { return 5000 + i })}
}

// longNames are lists of texts that are alike for long.
func longNames(n int) object {
	each := max(n/2000, 8)
	stem := strings.Repeat("a", each)
	name := func(last string) func(int) any {
		return func(i int) any { return stem + strconv.Itoa(10_000+i) + last }
	}
	return object{"xs": list(n/2, each+8, name("x")), "ys": list(n/2, each+8, name("y")), "a": stem + "00000z"}
}

// objects are lists of objects with many names.
func objects(n int) object {
	fields := max(n/2000/6, 1)
	element := func(i int) any {
		o := object{"id": i}
		for f := range fields {
			o["f"+strconv.Itoa(f)] = i
		}
		return o
	}
	return object{"xs": list(n/2, fields*6, element), "ys": list(n/2, fields*6, element)}
}

// deep are lists inside of lists.
func deep(n int) object {
	leaves := make([]any, max(n/2-256, 0)/2)
	for i := range leaves {
		leaves[i] = 1
	}
	var inner any = leaves
	for range min(n/4, 250) {
		inner = []any{inner}
	}
	return object{"xs": []any{inner}, "ys": []any{inner}}
}

func names(n int) object {
	m := object{}
	for i := range n / 12 {
		m["name"+strconv.Itoa(i)] = i
	}
	return object{"m": m, "xs": list(n, 12, func(i int) any { return "other" + strconv.Itoa(i) })}
}

func digits(n int) object {
	return object{"a": strings.Repeat("7", n), "xs": list(n, 900, func(int) any { return "1" + strings.Repeat("7", 800) + "e-1000" })}
}

// hardNumbers are short texts that take long to be read as numbers, numbers to compare
// them with, and integers that are longer than an int.
func hardNumbers(n int) object {
	hard := []string{"2.4703282292062327e-324", "2.2250738585072011e-308", "9007199254740993", "0." + strings.Repeat("0", 323) + "24703282292062327"}
	long := strings.Repeat("9", max(n/2, 20))
	return object{
		"xs": list(n/4, 30, func(i int) any { return hard[i%len(hard)] }), "ys": list(n/4, 30, func(i int) any { return i + 2 }),
		"n": json.Number(long), "m": json.Number("1" + long),
	}
}

func encoded(n int) object {
	return object{"a": base64.StdEncoding.EncodeToString(make([]byte, n*3/4))}
}

// hostiles has a sample at least for each name that pays for itself and each loop.
var hostiles = []hostile{
	{"+", `body.a + body.a != body.b`, texts},
	{"+ again and again", `let a = body.a + body.a; let b = a + a; let c = b + b; let d = c + c; d + d != body.b`, texts},
	{"==", `body.a == body.b`, twoTexts},
	{"== of lists", `any(body.xs, body.xs == body.ys)`, longNames},
	{"== of objects", `body.xs == body.ys`, objects},
	{"== of numbers", `any(body.xs, # == 1)`, hardNumbers},
	{"== of lists of numbers", `any(body.ys, body.xs == body.ys)`, hardNumbers},
	{"== of long integers", `any(body.ys, body.n == body.m)`, hardNumbers},
	{"in numbers", `any(body.xs, # in body.ys)`, hardNumbers},
	{"!=", `body.a != body.b`, twoTexts},
	{"<", `any(body.xs, # < body.a)`, longNames},
	{"<=", `none(body.xs, # <= body.a)`, longNames},
	{">", `all(body.xs, # > body.a)`, longNames},
	{">=", `all(body.xs, # >= body.a)`, longNames},
	{"in", `any(body.xs, # in body.ys)`, longNames},
	{"in an object", `any(body.xs, # in body.m)`, names},
	{"in split", `any(body.xs, body.a in split(body.b, ","))`, func(n int) object {
		return object{"a": "a", "b": strings.Repeat("b,", n/2), "xs": list(n, 100, func(i int) any { return i })}
	}},
	{"..", `len(1..body.n) > 1`, texts},
	{".. in a loop", `any(1..body.n, # == -1)`, texts},
	{"contains", `body.a contains body.b`, needle},
	{"contains a short text", `any(body.xs, body.b contains #)`, func(n int) object {
		return object{"b": strings.Repeat("a", n/2), "xs": list(n/2, 20, func(int) any { return "aaaaaaaaaaaab" })}
	}},
	{"startsWith", `any(body.xs, # startsWith body.a)`, longNames},
	{"endsWith", `any(body.xs, # endsWith body.a)`, longNames},
	{"matches", `body.a matches "^(a+)+(b|c|d)+$"`, texts},
	{"matches a large pattern", `body.a matches "(a|b|ab|ba){1,50}x{1,50}$"`, texts},

	{"hasPrefix", `any(body.xs, hasPrefix(#, body.a))`, longNames},
	{"hasSuffix", `any(body.xs, hasSuffix(#, body.a))`, longNames},
	{"indexOf", `indexOf(body.a, body.b) > 0`, needle},
	{"lastIndexOf", `lastIndexOf(body.a, body.b) > 0`, needle},
	{"trim", `trim(body.a) == "x"`, func(n int) object { return object{"a": strings.Repeat(" ", n)} }},
	{"trim a set", `trim(body.a, body.b) == "x"`, func(n int) object {
		return object{"a": strings.Repeat("ɐ", n/4), "b": strings.Repeat("ɑ", min(n/4, 200)) + "ɐ"}
	}},
	{"trimPrefix", `any(body.xs, trimPrefix(#, body.a) == "x")`, longNames},
	{"trimSuffix", `any(body.xs, trimSuffix(#, body.a) == "x")`, longNames},
	{"upper", `upper(body.a) == "x"`, wideTexts},
	{"upper of ASCII", `upper(body.a) == "x"`, texts},
	{"lower", `lower(body.a) == "x"`, func(n int) object { return object{"a": strings.Repeat("Ⱥ", n/2)} }},
	{"split", `len(split(body.a, body.b)) == 0`, commas},
	{"split with a limit", `len(split(body.a, "x", 1000000000)) == 0`, texts},
	{"splitAfter", `len(splitAfter(body.a, "")) == 0`, texts},
	{"replace", `replace(body.a, "", body.b) == "x"`, func(n int) object {
		return object{"a": strings.Repeat("a", n/2), "b": strings.Repeat("b", n/2)}
	}},
	{"join", `join(split(body.a, ""), body.b) == "x"`, func(n int) object {
		return object{"a": strings.Repeat("a", n/2), "b": strings.Repeat("b", n/2)}
	}},
	{"join in a loop", `any(body.xs, join(body.ys, #) == "x")`, longNames},
	{"toBase64", `toBase64(body.a) == "x"`, texts},
	{"fromBase64", `fromBase64(body.a) == "x"`, encoded},
	{"len", `any(body.xs, len(body.a) == 0)`, func(n int) object {
		return object{"a": strings.Repeat("ɐ", n/4), "xs": list(n/2, 2, func(i int) any { return i })}
	}},
	{"float", `any(body.xs, float(#) == 0)`, digits},
	{"float of few bytes", `any(body.xs, float(#) == 1)`, hardNumbers},
	{"int", `int(body.a) == 0`, func(n int) object { return object{"a": strings.Repeat("0", n)} }},
	{"string", `any(body.xs, string(#) == "x")`, longNames},
	{"type", `any(body.xs, type(#) == "x")`, objects},
	{"keys", `len(keys(body.m)) == 0`, names},
	{"values", `len(values(body.m)) == 0`, names},

	{"uniq", `len(uniq(split(body.a, ","))) == 0`, csv},
	{"uniq of long integers", `any(body.ys, len(uniq([body.n, body.n, body.m])) == 0)`, hardNumbers},
	{"uniq of objects", `len(uniq(body.xs)) == 0`, objects},
	{"flatten", `len(flatten(body.xs)) == 0`, deep},
	{"concat", `let a = concat(body.xs, body.xs); let b = concat(a, a); let c = concat(b, b); let d = concat(c, c); let e = concat(d, d); len(concat(e, e)) == 0`, numbers},
	{"reverse", `len(reverse(split(body.a, ","))) == 0`, commas},
	{"sort", `len(sort(split(body.a, ","))) == 0`, csv},
	{"sort long texts", `any(body.xs, len(sort(body.ys)) == 0)`, longNames},
	{"max", `max(body.xs, body.ys) == 0`, deep},
	{"min", `min(body.xs, body.ys) == 0`, deep},
	{"mean", `mean(body.xs) == 0`, deep},
	{"median", `median(body.xs) == 0`, deep},

	{"any", `any(body.xs, {let x = #; any(body.ys, # == x)})`, numbers},
	{"any of fields", `any(body.xs, {let x = #; any(body.ys, .f0 == x.id + 1000000 or (.nowhere ?? 0) == 1)})`, objects},
	{"all", `all(body.xs, {let x = #; all(body.ys, # != x)})`, numbers},
	{"none", `none(body.xs, {let x = #; not none(body.ys, # == x)})`, numbers},
	{"one", `one(body.xs, {let x = #; one(body.ys, # == x)})`, numbers},
	{"count", `count(body.xs, {let x = #; count(body.ys, # == x) > 1}) > 5`, numbers},
	{"sum", `sum(body.xs, {let x = #; sum(body.ys, # + x)}) > 5`, numbers},
	{"find", `find(body.xs, {let x = #; find(body.ys, # == x) == x}) == 5`, numbers},
	{"findIndex", `findIndex(body.xs, {let x = #; findIndex(body.ys, # == x) == x}) == 5`, numbers},
	{"map", `len(map(body.xs, {let x = #; map(body.ys, {[#, x]})})) == 0`, numbers},
	{"map of a long list", `len(map(split(body.a, ","), # + "x")) == 0`, commas},
	{"map literals", `len(map(body.xs, {let x = #; map(body.ys, {{"a": #, "b": x}})})) == 0`, numbers},
	{"filter", `len(filter(body.xs, {let x = #; len(reverse(filter(body.ys, # != x))) > 0})) == 0`, numbers},
	{"sortBy", `len(sortBy(body.xs, {let x = #; len(sortBy(body.ys, -#)) + x})) == 0`, numbers},
	{"sortBy long texts", `any(body.xs, len(sortBy(body.ys, #)) == 0)`, longNames},
	{"slices of a text", `any(body.xs, body.a[#:] == body.b)`, func(n int) object {
		return object{"a": strings.Repeat("a", n/2), "b": strings.Repeat("a", n/4), "xs": list(n/4, 2, func(i int) any { return i })}
	}},
	{"names of new objects", `any(body.xs, len({(body.a): 1}) == 2)`, func(n int) object {
		return object{"a": strings.Repeat("a", n/2), "xs": list(n/2, 2, func(i int) any { return i })}
	}},
	{"slices", `any(body.xs, len(map(body.ys, body.xs[#:])) == 0)`, numbers},
	{"computed names", `any(body.xs, (body.m[#] ?? 0) == 1)`, names},
	{"computed elements of split", `any(body.xs, split(body.a, ",")[#] == "x")`, func(n int) object {
		return object{"a": strings.Repeat(",", n/2), "xs": list(n/2, 2, func(i int) any { return i % max(n/2, 1) })}
	}},
	{"arithmetic", `any(body.xs, {let x = #; any(body.ys, (x * # + 7 - 3) % 5 / 2.5 > 100 or bitxor(x, #) == -1 or abs(-x) ** 2 < 0)})`, numbers},
}
