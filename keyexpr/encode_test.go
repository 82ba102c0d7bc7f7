package keyexpr_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestEncoding_Length(t *testing.T) {
	t.Parallel()
	const limit = 80
	template := compile(t, `order:#{path.orderId}`, keyexpr.MaxLength(limit))
	key := func(id string) string {
		t.Helper()
		k, err := template.Key(path(id).env(t))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if got := key(strings.Repeat("x", limit-6)); len(got) != limit || strings.Contains(got, "%~") {
		t.Errorf("a key with the maximum length was changed: %q", got)
	}
	if wide := key(strings.Repeat("→", 200)); len(wide) > limit || !utf8.ValidString(wide) {
		t.Errorf("a character was cut: %q", wide)
	}
	strict := keyexpr.MaxLength(limit)
	strict.Strict = true
	_, err := compile(t, `order:#{path.orderId}`, strict).Key(path(strings.Repeat("x", 200)).env(t))
	if err == nil || reasonOf(t, err) != keyexpr.ReasonTooLong {
		t.Errorf("strict: got %v, want too long", err)
	}
}

// decode returns the values from which the template a:X:Y/Z made a key, for parts that are texts.
// It shows that different values have different keys.
func decode(t *testing.T, key string) [3]string {
	t.Helper()
	rest, ok := strings.CutPrefix(key, "a:")
	if !ok {
		t.Fatalf("%q has no prefix", key)
	}
	x, rest, _ := strings.Cut(rest, ":")
	y, z, _ := strings.Cut(rest, "/")
	return [3]string{unescape(t, x), unescape(t, y), unescape(t, z)}
}

func unescape(t *testing.T, s string) string {
	t.Helper()
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			t.Fatalf("%q is badly encoded: %v", s, err)
		}
		b = append(b, byte(n))
		i += 2
	}
	return string(b)
}

// FuzzTemplate_Injective decodes each key into its values and compares the keys of two arbitrary tuples.
func FuzzTemplate_Injective(f *testing.F) {
	f.Add("a", "b", "c", "a:b", "", "c")
	f.Add("1:2", "3", "4", "1", "2:3", "4")
	f.Add("%3A", "x", "y", ":", "x", "y")
	f.Add("\xff", "/", "{}", "%FF", "%2F", "\n")
	f.Add("→", "\xe2\x86", "\x92", "\u200b", "e\u0301", "é")
	schema := requestSchema(f)
	template := compileFor(f, `a:#{path.orderId}:#{path.shop}/#{query.z}`, schema, keyexpr.MaxLength(1<<20))
	short := compileFor(f, `a:#{path.orderId}:#{path.shop}/#{query.z}`, schema, keyexpr.MaxLength(64))
	f.Fuzz(func(t *testing.T, x1, y1, z1, x2, y2, z2 string) {
		tuples := [2][3]string{{x1, y1, z1}, {x2, y2, z2}}
		var long, hashed [2]string
		for i, v := range tuples {
			env := request{path: entries{"orderId": {v[0]}, "shop": {v[1]}}, query: entries{"z": {v[2]}}}.env(t)
			key, err := template.Key(env)
			if v[0] == "" || v[1] == "" || v[2] == "" || isSpaced(v[:]...) {
				if err == nil {
					t.Fatalf("%q makes the key %q", v, key)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := decode(t, key); got != v {
				t.Fatalf("the key %q of %q decodes to %q", key, v, got)
			}
			if !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("the key %q is not printable", key)
			}
			long[i] = key
			if hashed[i], err = short.Key(env); err != nil || len(hashed[i]) > 64 {
				t.Fatalf("the short key is %q, %v", hashed[i], err)
			}
		}
		if (long[0] == long[1]) != (tuples[0] == tuples[1]) || (hashed[0] == hashed[1]) != (tuples[0] == tuples[1]) {
			t.Fatalf("%q makes %q and %q", tuples, long, hashed)
		}
	})
}

// FuzzTemplate_InjectiveUntyped checks for JSON values that keys are equal if and only if the texts of the
// values are equal, whatever their types are.
func FuzzTemplate_InjectiveUntyped(f *testing.F) {
	f.Add(`1`, `"1"`)
	f.Add(`true`, `"true"`)
	f.Add(`"%31"`, `"1"`)
	f.Add(`-0`, `"-0"`)
	f.Add(`18446744073709551616`, `"18446744073709551616"`)
	template := compile(f, `o:#{body.a}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := decodeJSON(a)
		y, okY := decodeJSON(b)
		if !okX || !okY {
			return
		}
		keyX, errX := template.Key(keyexpr.Values{slotBody: map[string]any{"a": x}})
		keyY, errY := template.Key(keyexpr.Values{slotBody: map[string]any{"a": y}})
		if errX == nil && errY == nil && (keyX == keyY) != (fmt.Sprint(x) == fmt.Sprint(y)) {
			t.Fatalf("%s makes %q, %s makes %q", a, keyX, b, keyY)
		}
	})
}

// An integer or bool and the string that spells it have the same key, whatever text follows.
func TestEncoding_UntypedSpelling(t *testing.T) {
	t.Parallel()
	for _, literal := range []string{"", "-x", ":x", "tail", "flat", "ruled", "x"} {
		for _, text := range []string{"-5", "5", "true", "false", "-99999999999999999999"} {
			template := compile(t, `o:#{body.id}`+literal)
			typed, err := template.Key(body(`{"id": ` + text + `}`).env(t))
			if err != nil {
				t.Fatal(err)
			}
			quoted, err := template.Key(body(`{"id": "` + text + `"}`).env(t))
			if err != nil {
				t.Fatal(err)
			}
			if typed != quoted {
				t.Errorf("before %q: %s has the key %s, and %q has %s", literal, text, typed, text, quoted)
			}
		}
	}
}

func TestEncoding_StrictAndSign(t *testing.T) {
	t.Parallel()
	_, err := compile(t, `o:#{body.id}-x`, keyexpr.Format{Strict: true}).Key(body(`{"id": -5}`).env(t))
	if err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter {
		t.Errorf("got %v, want a character error", err)
	}
}

// randomText returns a random text of characters that keys have to distinguish.
func randomText(r *rand.Rand) string {
	const alphabet = `ab:%{}~#-/ äé` + "\x00\xff\n"
	runes := []rune(alphabet)
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

// Different values have different keys, whatever text surrounds them. The fuzz tests check more values.
func TestEncoding_DifferentValuesDifferentKeys(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) // a fixed seed
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

// A value is readable in the key. Only characters that need it are encoded.
func TestEncoding_Samples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ template, value, want string }{
		{`a:#{path.orderId}`, "abc", "a:abc"},
		{`a:#{path.orderId}`, "a b", "a:a b"},
		{`a:#{path.orderId}`, "a/b", "a:a/b"},
		{`a:#{path.orderId}`, "a-b_c.d~e", "a:a-b_c.d~e"},
		{`a:#{path.orderId}`, "ä€𝄞", "a:ä€𝄞"},
		{`a:#{path.orderId}:b`, "1:2", "a:1%3A2:b"},
		{`a:#{path.orderId}:b`, "1/2-3_4.5 6", "a:1/2-3_4.5 6:b"},
		{`a:#{path.orderId}→b`, "1→2", "a:1%E2%86%922→b"},
		{`a:#{path.orderId}1`, "11", "a:111"},
		{`a:#{path.orderId}`, "x\xff\xc3", "a:x%FF%C3"},
		{`a:#{path.orderId}`, "a:b", "a:a%3Ab"},
		{`a:#{path.orderId}`, "100%", "a:100%25"},
		{`a:#{path.orderId}`, "%3A", "a:%253A"},
		{`a:#{path.orderId}`, "{x}", "a:%7Bx%7D"},
		{`a:#{path.orderId}`, "a\nb", "a:a%0Ab"},
		{`a:#{path.orderId}`, "a\x00b", "a:a%00b"},
		{`a:#{path.orderId}`, "a\x7fb", "a:a%7Fb"},
		{`a:#{path.orderId}`, "\xff", "a:%FF"},
		{`a:#{path.orderId}`, "\xe4\xb8", "a:%E4%B8"},
		{`a:#{path.orderId}`, "\u200b", "a:%E2%80%8B"}, // the character is invisible
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
		strict, err := compile(t, tt.template, keyexpr.Format{Strict: true}).Key(env)
		unchanged := strings.Contains(tt.want, tt.value) && !strings.Contains(tt.want, "%")
		switch {
		case unchanged && (err != nil || strict != tt.want):
			t.Errorf("strict, %s of %q: got %q, %v", tt.template, tt.value, strict, err)
		case !unchanged && (err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter):
			t.Errorf("strict, %s of %q: got %q, %v, want a character error", tt.template, tt.value, strict, err)
		}
	}
}

// A key that is too long keeps its beginning. Values that differ after it still have different keys.
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

// No value adds a colon to a key, so a client cannot construct a key with other colons.
func TestEncoding_ValuesAddNoColon(t *testing.T) {
	t.Parallel()
	const sent = "42:refund:1"
	for template, want := range map[string]string{
		`order:#{path.orderId}`:                      "order:42%3Arefund%3A1",
		`order:#{path.orderId}:refund:#{method}`:     "order:42%3Arefund%3A1:refund:POST",
		`order:#{path.orderId}/x`:                    "order:42%3Arefund%3A1/x",
		`#{path.orderId}`:                            "42%3Arefund%3A1",
		`order:#{body.id}`:                           "order:42%3Arefund%3A1",
		`order:#{body.none ?? body.id}`:              "order:42%3Arefund%3A1",
		`order:#{lower(body.id)}`:                    "order:42%3Arefund%3A1",
		`order:#{body.ids[:]}`:                       "order:42%3Arefund%3A1",
		`order:#{map(body.ids, # + ":x")}`:           "order:42%3Arefund%3A1%3Ax",
		`order:#{method == "POST" ? "a:b" : "c"}`:    "order:a%3Ab",
		`order:#{path.orderId + "-" + path.orderId}`: "order:42%3Arefund%3A1-42%3Arefund%3A1",
	} {
		request := request{path: entries{"orderId": {sent}}, body: `{"id": "` + sent + `", "ids": ["` + sent + `"]}`}
		keys, err := compile(t, template).Keys(request.env(t))
		if err != nil || len(keys) != 1 || keys[0] != want {
			t.Errorf("%s: got %q, %v, want %s", template, keys, err, want)
		}
		keys, err = compile(t, template, keyexpr.Format{Strict: true}).Keys(request.env(t))
		if err == nil || reasonOf(t, err) != keyexpr.ReasonCharacter {
			t.Errorf("strict, %s: got %q, %v, want a character error", template, keys, err)
		}
	}
}

// Within a field, a value may be equal to the text of another template, as the package comment explains.
// Separate literal fields distinguish the templates.
func TestEncoding_ValuesMaySpellFields(t *testing.T) {
	t.Parallel()
	const one, other = `#{path.orderId}`, `#{path.orderId}-#{path.shop}`
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"seat:" + one, "seat:" + other, true},
		{"seat:" + one, "seat:7-12", true},
		{"seat:id:" + one, "seat:place:" + other, false},
		{"seat:" + one, `seat:#{path.orderId}:#{path.shop}`, false},
	} {
		a, errA := compile(t, tt.a).Key(path("7-12").env(t))
		b, errB := compile(t, tt.b).Key(request{path: entries{"orderId": {"7"}, "shop": {"12"}}}.env(t))
		if errA != nil || errB != nil || (a == b) != tt.same {
			t.Errorf("%s makes %q, %v, and %s %q, %v; the same: %v", tt.a, a, errA, tt.b, b, errB, tt.same)
		}
	}
}

// A text with a colon that an expression adds to a value counts as literal text. So all spellings of a
// template yield the same key.
func TestCompile_SumsWithColons(t *testing.T) {
	t.Parallel()
	const id = "4:2"
	for template, want := range map[string]string{
		`#{"order:" + path.orderId}`:                            "order:4%3A2",
		`#{'order:' + path.orderId + ":x"}`:                     "order:4%3A2:x",
		"#{`order:` + path.orderId + ':' + path.shop}":          "order:4%3A2:s",
		`#{ "order:" + lower(path.orderId + "a") }`:             "order:4%3A2a",
		`#{path.shop + ":" + (path.orderId + "-") + path.shop}`: "s:4%3A2-s",
		`#{path.shop + ":" + path.shop + path.orderId}`:         "s:s4%3A2",
		`v:#{":" + path.orderId}`:                               "v::4%3A2",
		`#{path.orderId + ":"}`:                                 "4%3A2:",
		`#{"a:" + "b" + path.shop}`:                             "a:bs",
		`#{":" + ":"}#{path.shop}`:                              "::s",
		`#{"{a}:" + path.orderId}`:                              "{a}:4%3A2",
		`#{"order:" + (body.none ?? "no:ne")}`:                  "order:no%3Ane",
		`#{"order:" + ("x:" + path.orderId)}`:                   "order:x%3A4%3A2",
		`#{(("x:") + path.orderId)}`:                            "x%3A4%3A2",
		`#{path.shop == "s" ? "a:" + path.orderId : "b"}`:       "a%3A4%3A2",
		`#{"a:" + path.orderId | upper()}`:                      "A%3A4%3A2",
		`#{path.shop + "a:\n" + path.orderId}`:                  "sa%3A%0A4%3A2",
		`#{"order:" + body.n}`:                                  "order:7",
	} {
		env := request{path: entries{"orderId": {id}, "shop": {"s"}}, body: `{"n": 7}`}.env(t)
		if got, err := compile(t, template).Key(env); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", template, got, err, want)
		}
	}
}

// There must be text between two sums and between the values of a sum. Positions count from the start of the
// template.
func TestCompile_SumsWithColonsErrors(t *testing.T) {
	t.Parallel()
	for template, column := range map[string]int{
		`#{"ord:" + path.orderID}`:                   17,
		`#{path.orderId}#{path.shop + ":a"}`:         16,
		`#{"ü:" + path.shop + ":" + path.orderId.x}`: 0,
	} {
		_, err := keyexpr.Compile(template, requestSchema(t))
		if err == nil {
			t.Errorf("%s is accepted", template)
			continue
		}
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || column > 0 && problem.Column != column {
			t.Errorf("%s: got %v, want column %d", template, err, column)
		}
	}
}

// Under Strict, values that would be encoded are errors, and all other values yield the same keys.
func TestEncoding_StrictRefusesChanges(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	characters := []rune("aZ09-._~/@ éß漢→:%{}#\t\n\x00\x7f\u200b\u00a0\ufffd")
	free, strict := compile(t, `o:#{path.orderId}/#{path.shop}`), compile(t, `o:#{path.orderId}/#{path.shop}`, keyexpr.Format{Strict: true})
	text := func() string {
		var b strings.Builder
		for range 1 + random.IntN(3) {
			b.WriteRune(characters[random.IntN(len(characters))])
		}
		if random.IntN(20) == 0 {
			b.WriteString("\xff")
		}
		return b.String()
	}
	accepted := 0
	for range 3000 {
		id, shop := text(), text()
		env := request{path: entries{"orderId": {id}, "shop": {shop}}}.env(t)
		key, err := free.Key(env)
		if isSpaced(id, shop) {
			continue
		}
		if err != nil {
			t.Fatalf("%q, %q: %v", id, shop, err)
		}
		got, err := strict.Key(env)
		if plain := key == "o:"+id+"/"+shop; plain != (err == nil) || plain && got != key {
			t.Errorf("%q, %q: under Strict got %q, %v, otherwise %q", id, shop, got, err, key)
		}
		if err == nil {
			accepted++
		} else if reasonOf(t, err) != keyexpr.ReasonCharacter {
			t.Errorf("%q, %q: got %v", id, shop, err)
		}
	}
	if accepted < 300 || accepted > 2700 {
		t.Errorf("%d of 3000 are accepted", accepted)
	}
}
