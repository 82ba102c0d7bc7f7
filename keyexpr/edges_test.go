package keyexpr_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// Whichever part of a template fails, before or after a list or the list itself, its error
// is that of the template.
func TestTemplate_EachPartMayFail(t *testing.T) {
	t.Parallel()
	const template = `o:#{path.shop}:#{body.ids[:]}:#{query.id}`
	whole := func() request {
		return request{path: entries{"shop": {"s"}}, query: entries{"id": {"1"}}, body: `{"ids": ["b", "a"]}`}
	}
	for subject, change := range map[string]func(*request){
		"":            func(*request) {},
		"path.shop":   func(r *request) { r.path = nil },
		"query.id":    func(r *request) { r.query = nil },
		"body.ids":    func(r *request) { r.body = `{"ids": 7}` },
		"body.ids[:]": func(r *request) { r.body = `{"ids": []}` },
	} {
		r := whole()
		change(&r)
		keys, err := compile(t, template).Keys(r.env(t))
		if subject == "" {
			if err != nil || strings.Join(keys, " ") != "o:s:a:1 o:s:b:1" {
				t.Errorf("got %q, %v", keys, err)
			}
			continue
		}
		failure, ok := errors.AsType[*keyexpr.EvalError](err)
		if !ok || failure.Subject != subject || failure.Template != template {
			t.Errorf("without %s: got %q, %v", subject, keys, err)
		}
		if key, err := compile(t, template).Key(r.env(t)); key != "" || err == nil {
			t.Errorf("without %s: got key %q, %v", subject, key, err)
		}
	}
}

// A long value of a request is refused wherever it stands.
func TestTemplate_LongValuesAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	env := request{path: entries{"orderId": {long}}, query: entries{"id": {long, long}}}.env(t)
	for _, template := range []string{`#{path.orderId}`, `#{query.id[0]}`, `#{query.id[:]}`, `#{path.orderId ?? "x"}`, `#{[path.orderId]}`} {
		if _, err := compile(t, template).Keys(env); reasonOf(t, err) != keyexpr.ReasonTooLong {
			t.Errorf("%s: got %v", template, err)
		}
	}
}

// What ?? has on its right makes no difference where its left has a value.
func TestLanguage_DefaultsOfValuesThatAreThere(t *testing.T) {
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

// isList says that a list of unknown elements is none beside another type: its type is not
// known any more.
func isList(bare, got string) bool { return strings.Contains(bare, " ") && got == "!wrong_type" }

// A predicate sees its element, its index, what is around it, and no element of a loop
// that has ended.
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

type (
	first  struct{ ID, Name string }
	second struct{ ID string }
	mixed  struct {
		First  first
		Second second
		Firsts []first
		Bytes  map[string][]byte
		Funcs  []func()
		Chans  *chan int
		Deep   [][][][][][][][][][][][][][][][][][]int
		Keys   map[int]string
	}
)

// Values of two types have the fields of neither, as far as is known.
func TestGoType_OfTwoTypes(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[mixed](t)
	in := keyexpr.Values{&mixed{First: first{"1", "a"}, Second: second{"2"}, Firsts: []first{{"3", "b"}}}}
	for expression, want := range map[string]string{
		`(in.First.Name == "a" ? in.First : in.Firsts[0]).ID`: "1", `[in.First, in.Firsts[0]][1].ID`: "3", `map([in.Firsts[0], in.First], .ID)`: "1 3",
		`(in.First.Name == "b" ? in.First : in.Firsts[0]).Name`: "b", `in.Firsts[0].ID`: "3", `first(in.Firsts).ID`: "3",
	} {
		keys, err := compileFor(t, `#{`+expression+`}`, schema).Keys(in)
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
	for _, expression := range []string{`(in.First.Name == "a" ? in.First : in.Second).ID`, `[in.First, in.Second][0].ID`} {
		_, err := compileFor(t, `#{`+expression+`}`, schema).Keys(in)
		if reasonOf(t, err) != keyexpr.ReasonWrongType {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

// A field of a type that no expression can read is an error where it is used, and only there.
func TestGoType_FieldsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[mixed](t)
	for _, field := range []string{"Bytes", "Funcs", "Chans", "Deep", "Keys"} {
		_, err := keyexpr.Compile(`o:#{in.`+field+`}`, schema)
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Column != 8 || !strings.Contains(problem.Message, "the field "+field+" of keyexpr_test.mixed has a type that expressions cannot use") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// A constant is checked as the literal text that it becomes.
func TestCompile_ConstantsAreLiterals(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`o:#{"a"}:#{1 + 1}`: "o:a:2", `#{"a:b"}`: "a:b", `#{"#"}{x}`: "#{x}", `#{"#{"}x}`: "#{x}", `o:#{true}`: "o:true", `o:#{upper("a") + "%41"}`: "o:A%41",
	} {
		template := compile(t, template)
		if key, ok := template.Constant(); !ok || key != want {
			t.Errorf("%v: got %q, %v, want %q", template, key, ok, want)
		}
		if key, err := template.Key(nil); err != nil || key != want { // it asks for nothing
			t.Errorf("%v: got %q, %v, want %q", template, key, err, want)
		}
	}
	for _, template := range []string{`o:#{"a\nb"}`, `o:#{"\x7f"}`, `o:#{"x" + "%~"}`, `o:#{upper("\u0085")}`, `o:#{[1, 2][5] ?? ""}`} {
		if _, err := keyexpr.Compile(template, requestSchema(t)); err == nil {
			t.Errorf("%s compiles", template)
		}
	}
}

// What an adapter without any variable can suggest: that there is none.
func TestSuggestion_OfAnEmptySchema(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`o:#{}`: "write #{…}", `o:#{id}`: "unknown name id: there are none", `o:#id`: "write o:#{id}", `o:%s`: "write o:#{…}", `o:${id}`: "write o:#{id}",
	} {
		_, err := keyexpr.Compile(template, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", template, err, want)
		}
	}
	text := schemaOf(t, keyexpr.Variable{Name: "tenant", Type: keyexpr.TypeFor[string]()})
	for template, want := range map[string]string{`o:#{}`: "write #{tenant}", `o:%s`: "write o:#{tenant}", `o:{tenant}`: "write o:#{tenant}"} {
		_, err := keyexpr.Compile(template, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", template, err, want)
		}
	}
}

// in is a variable where an operand stands, and an operator elsewhere.
func TestArgument_NameIsAlsoAnOperator(t *testing.T) {
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
		`in.a in`: "ends too early", `in in`: "ends too early", `in in in in`: `unexpected token "in"`, `in.`: "ends too early", `in "a"`: `unexpected token "a"`, `in 'a`: "literal not terminated", //nolint:dupword // a variable and an operator
	} {
		_, err := keyexpr.Compile(`#{`+expression+`}`, schema)
		if err == nil || strings.Contains(err.Error(), "ɪ") {
			t.Errorf("%s: got %v", expression, err)
		}
		_, err = keyexpr.CompileCondition(expression, schema)
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || strings.Contains(err.Error(), "ɪ") || problem.Line != 1 || problem.Column < 1 {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}

// Numbers that JSON, Go and protobuf write in the same way are the same operand.
func TestEqual_NumbersOfAnyType(t *testing.T) {
	t.Parallel()
	c := (&hostile{expression: `body.a == body.b and body.a in [body.b] and not (body.a != body.b) and body.a <= body.b and body.a >= body.b`}).condition(t)
	same := []any{42, int8(42), int16(42), int32(42), int64(42), uint(42), uint8(42), uint16(42), uint32(42), uint64(42), uintptr(42), 42.0, float32(42), json.Number("42")}
	for _, a := range same {
		for _, b := range same {
			if ok, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": b}}); err != nil || !ok {
				t.Errorf("%T and %T: got %v, %v", a, b, ok, err)
			}
		}
	}
	for _, other := range []any{41, 43, -42, 42.5, json.Number("43")} {
		for _, a := range same {
			if ok, err := c.Eval(keyexpr.Values{slotBody: object{"a": a, "b": other}}); err != nil || ok {
				t.Errorf("%T and %v: got %v, %v", a, other, ok, err)
			}
		}
	}
}
