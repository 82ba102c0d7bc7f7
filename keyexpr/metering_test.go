package keyexpr_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// Everything that can be dear is free to use in a request of ordinary size.
func TestMetering_OrdinaryRequestsAreAccepted(t *testing.T) {
	t.Parallel()
	for i := range hostiles {
		h := &hostiles[i]
		if got := judge(t, h.condition(t), h.env(250, 250)); got.refused {
			t.Errorf("%s: 250 bytes are refused", h.name)
		}
	}
}

// A larger request of the same kind never costs less, so that what is accepted of it is
// what is accepted of a smaller one.
func TestMetering_RisesWithTheValues(t *testing.T) {
	t.Parallel()
	for i := range hostiles {
		h := &hostiles[i]
		c := h.condition(t)
		before := verdict{}
		for _, load := range []int{500, 1000, 2000, 4000} {
			got := judge(t, c, h.env(load, 4000))
			if got.refused {
				break
			}
			if got.work+got.work/10 < before.work {
				t.Errorf("%s: %d bytes cost %+v, half of it %+v", h.name, load, got, before)
			}
			before = got
		}
	}
}

// What is refused once is refused for every larger request of the same budget.
func TestMetering_RefusesWhatIsLarger(t *testing.T) {
	t.Parallel()
	for i := range hostiles {
		h := &hostiles[i]
		c := h.condition(t)
		refusedAt := 0
		for _, load := range []int{1000, 4000, 16_000, 64_000, 256_000} {
			refused := judge(t, c, h.env(load, 16_000)).refused
			if refused && refusedAt == 0 {
				refusedAt = load
			}
			if !refused && refusedAt > 0 && !strings.Contains(h.name, "large pattern") {
				t.Errorf("%s: refused at %d bytes, accepted at %d", h.name, refusedAt, load)
			}
		}
	}
}

// A program costs something before it starts: all of its nodes, and each turn of a loop.
func TestMetering_CountsNodesAndTurns(t *testing.T) {
	t.Parallel()
	cost := func(expression string, n int) verdict {
		return judge(t, (&hostile{expression: expression}).condition(t), hostileRequest{keyexpr.Values{slotBody: numbers(n * 10)}, 1 << 20})
	}
	if small, large := cost(`1 < 2`, 1), cost(`1 < 2 and 2 < 3 and 3 < 4 and method != "a"`, 1); small.work > large.work {
		t.Errorf("a short expression costs %+v, a long one %+v", small, large)
	}
	one, ten := cost(`any(body.xs, # == -1)`, 10), cost(`any(body.xs, # == -1)`, 100)
	if ten.work < 5*one.work {
		t.Errorf("10 turns cost %+v, 100 %+v", one, ten)
	}
	nested := cost(`any(body.xs, {let x = #; any(body.ys, # == x)})`, 100)
	if nested.work < 50*ten.work {
		t.Errorf("100 turns cost %+v, 100 by 100 %+v", ten, nested)
	}
	early, late := cost(`any(body.xs, # == 1000)`, 100), cost(`any(body.xs, # == 9999)`, 100)
	if early != late {
		t.Errorf("a loop that ends early costs %+v, another one %+v", early, late)
	}
}

// What is paid once is paid by whom uses it: a variable that is only named costs little.
func TestMetering_ReferencesAreCheap(t *testing.T) {
	t.Parallel()
	large := keyexpr.Values{slotBody: object{"a": strings.Repeat("a", 1<<20), "b": "b"}, slotMethod: "POST"}
	for _, expression := range []string{`body.a != nil`, `body.b == "b"`, `body.nowhere == ""`, `(body.a ?? "") != ""`, `method == "POST"`, `body.a startsWith "b"`} {
		work, bytes, err := (&hostile{expression: expression}).condition(t).Spent(hostileRequest{large, 0})
		if err != nil || work > 2000 || bytes > 2000 {
			t.Errorf("%s: costs %d and %d bytes, %v", expression, work, bytes, err)
		}
	}
}

// The key of a large request is built as long as its parts are small.
func TestMetering_KeyOfALargeRequest(t *testing.T) {
	t.Parallel()
	ids := list(1000, 1, func(i int) any { return i })
	env := hostileRequest{keyexpr.Values{slotBody: object{"id": "7", "ids": ids, "blob": strings.Repeat("x", 1<<20)}}, 1 << 20}
	for template, want := range map[string]int{
		`o:#{body.id}`: 1, `o:#{upper(body.id)}`: 1, `o:#{body.ids[:]}`: 1000, `o:#{map(body.ids, # + 1)}`: 1000, `o:#{filter(body.ids, # > 989)}`: 10,
		`o:#{sort(body.ids)}:#{body.id}`: 1000, `o:#{uniq(map(body.ids, # % 7))}`: 7,
	} {
		keys, err := compile(t, template, keyexpr.MaxElements(1000)).Keys(env)
		if err != nil || len(keys) != want {
			t.Errorf("%s: got %d keys, %v, want %d", template, len(keys), err, want)
		}
	}
}

// comparable values of each kind, for ==.
func comparables() []any {
	return []any{
		nil, "", "a", "1", "1.0", "true", 0, 1, -1, 1.0, 1.5, true, false, uint64(1 << 63),
		[]any{},
		[]any{1},
		[]any{"1"},
		[]any{1, 2},
		[]string{"a"},
		[]int{1},
		object{},
		object{"a": 1},
		object{"a": "1"},
		object{"b": 1},
		object{"a": 1, "b": []any{1}},
	}
}

// == gives the same answer, or none, for both orders of its operands, and each value is
// itself.
func TestEqual_IsSymmetric(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `body.a == body.b`}).condition(t)
	ask := func(a, b any) (bool, bool) {
		got, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": b}})
		return got, err == nil
	}
	for i, a := range comparables() {
		for j, b := range comparables() {
			forth, known := ask(a, b)
			back, knownBack := ask(b, a)
			if forth != back || known != knownBack {
				t.Errorf("%v == %v is %v, %v, and the other way round %v, %v", a, b, forth, known, back, knownBack)
			}
			if _, large := a.(uint64); i == j && !large && !(forth && known) {
				t.Errorf("%v == %v is %v, %v", a, a, forth, known)
			}
		}
	}
}

// != is the opposite of ==, and an answer that the one refuses the other refuses.
func TestEqual_HasAnOpposite(t *testing.T) {
	t.Parallel()
	equal, unequal := (&hostile{expression: `body.a == body.b`}).condition(t), (&hostile{expression: `body.a != body.b`}).condition(t)
	for _, a := range comparables() {
		for _, b := range comparables() {
			env := keyexpr.Values{slotBody: object{"a": a, "b": b}}
			is, err := equal.Eval(env)
			isNot, errNot := unequal.Eval(env)
			if (err == nil) != (errNot == nil) || err == nil && is == isNot {
				t.Errorf("%v, %v: == is %v, %v, != is %v, %v", a, b, is, err, isNot, errNot)
			}
		}
	}
}

// in finds what == finds.
func TestEqual_IsThatOfIn(t *testing.T) {
	t.Parallel()
	equal, in := (&hostile{expression: `body.a == body.b`}).condition(t), (&hostile{expression: `body.a in body.list`}).condition(t)
	for _, a := range comparables() {
		for _, b := range comparables() {
			if _, large := b.(uint64); large { // no operand of ==
				continue
			}
			env := keyexpr.Values{slotBody: object{"a": a, "b": b, "list": []any{b}}}
			is, err := equal.Eval(env)
			found, errIn := in.Eval(env)
			if a == nil || b == nil { // in a condition a missing operand of == is the empty value of the other
				continue
			}
			if (err == nil) != (errIn == nil) || is != found {
				t.Errorf("%v, %v: == is %v, %v, in is %v, %v", a, b, is, err, found, errIn)
			}
		}
	}
}

// Lists are compared to their ends, so that the answer does not depend on the order.
func TestEqual_LooksAtAllOfAList(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `body.a == body.b`}).condition(t)
	for _, tt := range []struct {
		a, b    []any
		refused bool
	}{
		{[]any{1, 2}, []any{1, 2}, false},
		{[]any{1, 2}, []any{2, 1}, false},
		{[]any{1, "2"}, []any{1, 2}, true},
		{[]any{"x", "2"}, []any{"y", 2}, true},
		{[]any{"2", "x"}, []any{2, "y"}, true},
		{[]any{[]any{"2"}}, []any{[]any{2}}, true},
		{[]any{true}, []any{"true"}, true},
		{[]any{true}, []any{"yes"}, false},
	} {
		if _, err := c.Eval(keyexpr.Values{slotBody: object{"a": tt.a, "b": tt.b}}); (err != nil) != tt.refused {
			t.Errorf("%v == %v: got %v", tt.a, tt.b, err)
		}
	}
}

// Texts that read like numbers and are none are compared with numbers.
func TestEqual_TextsAndNumbers(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `body.a == body.b`}).condition(t)
	for text, refused := range map[string]bool{
		"1": true, "1.0": true, "1e0": true, "+1": true, "01": true, "10e-1": true,
		"": false, "2": false, "one": false, "1 ": false, " 1": false, "0x1": false, "1_0": false, "1,0": false, "１": false, "--1": false,
	} {
		if _, err := c.Eval(keyexpr.Values{slotBody: object{"a": text, "b": 1}}); (err != nil) != refused {
			t.Errorf("%q == 1: got %v, want an error: %v", text, err, refused)
		}
	}
}

// randomText is of characters that keys have to tell apart.
func randomText(r *rand.Rand) string {
	const alphabet = `ab:%{}~#-/ äé` + "\x00\xff\n"
	runes := []rune(alphabet)
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

// Different values make different keys, whatever is around them; see the fuzz tests for
// more of this.
func TestEncoding_TellsValuesApart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) // the same texts each time
	for _, source := range []string{`#{path.orderId}:#{path.shop}`, `#{path.orderId}-#{path.shop}`, `a#{path.orderId}/#{path.shop}b`, `#{path.orderId}é#{path.shop}`, `{#{path.orderId}}#{path.shop}`} {
		template := compile(t, source)
		seen := map[string][2]string{}
		for range 2000 {
			values := [2]string{randomText(r), randomText(r)}
			key, err := template.Key(keyexpr.Values{slotPath: entries{"orderId": {values[0]}, "shop": {values[1]}}})
			if isSpaced(values[:]...) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if before, twice := seen[key]; twice && before != values {
				t.Errorf("%s: %q and %q make the key %q", source, before, values, key)
			}
			seen[key] = values
		}
	}
}

// A value is encoded where it has to be, and shows in the key where it can.
func TestEncoding_Samples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ template, value, want string }{
		{`a:#{path.orderId}`, "abc", "a:abc"},
		{`a:#{path.orderId}`, "a b", "a:a b"},
		{`a:#{path.orderId}`, "a/b", "a:a/b"},
		{`a:#{path.orderId}`, "a-b_c.d~e", "a:a-b_c.d~e"},
		{`a:#{path.orderId}`, "ä€𝄞", "a:ä€𝄞"},
		{`a:#{path.orderId}`, "a:b", "a:a%3Ab"},
		{`a:#{path.orderId}`, "100%", "a:100%25"},
		{`a:#{path.orderId}`, "%3A", "a:%253A"},
		{`a:#{path.orderId}`, "{x}", "a:%7Bx%7D"},
		{`a:#{path.orderId}`, "a\nb", "a:a%0Ab"},
		{`a:#{path.orderId}`, "a\x00b", "a:a%00b"},
		{`a:#{path.orderId}`, "a\x7fb", "a:a%7Fb"},
		{`a:#{path.orderId}`, "\xff", "a:%FF"},
		{`a:#{path.orderId}`, "\xe4\xb8", "a:%E4%B8"},
		{`a:#{path.orderId}`, "\u200b", "a:%E2%80%8B"}, // it cannot be seen
		{`a:#{path.orderId}`, "a\u00a0b", "a:a%C2%A0b"},
		{`a:#{path.orderId}`, "\ufffd", "a:\ufffd"},
		{`a:#{path.orderId}`, "\u202e", "a:%E2%80%AE"},
		{`#{path.orderId}-b`, "x-y", "x%2Dy-b"},
		{`#{path.orderId}-b`, "x/y", "x/y-b"},
		{`#{path.orderId}/b`, "x/y", "x%2Fy/b"},
		{`#{path.orderId}/b`, "x-y", "x-y/b"},
		{`#{path.orderId}.b`, "x.y", "x%2Ey.b"},
		{`#{path.orderId}äb`, "xäy", "x%C3%A4yäb"},
		{`#{path.orderId} b`, "x y", "x%20y b"},
		{`#{path.orderId}xb`, "xx", "%78%78xb"},
		{`a-#{path.orderId}`, "x-y", "a-x-y"},
		{`a-#{path.orderId}-`, "x-y", "a-x%2Dy-"},
	} {
		env := keyexpr.Values{slotPath: entries{"orderId": {tt.value}}}
		if got, err := compile(t, tt.template).Key(env); err != nil || got != tt.want {
			t.Errorf("%s of %q: got %q, %v, want %q", tt.template, tt.value, got, err, tt.want)
		}
		strict, err := compile(t, tt.template, keyexpr.Strict()).Key(env)
		unchanged := strings.Contains(tt.want, tt.value) && !strings.Contains(tt.want, "%")
		switch {
		case unchanged && (err != nil || strict != tt.want):
			t.Errorf("strict, %s of %q: got %q, %v", tt.template, tt.value, strict, err)
		case !unchanged && (err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter):
			t.Errorf("strict, %s of %q: got %q, %v, want a character error", tt.template, tt.value, strict, err)
		}
	}
}

// A key that is too long keeps its head, and what differs behind it still counts.
func TestEncoding_LongKeys(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{64, 65, 100, 512} {
		template := compile(t, `order:#{path.orderId}`, keyexpr.MaxLength(limit))
		keys := map[string]int{}
		for size := limit - 10; size < limit+30; size++ {
			for _, last := range []string{"x", "y", "ä"} {
				key, err := template.Key(path(strings.Repeat("ä", 3) + strings.Repeat("a", size) + last).env(t))
				if err != nil || len(key) > limit || !strings.HasPrefix(key, "order:ääää"[:12]) {
					t.Fatalf("limit %d, size %d: got %q, %v", limit, size, key, err)
				}
				keys[key]++
			}
		}
		if want := 40 * 3; len(keys) != want {
			t.Errorf("limit %d: %d keys of %d values", limit, len(keys), want)
		}
	}
}
