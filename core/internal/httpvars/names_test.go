package httpvars_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// folded is a document whose names are names of handlers' fields. Each name is marked with §, so that tests
// can send it in other spellings that encoding/json reads into the same field.
const folded = `{"§id§": 5, "§orderId§": "a", "§key§": "k", "§sess§": {"§id§": 5}, "§copy§": {"§id§": 5},
	"§lines§": {"§first§": {"§amount§": 500, "§sku§": "x"}, "§second§": {"§amount§": 7, "§sku§": "y"}},
	"§list§": [{"§id§": 1}, {"§id§": 2}], "§none§": null}`

// respelled returns the document with every name in another spelling.
func respelled(change func(name string) string) string {
	parts := strings.Split(folded, "§")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = change(parts[i])
	}
	return strings.Join(parts, "")
}

var spellings = map[string]func(string) string{
	"upper case":      strings.ToUpper,
	"a first capital": func(name string) string { return strings.ToUpper(name[:1]) + name[1:] },
	"a last capital":  func(name string) string { return name[:len(name)-1] + strings.ToUpper(name[len(name)-1:]) },
	"lower case":      strings.ToLower,
	"Kelvin, long s":  strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace,
	"escaped capital": func(name string) string { return fmt.Sprintf(`\u%04x`, name[0]-'a'+'A') + name[1:] },
	"escaped":         func(name string) string { return fmt.Sprintf(`\u%04x`, name[0]) + name[1:] },
}

func asSent(name string) string { return name }

// forms maps expressions over the document to their results for a handler: a text for a part of a key, true
// or false for a condition.
var forms = map[string]string{
	`body.id`: "5", `body["id"]`: "5", `body?.id`: "5",
	`body.orderId`: "a", `body["orderId"]`: "a", `body.key`: "k", `body.sess.id`: "5", `body.sess?.id`: "5",
	`(body.none ?? body).id`: "5", `(body.nowhere ?? body.sess).id`: "5", `(body ?? 1).id`: "5",
	`(method == "POST" ? body : 1).id`: "5",
	`[body][0].id`:                     "5", `[[body]][0][0].id`: "5", `first([body]).id`: "5", `last([body]).id`: "5",
	`[body][0:1][0].id`:   "5",
	`map([body], .id)[0]`: "5", `map([body], #.orderId)[0]`: "a", `filter([body], .id == 5)[0].id`: "5",

	`len(body)`: "8", `len(body.lines)`: "2", `body.none ?? "none"`: "none", `body.id ?? "none"`: "5",
	`body.list[1].id`: "2",

	`"id" in body`: "true", `"orderId" in body`: "true", `"nowhere" in body`: "false", `query.field in body`: "true", `"none" in body`: "true",
	`not ("id" in body)`: "false", `"id" not in body`: "false", `"id" in body.sess`: "true", `"id" in (body.nowhere ?? body)`: "true",
	`"id" in [body][0]`: "true", `any(["x", "id"], # in body)`: "true",
	`"id" in keys(body)`: "true", `"id" not in keys(body)`: "false", `"id" in (body | keys())`: "true", `any(keys(body.sess), # == "id")`: "true", `keys(body.sess)[0]`: "id", `len(keys(body.sess)) == 1`: "true",
	`"orderId" in keys(body)`: "true",

	`body.id == nil`: "false", `body.none == nil`: "true", `body.sess != nil`: "true", `body.id == 5`: "true", `body.id in [4, 5]`: "true",
	`body.id > 4 and body.orderId == "a"`: "true",
}

// compared lists expressions that compare whole objects.
var compared = []string{
	`body.sess == body.copy`, `body.sess in [body.copy]`,
	`[body.sess] == [body.copy]`,
}

// evaluate returns the result of an expression for a document: as a part of a key, and also as a
// condition if it is one. Both must agree.
func evaluate(tb testing.TB, form, document string) (string, error) {
	tb.Helper()
	v := variables(tb, httpvars.Config{})
	request := func() *httpvars.Request {
		r := post(tb, "application/json", document)
		r.URL.RawQuery = "field=id&camel=orderId"
		return v.Request(r, &host{})
	}
	keys, err := compile(tb, v, `#{`+form+`}`).Keys(request())
	if want := forms[form]; want == "true" || want == "false" {
		condition, compileErr := keyexpr.CompileCondition(form, v.Schema())
		if compileErr != nil {
			tb.Fatal(compileErr)
		}
		met, conditionErr := condition.Eval(request())
		if (conditionErr == nil) != (err == nil) || err == nil && fmt.Sprint(met) != keys[0] {
			tb.Errorf("%s of %s: the key has %s, %v, the condition is %t, %v", form, document, keys, err, met, conditionErr)
		}
	}
	return strings.Join(keys, "|"), err
}

// In any spelling of the names, an expression reads the values that a handler with encoding/json reads,
// or the request is refused.
func TestBody_NamesInAnySpelling(t *testing.T) {
	t.Parallel()
	plain := respelled(asSent)
	for form, want := range forms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			if got, err := evaluate(t, form, plain); err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			for name, change := range spellings {
				if got, err := evaluate(t, form, respelled(change)); err == nil && got != want {
					t.Errorf("%s: got %q, want %q or an error", name, got, want)
				}
			}
		})
	}
}

// An expression finds a name in every spelling. Only keys refuses names whose spelling is ambiguous.
func TestBody_FindsNames(t *testing.T) {
	t.Parallel()
	for form, want := range forms {
		if strings.Contains(form, "keys(") && !strings.Contains(form, "in keys(") {
			continue
		}
		for name, change := range spellings {
			if got, err := evaluate(t, form, respelled(change)); err != nil || got != want {
				t.Errorf("%s, %s: got %q, %v, want %q", form, name, got, err, want)
			}
		}
	}
}

// Objects are not compared, because neither their names nor their numbers have one text.
func TestBody_ObjectsAreNotCompared(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, form := range compared {
		condition, err := keyexpr.CompileCondition(form, v.Schema())
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		_, err = condition.Eval(v.Request(post(t, "application/json", respelled(asSent)), &host{}))
		wantReason(t, err, keyexpr.ReasonExpression)
	}
	for form, want := range map[string]bool{
		`body.sess == 5`: false, `body.sess == nil`: false, `body.sess in [1, "a"]`: false, `body.id == [5]`: false, `[1, "a"] == [body.id, "a"]`: false,
		`[5, "a"] == [body.id, body.orderId]`: true,
	} {
		condition := compileCondition(t, v, form)
		if got, err := condition.Eval(v.Request(post(t, "application/json", respelled(asSent)), &host{})); err != nil || got != want {
			t.Errorf("%s: got %t, %v, want %t", form, got, err, want)
		}
	}
}

// keys returns names in lower case. It refuses other names, because a handler may take them for a name
// in lower case.
func TestBody_KeysInLowerCase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		form, document, want string // "": the request is refused
	}{
		{`keys(body)`, `{"a-1": 1, "b": 2}`, "a-1|b"},
		{`keys(body)`, `{"SKU-1": 1}`, ""},
		{`keys(body)`, `{"\u017fku": 1}`, ""},
		{`keys(body)`, `{"ä": 1, "日本": 2, "": 3}`, ""},
		{`keys(body)`, `{"ä": 1, "日本": 2}`, "ä|日本"},
		{`keys(body)`, `{"Ä": 1}`, ""},
		{`keys(body)`, `{"İ": 1, "ı": 2, "i": 3}`, "i|İ|ı"},
		{`keys(body)`, `{"σ": 1, "ß": 2, "µ": 3}`, "µ|ß|σ"},
		{`keys(body)`, `{"ς": 1}`, ""},
		{`keys(body)`, `{"μ": 1}`, ""},
		{`keys(body.SKU)`, `{"SKU": {"a": 1}}`, "a"},
		{`keys(body)[0] + body.SKU`, `{"SKU": "x"}`, ""},
		{`keys(body)[0] + body.SKU`, `{"sku": "x"}`, "skux"},
	} {
		got, err := evaluate(t, tt.form, tt.document)
		switch {
		case tt.want != "" && (err != nil || got != tt.want):
			t.Errorf("%s of %s: got %q, %v, want %q", tt.form, tt.document, got, err, tt.want)
		case tt.want == "" && err == nil:
			t.Errorf("%s of %s: got %q, want an error", tt.form, tt.document, got)
		}
	}
}

// Some handlers accept a text instead of the number or bool that it spells, and others do not. So comparing
// the two is refused.
func TestBody_TextAndNumberAreNotCompared(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for form, want := range map[string]string{
		`body.n == "42"`: "", `body.s == 42`: "", `body.s != 42`: "", `body.n == body.s`: "", `body.n in ["1", "42"]`: "", `body.s in [42]`: "",
		`[body.n] == ["42"]`: "", `query.n == body.n`: "", `body.b == "true"`: "", `body.t == true`: "", `body.t != true`: "", `body.x == "4.2e1"`: "",
		`body.s == 42.0`: "", `body.h == "18446744073709551616"`: "",
		`body.n == "43"`: "false", `body.n == "x"`: "false", `body.n == 42`: "true", `body.s == "42"`: "true", `body.n == 42.0`: "true", `body.x == 42`: "true",
		`string(body.n) == body.s`: "true", `query.n == string(body.n)`: "true", `int(body.s) == body.n`: "true", `body.b == true`: "true", `body.b == 1`: "false",
		`body.t == "true"`: "true", `body.n == true`: "false", `body.n == nil`: "false", `body.s in ["1", "42"]`: "true", `body.n in [1, 42]`: "true",
	} {
		condition, err := keyexpr.CompileCondition(form, v.Schema())
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		r := post(t, "application/json", `{"n": 42, "s": "42", "b": true, "t": "true", "x": 4.2e1, "h": 18446744073709551616}`)
		r.URL.RawQuery = "n=42"
		got, err := condition.Eval(v.Request(r, &host{}))
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: got %t, want an error", form, got)
		case want != "" && (err != nil || fmt.Sprint(got) != want):
			t.Errorf("%s: got %t, %v, want %s", form, got, err, want)
		}
	}
}

// Typed or not, a document with one name twice, in any case, is refused, because handlers disagree about
// which value counts.
func TestBody_NameTwice(t *testing.T) {
	t.Parallel()
	type sub struct {
		Kind string `json:"kind"`
	}
	type order struct {
		ID    int64          `json:"id"`
		Sub   *sub           `json:"sub"`
		Items []sub          `json:"items"`
		Extra map[string]any `json:"extra"`
	}
	bodies := map[string]string{
		"the same name":     `{"id":1,"id":2}`,
		"another case":      `{"id":1,"ID":2}`,
		"nested":            `{"id":1,"sub":{"kind":"a","Kind":"b"}}`,
		"in a list":         `{"id":1,"items":[{"kind":"a"},{"kind":"a","KIND":"b"}]}`,
		"the Kelvin sign":   "{\"id\":1,\"sub\":{\"kind\":\"a\",\"\u212Aind\":\"b\"}}",
		"the long s":        "{\"id\":1,\"sub\":{\"kind\":\"a\"},\"\u017Fub\":{\"kind\":\"b\"}}",
		"escaped":           `{"id":1,"\u0049d":2}`,
		"unknown names":     `{"id":1,"x":1,"X":2}`,
		"in an unknown one": `{"id":1,"x":{"y":1,"Y":2}}`,
		"in a map":          `{"id":1,"extra":{"y":1,"Y":2}}`,
	}
	for name, body := range bodies {
		for kind, typ := range map[string]reflect.Type{"typed": reflect.TypeFor[order](), "typed by a pointer": reflect.TypeFor[*order](), "untyped": nil} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				v := variables(t, httpvars.Config{Body: typ})
				_, err := compile(t, v, `#{body.id}`).Key(v.Request(post(t, "application/json", body), &host{}))
				wantReason(t, err, keyexpr.ReasonBadBody)
			})
		}
	}
}

// A handler reads a value whose name has another case. The key and the condition read it, too.
func TestBody_NameInAnotherCase(t *testing.T) {
	t.Parallel()
	const sent = `{"Amount": 500, "ſhard": "a", "Items": [{"SKU": "x", "Lot": [{"NO": 1}]}], "exact": "e", "none": null}`
	v := variables(t, httpvars.Config{})
	env := v.Request(post(t, "application/json", sent), &host{})
	condition := compileCondition(t, v, `body.amount > 100 && body.shard == "a" && any(body.items, .sku == "x" && .lot[0].no == 1)`)
	if got, err := condition.Eval(env); err != nil || !got {
		t.Errorf("the condition is %v, %v", got, err)
	}
}
