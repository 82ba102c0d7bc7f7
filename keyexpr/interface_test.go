package keyexpr_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// holder has documents in fields of interface types.
type holder struct {
	Doc   any
	Docs  []any
	Named map[string]any
}

// document makes a value as encoding/json makes it for an interface.
func document(random *rand.Rand, depth int) any {
	if depth == 0 {
		return []any{"text", "", "42", 42.0, -7.0, 2.5, true, false, nil, json.Number("42"), json.Number("18446744073709551615"), json.Number("123456789012345678901")}[random.IntN(12)]
	}
	if random.IntN(2) == 0 {
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = document(random, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for _, name := range []string{"a", "b", "xs", "id"} {
		if random.IntN(3) > 0 {
			m[name] = document(random, depth-1)
		}
	}
	return m
}

// questions are what expressions can ask of a document, which stands for @.
var questions = []string{
	`@`, `@.a`, `@.a.b`, `@.xs[0]`, `@.xs[-1].id`, `@[0]`, `@["a"]["b"]`, `@[:]`, `@.xs[:]`, `map(@, #)`, `map(@.xs, .id)`, `filter(@.xs, # == 42)`, `len(@)`, `len(@.xs)`,
	`keys(@)`, `"a" in @`, `"a" in @.a`, `42 in @.xs`, `@ == nil`, `@.a == @.b`, `@.a ?? "none"`, `@.xs[0].a ?? @.id ?? "none"`, `string(@.id)`, `@.id + 1`, `"x" + @.id`,
	`first(@.xs)`, `(@.a ?? @).id`, `any(@.xs, .a == 42)`, `@.xs == @.xs`, `@ == @`,
	`@.a ? 1 : 2`, `@.id > 7 ? 1 : 2`,
}

// Of a Go interface an expression sees the same as of the same document in a variable, for
// which it has been converted as a whole.
func TestGoType_InterfacesAreDocuments(t *testing.T) {
	t.Parallel()
	in, err := keyexpr.GoType(reflect.TypeFor[holder](), keyexpr.GoNames)
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, keyexpr.Variable{Name: "in", Type: in}, keyexpr.Variable{Name: "body", Type: keyexpr.AnyType()})
	random := rand.New(rand.NewPCG(3, 4))
	documents := make([]any, 60)
	for i := range documents {
		documents[i] = document(random, i%4)
	}
	for _, question := range questions {
		whole := compileOf(t, question, "body", schema)
		for _, place := range []string{"in.Doc", "in.Docs[0]", `in.Named.x`, `in.Named["x"]`, `in.Docs[-1]`} {
			partial := compileOf(t, question, place, schema)
			for _, d := range documents {
				env := keyexpr.Values{&holder{Doc: d, Docs: []any{d}, Named: map[string]any{"x": d}}, keyexpr.FromJSON(d)}
				want, reason := answerOf(t, whole, env)
				got, gotReason := answerOf(t, partial, env)
				if computed := strings.Contains(place, "len"); computed && reason != 0 && gotReason != 0 {
					continue // what is chosen by a computed index is looked at before what is inside of it
				}
				if !slices.Equal(got, want) || gotReason != reason {
					t.Errorf("%s of %#v in %s: got %q, %v, want %q, %v", question, d, place, got, gotReason, want, reason)
				}
			}
		}
	}
}

func compileOf(tb testing.TB, question, place string, schema *keyexpr.Schema) *keyexpr.Template {
	tb.Helper()
	expression := strings.ReplaceAll(question, "@", place)
	return compileFor(tb, "#{"+expression+"}", schema)
}

func answerOf(tb testing.TB, template *keyexpr.Template, env keyexpr.Env) ([]string, keyexpr.Reason) {
	tb.Helper()
	keys, err := template.Keys(env)
	if err != nil {
		return nil, reasonOf(tb, err)
	}
	return keys, 0
}

// What a Go value holds is never changed by what reads it.
func TestGoType_DocumentsAreNotChanged(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[holder]())
	if err != nil {
		t.Fatal(err)
	}
	d := map[string]any{"id": 42.0, "xs": []any{3.0, 1.0, map[string]any{"b": 2.0}}, "n": json.Number("7")}
	before := fmt.Sprintf("%#v", d)
	for _, question := range questions {
		_, _ = compileOf(t, question, "in.Doc", schema).Keys(keyexpr.Values{&holder{Doc: d}})
	}
	if after := fmt.Sprintf("%#v", d); after != before {
		t.Errorf("was %s, is %s", before, after)
	}
}

// A map of a Go value with many entries can be asked for one of them, and no more: wherever
// it stands, and whether its type is known.
func TestGoType_LargeMaps(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[holder]())
	if err != nil {
		t.Fatal(err)
	}
	large := object{}
	for i := range 1001 {
		large["k"+itoa(i)] = i
	}
	env := keyexpr.Values{&holder{Doc: large, Named: large, Docs: []any{large}}}
	for expression, want := range map[string]string{
		`@.k7`: "7", `"k7" in @ ? 1 : 2`: "1", `"no" in @ ? 1 : 2`: "2", `@.no ?? "none"`: "none", `(@ ?? []).k7`: "7",
		`keys(@)`: "!too_many", `len(@)`: "!too_many", `@.no`: "!missing", `@.k7.x`: "!wrong_type",
	} {
		for _, place := range []string{"in.Doc", "in.Named", "in.Docs[0]"} {
			keys, reason := answerOf(t, compileOf(t, expression, place, schema), env)
			got := "!" + reason.String()
			if reason == 0 {
				got = keys[0]
			}
			if got != want {
				t.Errorf("%s of %s: got %q, want %q", expression, place, got, want)
			}
		}
	}
}

// A value that holds itself is refused, not followed for ever.
func TestGoType_ValuesThatHoldThemselves(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.Argument(reflect.TypeFor[holder]())
	if err != nil {
		t.Fatal(err)
	}
	list := []any{1.0, nil}
	list[1] = list
	m := map[string]any{"id": 7.0}
	m["self"] = m
	for _, doc := range []any{list, m} {
		for _, question := range questions {
			_, _ = answerOf(t, compileOf(t, question, "in.Doc", schema), keyexpr.Values{&holder{Doc: doc}})
		}
	}
	if key, err := compileFor(t, `#{in.Doc.self.self.self.id}`, schema).Key(keyexpr.Values{&holder{Doc: m}}); err != nil || key != "7" {
		t.Errorf("got %q, %v", key, err)
	}
	if _, err := compileFor(t, `#{len(in.Doc)}`, schema).Key(keyexpr.Values{&holder{Doc: list}}); reasonOf(t, err) != keyexpr.ReasonTooMany {
		t.Errorf("got %v", err)
	}
}
