package keyexpr_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// hostileCase is an expression with values that make it expensive. body returns the values of a request of about
// n bytes.
type hostileCase struct {
	name, expression string
	body             func(n int) map[string]any
}

func (h *hostileCase) env(load int) keyexpr.Values {
	return keyexpr.Values{slotBody: h.body(load), slotMethod: "POST"}
}

func (h *hostileCase) condition(tb testing.TB) *keyexpr.Condition {
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

// twoTexts returns texts that differ only at their ends.
func twoTexts(n int) object {
	a := strings.Repeat("a", n/2)
	return object{"a": a + "x", "b": strings.Clone(a) + "y"}
}

func wideTexts(n int) object {
	return object{"a": strings.Repeat("ɐ", n/4), "b": strings.Repeat("ɑ", n/4)}
}

func commas(n int) object { return object{"a": strings.Repeat(",", n), "b": ","} }

// list returns a list of at most 1,000 elements, the most that an expression accepts.
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

// longNames returns lists of texts with a long common beginning.
func longNames(n int) object {
	each := max(n/2000, 8)
	stem := strings.Repeat("a", each)
	name := func(last string) func(int) any {
		return func(i int) any { return stem + strconv.Itoa(10_000+i) + last }
	}
	return object{"xs": list(n/2, each+8, name("x")), "ys": list(n/2, each+8, name("y")), "a": stem + "00000z"}
}

// objects returns lists of objects with many names.
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

// deep returns deeply nested lists.
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
		m["name"+itoa(i)] = i
	}
	return object{"m": m, "xs": list(n, 12, func(i int) any { return "other" + itoa(i) })}
}

func digits(n int) object {
	return object{"a": strings.Repeat("7", n), "xs": list(n, 900, func(int) any { return "1" + strings.Repeat("7", 800) + "e-1000" })}
}

// hardNumbers returns short texts that are slow to parse as numbers, numbers to compare them with, and
// integers that are longer than an int.
func hardNumbers(n int) object {
	hard := []string{"2.4703282292062327e-324", "2.2250738585072011e-308", "9007199254740993", "0." + strings.Repeat("0", 323) + "24703282292062327"}
	long := strings.Repeat("9", max(n/2, 20))
	return object{
		"xs": list(n/4, 30, func(i int) any { return hard[i%len(hard)] }), "ys": list(n/4, 30, func(i int) any { return i + 2 }),
		"n": json.Number(long), "m": json.Number("1" + long),
	}
}

// longElements returns many elements and one long text.
func longElements(n int) object {
	return object{"a": strings.Repeat("a", min(n/2, 4000)), "xs": list(n/2, 3, func(i int) any { return itoa(i) })}
}

func wideElements(n int) object {
	return object{"xs": list(n, max(n/1000, 4), func(i int) any { return strings.Repeat("Ⱥ", max(n/1000, 4)/2) + itoa(i) })}
}

// hostileCases contains at least one sample for each function and operator whose operands can be long.
var hostileCases = []hostileCase{
	{"+", `body.a + body.a != body.b`, texts},
	{"+ in a loop", `any(body.xs, # + body.a == "x")`, longElements},
	{"+ of all", `len(map(body.xs, # + body.a)) == 0`, longElements},
	{"==", `body.a == body.b`, twoTexts},
	{"== of lists", `any(body.xs, body.xs == body.ys)`, longNames},
	{"== of lists of lists", `any(body.xs, body.xs == body.ys)`, deep},
	{"== of numbers", `any(body.xs, # == 1)`, hardNumbers},
	{"== of lists of numbers", `any(body.ys, body.xs == body.ys)`, hardNumbers},
	{"== of long integers", `any(body.ys, body.n == body.m)`, hardNumbers},
	{"== of digits", `any(body.xs, body.a == 7)`, digits},
	{"!=", `body.a != body.b`, twoTexts},
	{"<", `any(body.xs, # < body.a)`, longNames},
	{"<=", `any(body.xs, not (# <= body.a))`, longNames},
	{">", `all(body.xs, # > body.a)`, longNames},
	{">=", `all(body.xs, # >= body.a)`, longNames},
	{"in", `any(body.xs, # in body.ys)`, longNames},
	{"in numbers", `any(body.xs, # in body.ys)`, hardNumbers},
	{"in an object", `any(body.xs, # in body.m)`, names},
	{"in split", `any(body.xs, body.a in split(body.b, ","))`, func(n int) object {
		return object{"a": "a", "b": strings.Repeat("b,", min(n/2, 900)), "xs": list(n, 100, func(i int) any { return i })}
	}},
	{"trim", `trim(body.a) == "x"`, func(n int) object { return object{"a": strings.Repeat(" ", n)} }},
	{"trim in a loop", `any(body.xs, trim(body.a) == #)`, longElements},
	{"upper", `upper(body.a) == "x"`, wideTexts},
	{"upper in a loop", `any(body.xs, upper(#) == "x")`, wideElements},
	{"lower", `lower(body.a) == "x"`, func(n int) object { return object{"a": strings.Repeat("Ⱥ", n/2)} }},
	{"lower in a loop", `any(body.xs, lower(body.a + #) == "x")`, longElements},
	{"nfc", `any(body.xs, nfc(body.a) == #)`, func(n int) object {
		return object{"a": "a" + strings.Repeat("\u0316\u0301", min(n/8, 1000)), "xs": list(n/2, 3, func(i int) any { return itoa(i) })}
	}},
	{"nfc that grows", `any(body.xs, nfc(body.a) == #)`, func(n int) object {
		return object{"a": strings.Repeat("\U0001D160", min(n/8, 1000)), "xs": list(n/2, 3, func(i int) any { return itoa(i) })}
	}},
	{"split", `len(split(body.a, ",")) == 0`, commas},
	{"split in a loop", `any(body.xs, len(split(body.a, "a")) == 0)`, longElements},
	{"len", `any(body.xs, len(body.a) == 0)`, func(n int) object {
		return object{"a": strings.Repeat("ɐ", min(n/4, 2000)), "xs": list(n/2, 2, func(i int) any { return i })}
	}},
	{"int", `int(body.a) == 0`, func(n int) object { return object{"a": strings.Repeat("0", n)} }},
	{"int in a loop", `any(body.xs, int(body.a) == #)`, func(n int) object {
		return object{"a": strings.Repeat("0", min(n/2, 4000)), "xs": list(n/2, 2, func(i int) any { return i + 1 })}
	}},
	{"string", `any(body.xs, string(#) == "x")`, longNames},
	{"keys", `len(keys(body.m)) == 0`, names},
	{"keys in a loop", `any(body.xs, len(keys(body.m)) == 0)`, func(n int) object {
		m := object{}
		for i := range min(n/24, 1000) {
			m["name"+itoa(i)] = i
		}
		return object{"m": m, "xs": list(n/2, 2, func(i int) any { return i })}
	}},
	{"first", `any(body.xs, first(body.ys) == #)`, longNames},
	{"last", `any(body.xs, last(body.ys) == #)`, longNames},
	{"any", `any(body.xs, # == body.a)`, longNames},
	{"any of fields", `any(body.xs, .f0 == .id + 1000000 or (.nowhere ?? 0) == 1)`, objects},
	{"all", `all(body.xs, # != 1)`, numbers},
	{"map", `len(map(body.xs, [#, #])) == 0`, numbers},
	{"map a new list", `len(map(body.xs, [#, body.a, # + body.a])) == 0`, longElements},
	{"filter", `len(filter(body.xs, # != 1)) == 0`, numbers},
	{"slices of a text", `any(body.xs, body.a[2:] == body.b)`, func(n int) object {
		return object{"a": strings.Repeat("a", n/2), "b": strings.Repeat("a", max(n/2-2, 0)), "xs": list(n/4, 2, func(i int) any { return i })}
	}},
	{"slices of a list", `any(body.ys, body.xs[1:] == body.xs[:-1])`, func(n int) object {
		return object{"xs": list(n/2, 2, func(int) any { return 1 }), "ys": list(n/2, 2, func(i int) any { return i })}
	}},
	{"elements of split", `any(body.xs, split(body.a, ",")[1] == "x")`, func(n int) object {
		return object{"a": strings.Repeat(",", min(n/2, 999)), "xs": list(n/2, 2, func(i int) any { return i % max(n/2, 1) })}
	}},
	{"arithmetic", `any(body.xs, (# * # + 7 - 3) % 5 / 2.5 > 100 or -# * 2 > 0)`, numbers},
}
