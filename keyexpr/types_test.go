package keyexpr_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestNewSchema(t *testing.T) {
	t.Parallel()
	text := keyexpr.TypeFor[string]()
	tests := []struct {
		name      string
		variables []keyexpr.Variable
		want      []string // in the error; none for a schema
	}{
		{"none", nil, nil},
		{"one", []keyexpr.Variable{{Name: "a", Type: text}}, nil},
		{"every character", []keyexpr.Variable{{Name: "_aZ09", Type: text}}, nil},
		{"the argument's name", []keyexpr.Variable{{Name: "in", Type: text}}, nil},
		{"a name like a function", []keyexpr.Variable{{Name: "lower", Type: text}}, nil},
		{"no name", []keyexpr.Variable{{Type: text}}, []string{`"" cannot be the name`}},
		{"a digit first", []keyexpr.Variable{{Name: "1a", Type: text}}, []string{`"1a" cannot be the name`}},
		{"a hyphen", []keyexpr.Variable{{Name: "a-b", Type: text}}, []string{`"a-b" cannot be the name`, "letters, digits and underscores"}},
		{"a dot", []keyexpr.Variable{{Name: "a.b", Type: text}}, []string{`"a.b"`}},
		{"a space", []keyexpr.Variable{{Name: "a b", Type: text}}, []string{`"a b"`}},
		{"internal", []keyexpr.Variable{{Name: "$evaluation", Type: text}}, []string{`"$evaluation"`}},
		{"another alphabet", []keyexpr.Variable{{Name: "ключ", Type: text}}, []string{`"ключ"`}},
		{"the alias of in", []keyexpr.Variable{{Name: "ɪn", Type: text}}, []string{`"ɪn"`}},
		{"true", []keyexpr.Variable{{Name: "true", Type: text}}, []string{`"true"`, "no word of the language"}},
		{"nil", []keyexpr.Variable{{Name: "nil", Type: text}}, []string{`"nil"`}},
		{"and", []keyexpr.Variable{{Name: "and", Type: text}}, []string{`"and"`}},
		{"matches", []keyexpr.Variable{{Name: "matches", Type: text}}, []string{`"matches"`}},
		{"let", []keyexpr.Variable{{Name: "let", Type: text}}, []string{`"let"`}},
		{"if", []keyexpr.Variable{{Name: "if", Type: text}}, []string{`"if"`}},
		{"twice", []keyexpr.Variable{{Name: "a", Type: text}, {Name: "a", Type: text}}, []string{`"a" is declared twice`}},
		{"the name of a built-in", []keyexpr.Variable{{Name: "a", Type: text}, {Name: "a", Type: text, Registered: true}}, []string{`"a" is built in: choose another name`}},
		{"registered twice", []keyexpr.Variable{{Name: "a", Type: text, Registered: true}, {Name: "a", Type: text, Registered: true}}, []string{`"a" is declared twice`}},
		{"in two cases", []keyexpr.Variable{{Name: "a", Type: text}, {Name: "A", Type: text}}, nil},
		{"no type", []keyexpr.Variable{{Name: "a"}}, []string{`"a" has no type`}},
		{"all at once", []keyexpr.Variable{{Name: "-"}, {Name: "a", Type: text}, {Name: "a", Type: text}, {Name: "b"}}, []string{`"-"`, `"a" is declared twice`, `"b" has no type`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := keyexpr.NewSchema(tt.variables...)
			if len(tt.want) > 0 {
				if err == nil {
					t.Fatalf("got %q", s.Variables())
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q does not say %q", err, want)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range tt.variables {
				if got := s.Variables()[i]; got != v.Name {
					t.Errorf("slot %d is of %s, want %s", i, got, v.Name)
				}
			}
		})
	}
}

// What is done to the variables after NewSchema changes no schema.
func TestSchema_IsImmutable(t *testing.T) {
	t.Parallel()
	variables := []keyexpr.Variable{{Name: "a", Type: keyexpr.TypeFor[string]()}}
	s := schemaOf(t, variables...)
	variables[0].Name = "b"
	s.Variables()[0] = "c"
	if got := s.Variables(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q", got)
	}
	if _, err := keyexpr.Compile("#{a}", s); err != nil {
		t.Error(err)
	}
}

func TestCompile_NilSchema(t *testing.T) {
	t.Parallel()
	if key, ok := compileFor(t, "nightly", nil).Constant(); !ok || key != "nightly" {
		t.Errorf("got %q, %v", key, ok)
	}
	_, err := keyexpr.Compile("#{a}", nil)
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Message != "unknown name a: there are none" {
		t.Errorf("got %v", err)
	}
	if c, err := keyexpr.CompileCondition("1 < 2", nil); err != nil {
		t.Error(err)
	} else if ok, err := c.Eval(keyexpr.Values(nil)); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
}

type endless []endless

func TestArgument(t *testing.T) {
	t.Parallel()
	more := keyexpr.Variable{Name: "method", Type: keyexpr.TypeFor[string]()}
	for name, tt := range map[string]struct {
		typ  reflect.Type
		want string // in the error
	}{
		"a struct":     {reflect.TypeFor[struct{ A string }](), ""},
		"a pointer":    {reflect.TypeFor[*struct{ A string }](), ""},
		"a string":     {reflect.TypeFor[string](), ""},
		"nothing":      {nil, ""},
		"an interface": {reflect.TypeFor[any](), ""},
		"of itself":    {reflect.TypeFor[endless](), "nested too deeply"},
		"functions":    {reflect.TypeFor[*[]func()](), "func()"},
		"channels":     {reflect.TypeFor[map[string]chan int](), "chan int"},
		"complexes":    {reflect.TypeFor[[]complex128](), "complex128"},
		"a far slice":  {reflect.TypeFor[**[]byte](), "bytes ([]uint8)"},
		"a function":   {reflect.TypeFor[func()](), "func() cannot be used in expressions"},
		"a channel":    {reflect.TypeFor[chan int](), "chan int"},
		"bytes":        {reflect.TypeFor[[]byte](), "bytes ([]uint8)"},
		"a complex":    {reflect.TypeFor[complex128](), "complex128"},
		"keys by int":  {reflect.TypeFor[map[int]string](), "the keys of map[int]string are not strings"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := keyexpr.Argument(tt.typ, more)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), `variable "in"`) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Variables(); !slices.Equal(got, []string{"in", "method"}) {
				t.Errorf("got %q", got)
			}
		})
	}
	if _, err := keyexpr.Argument(nil, keyexpr.Variable{Name: "in", Type: keyexpr.TypeFor[string]()}); err == nil {
		t.Error("a second variable in is taken")
	}
}

func TestNewSchema_Registered(t *testing.T) {
	t.Parallel()
	s := schemaOf(t,
		keyexpr.Variable{Name: "who", Registered: true},
		keyexpr.Variable{Name: "tenant", Type: keyexpr.TypeFor[struct{ ID int }](), Registered: true},
	)
	key, err := compileFor(t, "#{who}:#{tenant.ID}", s).Key(keyexpr.Values{"bob", struct{ ID int }{7}})
	if err != nil || key != "bob:7" {
		t.Errorf("got %q, %v", key, err)
	}
	_, err = keyexpr.NewSchema(keyexpr.Variable{Name: "f", Type: keyexpr.TypeFor[func()]()}, keyexpr.Variable{Name: "g", Type: keyexpr.TypeFor[chan int]()})
	if err == nil || !strings.Contains(err.Error(), `"f"`) || !strings.Contains(err.Error(), `"g"`) {
		t.Errorf("got %v, want both problems", err)
	}
}

// What a template and a condition read decides what has to be there for them.
func TestUses(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`order`:                                     "",
		`#{"constant"}`:                             "",
		`#{path.orderId}`:                           "path",
		`#{path.orderId}:#{path.shop}`:              "path",
		`#{path.orderId}:#{query.id}`:               "path query",
		`#{header["X-Id"] ?? query.id}`:             "header query",
		`#{lower(body.id)}:#{method}`:               "body method",
		`#{map(body.items, .sku + method)}`:         "body method",
		`#{"a:" + path.orderId + ":" + principal}`:  "path principal",
		`#{method == "POST" ? path.orderId : body}`: "body method path",
		`#{[path.orderId, query.id]}`:               "path query",
	} {
		template := compile(t, source)
		if got := strings.Join(template.Variables(), " "); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
		for _, name := range requestSchema(t).Variables() {
			if got := template.Uses(name); got != slices.Contains(strings.Fields(want), name) {
				t.Errorf("%s: Uses(%s) is %v", source, name, got)
			}
		}
		if template.String() != source {
			t.Errorf("%s: its source is %s", source, template)
		}
		if _, constant := template.Constant(); constant != (want == "") {
			t.Errorf("%s: constant is %v", source, constant)
		}
		if expression, ok := strings.CutPrefix(source, "#{"); ok && strings.Count(source, "#{") == 1 {
			checkConditionUses(t, "("+strings.TrimSuffix(expression, "}")+") != nil", want)
		}
	}
}

func checkConditionUses(t *testing.T, expression, want string) {
	t.Helper()
	c, err := keyexpr.CompileCondition(expression, requestSchema(t))
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return
	}
	if got := strings.Join(c.Variables(), " "); got != want || c.String() != expression {
		t.Errorf("%s: got %q of %s, want %q", expression, got, c, want)
	}
}

// What Variables returns is the caller's.
func TestUses_IsACopy(t *testing.T) {
	t.Parallel()
	template := compile(t, `#{path.orderId}`)
	template.Variables()[0] = "x"
	if !template.Uses("path") || template.Variables()[0] != "path" {
		t.Errorf("got %q", template.Variables())
	}
	c := conditionFor(t, `method == ""`, requestSchema(t))
	c.Variables()[0] = "x"
	if !c.Uses("method") {
		t.Errorf("got %q", c.Variables())
	}
}

func TestIsList(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		`order`: false, `#{path.orderId}`: false, `#{body.ids}`: false, `#{body.ids[0]}`: false, `#{first(body.ids)}`: false,
		`#{len(body.ids)}`: false, `#{query.id}`: false, `#{query.id[0]}`: false,
		`#{body.ids[:]}`: true, `#{map(body.items, .sku)}`: true, `#{filter(body.ids, # > 1)}`: true, `#{split(body.ids, ",")}`: true, `#{query.id[:]}`: true,
		`#{[path.orderId]}`: true, `#{keys(body)}`: true,
		`#{method == "GET" ? body.a[:] : body.b[:]}`: true, `#{body.ids | map(# + 1)}`: true,
	} {
		if got := compile(t, source).IsList(); got != want {
			t.Errorf("%s: got %v, want %v", source, got, want)
		}
	}
}

// Key wants one key, of a list too.
func TestTemplate_KeyOfAList(t *testing.T) {
	t.Parallel()
	template := compile(t, `i:#{body.ids[:]}`)
	for sent, want := range map[string]string{`["a"]`: "i:a", `["a", "a"]`: "i:a", `[1, "1"]`: "i:1"} {
		if key, err := template.Key(body(`{"ids": ` + sent + `}`).env(t)); err != nil || key != want {
			t.Errorf("%s: got %q, %v, want %s", sent, key, err, want)
		}
	}
	_, err := template.Key(body(`{"ids": ["a", "b"]}`).env(t))
	if reasonOf(t, err) != keyexpr.ReasonTooMany || !strings.Contains(err.Error(), "yields 2 keys where one is needed") {
		t.Errorf("got %v", err)
	}
	if _, err := template.Key(body(`{"ids": []}`).env(t)); reasonOf(t, err) != keyexpr.ReasonEmpty {
		t.Errorf("got %v", err)
	}
}

// Values is an Env that has what it is given, and nothing more.
func TestValues(t *testing.T) {
	t.Parallel()
	v := keyexpr.Values{"a", entries{"k": {"x", "y"}}, 3}
	for slot, want := range []any{"a", nil, 3, nil, nil} {
		if slot == 1 {
			continue
		}
		if got, err := v.Value(slot); got != want || err != nil {
			t.Errorf("slot %d: got %v, %v, want %v", slot, got, err, want)
		}
	}
	for slot := range 10 {
		want := map[bool][]string{slot == 1: {"x", "y"}}[true]
		if got, err := v.Items(slot, "k"); err != nil || !slices.Equal(got, want) {
			t.Errorf("slot %d: got %q, %v, want %q", slot, got, err, want)
		}
	}
	if got, err := v.Items(1, "none"); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
}
