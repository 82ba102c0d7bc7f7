package keyexpr_test

import (
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
		want      []string // texts of the error; none for a valid schema
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

// A change of the variables after NewSchema does not change the schema.
func TestNewSchema_CopiesVariables(t *testing.T) {
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

type endless []endless

func TestArgument(t *testing.T) {
	t.Parallel()
	more := keyexpr.Variable{Name: "method", Type: keyexpr.TypeFor[string]()}
	for name, tt := range map[string]struct {
		typ  reflect.Type
		want string // a text of the error
	}{
		"a struct":     {reflect.TypeFor[struct{ A string }](), ""},
		"a pointer":    {reflect.TypeFor[*struct{ A string }](), ""},
		"a string":     {reflect.TypeFor[string](), ""},
		"no variables": {nil, ""},
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
		t.Error("a second variable named in was accepted")
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

// Values returns its values, and nil for other slots.
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
