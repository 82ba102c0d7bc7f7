package keyexpr_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// lawful are expressions over languageBody and a request, of all that the language has.
var lawful = []string{
	`path.orderId`, `query.id[:]`, `query["id"][1]`, `header["x-id"]`, `body.text`, `body.items[1].sku`,
	`map(body.items, .sku)`, `map(body.items, .sku + path.shop)`, `filter(body.xs, # > 1)[:]`, `any(body.xs, string(#) == query.id[0])`, `body.t ? path.shop : query.none`,
	`body.f ? path.shop : header.none ?? principal`, `body.none ?? query.none ?? "none"`, `"a" in body.m1`, `method in ["GET", "POST"]`,
	`[method, path.shop]`, `first(map(query.id[:], upper(#)))`, `query.id[0] == "x"`, `all(body.xs, # > 0)`, `(path.shop + "-" + method) | lower()`, `body.n > 5 and path.shop != ""`,
	`body.xs == [3, 1, 2] or query.none == "x"`, `len(query.id[:]) + body.n`, `1 < body.n < 9`, `principal`, `string(body.n) + principal`, `not (body.null == nil)`,
	`1 + 1`, `"text"`, `[1, 2]`, `path.nowhere ?? 1`, `keys(body.m1)`,
}

func lawfulEnv(tb testing.TB) keyexpr.Values {
	tb.Helper()
	return request{
		path: entries{"orderId": {"42"}, "shop": {"s"}}, query: entries{"id": {"x", "y"}}, header: entries{"X-Id": {"h"}}, body: languageBody, principal: "p",
	}.env(tb)
}

// asked is an Env that notes which variables it is asked for.
type asked struct {
	keyexpr.Values

	slots map[int]bool
}

func (a asked) Value(slot int) (any, error) {
	a.slots[slot] = true
	return a.Values.Value(slot)
}

func (a asked) Items(slot int, key string) ([]string, error) {
	a.slots[slot] = true
	return a.Values.Items(slot, key)
}

// Nothing is asked for but the variables that a template says it uses: an adapter reads the
// body of a request only where it is one of them.
func TestUses_IsAllThatIsAskedFor(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for _, expression := range lawful {
		template, err := keyexpr.Compile(`o:#{`+expression+`}`, schema)
		if err != nil {
			continue // such as a path parameter that there is not
		}
		env := asked{lawfulEnv(t), map[int]bool{}}
		_, _ = template.Keys(env)
		for slot := range env.slots {
			if name := schema.Variables()[slot]; !template.Uses(name) || !slices.Contains(template.Variables(), name) {
				t.Errorf("%s asks for %s, and says that it uses %q", expression, name, template.Variables())
			}
		}
		for _, name := range template.Variables() {
			if !slices.Contains(schema.Variables(), name) || !strings.Contains(expression, name) {
				t.Errorf("%s says that it uses %s", expression, name)
			}
		}
		if len(template.Variables()) == 0 != (len(env.slots) == 0) {
			t.Errorf("%s uses %q, and asked for %d variables", expression, template.Variables(), len(env.slots))
		}
	}
}

// What a template does not use makes no difference to its keys.
func TestUses_OtherVariablesMakeNoDifference(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for _, expression := range lawful {
		template, err := keyexpr.Compile(`o:#{`+expression+`}`, schema)
		if err != nil {
			continue
		}
		want, err := template.Keys(lawfulEnv(t))
		bare := lawfulEnv(t)
		for slot, name := range schema.Variables() {
			if !template.Uses(name) {
				bare[slot] = nil
			}
		}
		got, errBare := template.Keys(bare)
		if !slices.Equal(got, want) || (err == nil) != (errBare == nil) {
			t.Errorf("%s: got %q, %v, with all variables %q, %v", expression, got, errBare, want, err)
		}
	}
}

// Where nothing is missing, a condition is what the same expression is in a key.
func TestCondition_IsTheBoolOfAKey(t *testing.T) {
	t.Parallel()
	bools := 0
	for _, expression := range lawful {
		template, err := keyexpr.Compile(`#{`+expression+`}`, requestSchema(t))
		if err != nil || template.IsList() {
			continue
		}
		key, err := template.Key(lawfulEnv(t))
		if err != nil || key != "true" && key != "false" {
			continue
		}
		bools++
		condition, err := keyexpr.CompileCondition(expression, requestSchema(t))
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got, err := condition.Eval(lawfulEnv(t)); err != nil || strconv.FormatBool(got) != key {
			t.Errorf("%s: a condition is %v, %v, a key %s", expression, got, err, key)
		}
		if !slices.Equal(condition.Variables(), template.Variables()) {
			t.Errorf("%s: a condition uses %q, a key %q", expression, condition.Variables(), template.Variables())
		}
	}
	if bools < 8 {
		t.Errorf("only %d expressions are bools", bools)
	}
}

// The keys of a list are those that its elements have one by one: each once, in order.
func TestTemplate_KeysAreThoseOfTheElements(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	values := []any{"a", "b", "a:b", "1", 1, "01", true, "true", "é", "e\u0301", "x-y", "%", "{", strings.Repeat("long", 200), -1, uint64(1 << 63)}
	list, one := compile(t, `o:#{body.xs[:]}-#{path.shop}`), compile(t, `o:#{body.x}-#{path.shop}`)
	for range 200 {
		xs := make([]any, 1+random.IntN(12))
		var want []string
		for i := range xs {
			xs[i] = values[random.IntN(len(values))]
			key, err := one.Key(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"x": xs[i]}})
			if err != nil {
				t.Fatalf("%v: %v", xs[i], err)
			}
			want = append(want, key)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		got, err := list.Keys(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"xs": xs}})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %q, %v, want %q", xs, got, err, want)
		}
		key, err := list.Key(keyexpr.Values{slotPath: entries{"shop": {"s"}}, slotBody: object{"xs": xs}})
		if one := len(want) == 1; one != (err == nil) || one && key != want[0] {
			t.Errorf("%v: one key is %q, %v, want %q", xs, key, err, want)
		}
	}
}

// Strict keys are those that are as their values are: it refuses what would be changed, and
// changes nothing else.
func TestStrict_IsWhatIsNotChanged(t *testing.T) {
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
			t.Errorf("%q, %q: strict is %q, %v, else %q", id, shop, got, err, key)
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
