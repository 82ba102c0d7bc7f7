package keyexpr_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// everything is an argument with a field of each kind that may be missing.
type everything struct {
	Text   *string
	Flag   *bool
	N      *int
	F      *float64
	List   *[]string
	Nested *everything
	Map    map[string]int
	Any    any
	Plain  string
	Count  int
}

// In a condition, a missing value is the empty value of its type.
func TestCondition_MissingIsEmpty(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[everything](t)
	for expression, want := range map[string]bool{
		`in.Text == ""`:                    true,
		`in.Text != ""`:                    false,
		`in.Text == nil`:                   true,
		`in.Text < "a"`:                    true,
		`in.Text in ["", "a"]`:             true,
		`len(in.Text) == 0`:                true,
		`upper(in.Text) == ""`:             true,
		`split(in.Text, ",") == [""]`:      true,
		`(in.Text ?? "x") == "x"`:          true,
		`in.Text + "a" == "a"`:             true,
		`in.Text == in.Nested.Text`:        true,
		`in.Flag`:                          false,
		`not in.Flag`:                      true,
		`in.Flag == false`:                 true,
		`in.Flag or true`:                  true,
		`in.Flag and true`:                 false,
		`in.Flag ? false : true`:           true,
		`(in.Flag ?? true)`:                true,
		`in.N == 0`:                        true,
		`in.N < 1`:                         true,
		`in.N >= 0`:                        true,
		`in.N + 1 == 1`:                    true,
		`-in.N == 0`:                       true,
		`in.N * 5 == 0`:                    true,
		`in.N in [0, 1]`:                   true,
		`in.N == nil`:                      true,
		`(in.N ?? 4) == 4`:                 true,
		`in.F == 0`:                        true,
		`in.F < 0.5`:                       true,
		`in.F / 2 == 0`:                    true,
		`len(in.List) == 0`:                true,
		`"a" in in.List`:                   false,
		`any(in.List, # == "a")`:           false,
		`all(in.List, # == "a")`:           true,
		`len(map(in.List, #)) == 0`:        true,
		`in.List == nil`:                   true,
		`in.List[0] == ""`:                 true,
		`in.List[0] == nil`:                true,
		`in.Nested.Text == ""`:             true,
		`in.Nested.Nested.N == 0`:          true,
		`in.Nested == nil`:                 true,
		`in.Nested?.Flag`:                  false,
		`in.Nested.List == nil`:            true,
		`any(in.Nested.List, # == "")`:     false,
		`"a" in in.Map`:                    false,
		`in.Map.a == 0`:                    true,
		`in.Map["a"] == nil`:               true,
		`len(keys(in.Map)) == 0`:           true,
		`in.Any == nil`:                    true,
		`in.Any == ""`:                     true,
		`in.Any == 0`:                      true,
		`in.Any == false`:                  true,
		`in.Any.x.y == "z"`:                false,
		`in.Any.x[3] == 0`:                 true,
		`in.Any > 0`:                       false,
		`len(in.Any) == 0`:                 true,
		`any(in.Any.items, .n > 1)`:        false,
		`in.Any.flag`:                      false,
		`not in.Any.flag`:                  true,
		`in.Any.flag and in.Flag`:          false,
		`in.Any.flag ? false : true`:       true,
		`in.Any.a - in.Any.b == 0`:         true,
		`in.Any.a == in.Any.b`:             true,
		`in.Plain == ""`:                   true,
		`in.Plain == nil`:                  true, // the type cannot tell zero from not set
		`in.Count == 0`:                    true,
		`in.Count == nil`:                  true,
		`(in.Count ?? 3) == 3`:             true,
		`(in.Plain ?? "x") == "x"`:         true,
		`[in.Text, "a"] == ["", "a"]`:      true,
		`string(in.N) == "0"`:              true,
		`int(in.Text ?? "4") == 4`:         true,
		`in.Text == lower(in.Nested.Text)`: true,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			condition := conditionFor(t, expression, schema)
			for name, in := range map[string]any{"zero": &everything{}, "nil": (*everything)(nil), "nothing": nil} {
				if got, err := condition.Eval(keyexpr.Values{in}); err != nil || got != want {
					t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
				}
			}
		})
	}
}

// In a key, a missing value is an error, except under ?? and in a comparison with nil.
func TestTemplate_MissingIsAnError(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[everything](t)
	for expression, want := range map[string]keyexpr.Reason{
		`in.Text`:                           keyexpr.ReasonMissing,
		`in.N`:                              keyexpr.ReasonMissing,
		`in.Flag`:                           keyexpr.ReasonMissing,
		`in.List`:                           keyexpr.ReasonMissing,
		`in.Nested.Text`:                    keyexpr.ReasonMissing,
		`in.Map.a`:                          keyexpr.ReasonMissing,
		`in.Any`:                            keyexpr.ReasonMissing,
		`in.Any.x`:                          keyexpr.ReasonMissing,
		`in.Any[:]`:                         keyexpr.ReasonMissing,
		`in.Plain`:                          keyexpr.ReasonEmpty,
		`in.Count`:                          keyexpr.ReasonMissing,
		`"a-" + in.Text`:                    keyexpr.ReasonMissing,
		`"a-" + in.Plain`:                   keyexpr.ReasonEmpty,
		`lower(in.Text)`:                    keyexpr.ReasonMissing,
		`lower(in.Plain)`:                   keyexpr.ReasonEmpty,
		`string(in.N)`:                      keyexpr.ReasonMissing,
		`string(in.Count)`:                  keyexpr.ReasonMissing,
		`in.N + 1`:                          keyexpr.ReasonMissing,
		`in.Text == "a" ? 1 : 2`:            keyexpr.ReasonMissing,
		`in.Flag ? 1 : 2`:                   keyexpr.ReasonMissing,
		`in.N > 3 ? 1 : 2`:                  keyexpr.ReasonMissing,
		`len(in.List)`:                      keyexpr.ReasonMissing,
		`map(in.List, #)`:                   keyexpr.ReasonMissing,
		`any(in.List, # == "a") ? 1 : 2`:    keyexpr.ReasonMissing,
		`"a" in in.List ? 1 : 2`:            keyexpr.ReasonMissing,
		`[in.Text, "a"]`:                    keyexpr.ReasonMissing,
		`in.Text ?? in.Nested.Text`:         keyexpr.ReasonMissing,
		`in.Text ?? ""`:                     keyexpr.ReasonEmpty,
		`(in.Text ?? "") + "a"`:             keyexpr.ReasonEmpty,
		`in.Text == nil ? in.Plain : "b"`:   keyexpr.ReasonEmpty,
		`split(in.Plain, ",")`:              keyexpr.ReasonEmpty,
		`first(in.List ?? [])`:              keyexpr.ReasonMissing,
		`in.Nested.Nested.Nested.Any.x.y.z`: keyexpr.ReasonMissing,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			template := compileFor(t, "k:#{"+expression+"}", schema)
			keys, err := template.Keys(keyexpr.Values{&everything{}})
			if err == nil {
				t.Fatalf("got %q, want reason %v", keys, want)
			}
			if got := reasonOf(t, err); got != want {
				t.Errorf("got %v (%v), want %v", got, err, want)
			}
		})
	}
}

func TestTemplate_MissingIsAccepted(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[everything](t)
	for expression, want := range map[string]string{
		`in.Text ?? "none"`:                                 "none",
		`in.Plain ?? "none"`:                                "none",
		`in.Count ?? 0`:                                     "0",
		`in.N ?? in.Count ?? 7`:                             "7",
		`in.Nested.Nested.Text ?? "none"`:                   "none",
		`in.Map.a ?? 3`:                                     "3",
		`in.Any.a.b[3].c ?? "none"`:                         "none",
		`in.List[4] ?? "none"`:                              "none",
		`in.Text == nil ? "none" : in.Text`:                 "none",
		`in.Text != nil ? in.Text : "none"`:                 "none",
		`in.Nested == nil ? "none" : "some"`:                "none",
		`first(in.List ?? ["a"])`:                           "a",
		`len(in.List ?? [])`:                                "0",
		`(in.List ?? ["b", "a"])`:                           "a b",
		`"a-" + (in.Text ?? "none")`:                        "a-none",
		`lower(in.Text ?? "NONE")`:                          "none",
		`in.Flag ?? false`:                                  "false",
		`(in.Flag ?? false) ? 1 : 2`:                        "2",
		`string(in.N ?? 4)`:                                 "4",
		`(in.Text ?? in.Any.text ?? in.Nested.Text) ?? "z"`: "z",
		`map(in.List ?? ["a"], # + "x")`:                    "ax",
		`any(in.List ?? [], # == "a")`:                      "false",
	} {
		keys, err := compileFor(t, "#{"+expression+"}", schema).Keys(keyexpr.Values{&everything{}})
		if got := strings.Join(keys, " "); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
}

// nils returns a nil of every kind that a variable may have.
func nils() []any {
	var list []string
	var table map[string]string
	var pointer *int
	return []any{list, table, pointer, &list, &table, &pointer}
}

// A registered variable that is nil is a mistake of the application, whatever its declared type.
func TestRegistered_NilIsUnset(t *testing.T) {
	t.Parallel()
	for _, value := range nils() {
		for _, typ := range []reflect.Type{reflect.TypeOf(value), reflect.TypeFor[any]()} {
			s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.GoType(typ), Registered: true})
			for _, template := range []string{"#{who}", `#{len(who) > 0 ? "some" : "none"}`, `#{who["a"]}`, `#{map(who, #)}`} {
				compiled, err := keyexpr.Compile(template, s)
				if err != nil {
					continue // it is for variables of other types
				}
				keys, err := compiled.Keys(keyexpr.Values{value})
				if failure, ok := errors.AsType[*keyexpr.EvalError](err); !ok || failure.Reason != keyexpr.ReasonUnset {
					t.Errorf("%T as %v: %s yields %q, %v, want that it is unset", value, typ, template, keys, err)
				}
			}
			condition, err := keyexpr.CompileCondition(`who == "a"`, s)
			if err != nil {
				continue
			}
			if yes, err := condition.Eval(keyexpr.Values{value}); err == nil {
				t.Errorf("%T as %v: a condition yields %t, want that it is unset", value, typ, yes)
			}
		}
	}
}

// A registered variable that is a zero struct is a mistake of the application, whichever field an
// expression reads.
func TestRegistered_ZeroStructIsUnset(t *testing.T) {
	t.Parallel()
	type user struct {
		Tenant string
		Level  int
	}
	s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.TypeFor[user](), Registered: true})
	for value, want := range map[user]keyexpr.Reason{{}: keyexpr.ReasonUnset, {Level: 1}: keyexpr.ReasonEmpty, {Tenant: "a"}: 0} {
		if _, err := compileFor(t, "#{who.Tenant}", s).Keys(keyexpr.Values{value}); (err != nil || want != 0) && reasonOf(t, err) != want {
			t.Errorf("%v: got %v, want %v", value, err, want)
		}
	}
}

func TestRegistered_EmptyListIsSet(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, keyexpr.Variable{Name: "who", Type: keyexpr.TypeFor[[]string](), Registered: true})
	if _, err := compileFor(t, "#{who}", s).Keys(keyexpr.Values{[]string{}}); reasonOf(t, err) != keyexpr.ReasonEmpty {
		t.Errorf("got %v, want that it is empty", err)
	}
	got, err := compileFor(t, `#{len(who) > 0 ? "some" : "none"}`, s).Key(keyexpr.Values{[]string{}})
	if err != nil || got != "none" {
		t.Errorf("got %q, %v, want none", got, err)
	}
}
