package keyexpr_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// nothing is a nil of every kind that a variable may be.
func nothing() []any {
	var list []string
	var table map[string]string
	var pointer *int
	return []any{list, table, pointer, &list, &table, &pointer}
}

// A registered variable that is nil is the mistake of the program, of whatever type it
// was declared.
func TestRegistered_NilOfAnyTypeIsUnset(t *testing.T) {
	t.Parallel()
	for _, value := range nothing() {
		for _, typ := range []reflect.Type{reflect.TypeOf(value), reflect.TypeFor[any]()} {
			registered, err := keyexpr.RegisteredVariables(keyexpr.Registered{Name: "who", Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			s := schemaOf(t, registered...)
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

// So is a struct that nobody has put anything into, whatever is read of it.
func TestRegistered_ZeroStructIsUnset(t *testing.T) {
	t.Parallel()
	type user struct {
		Tenant string
		Level  int
	}
	registered, err := keyexpr.RegisteredVariables(keyexpr.Registered{Name: "who", Type: reflect.TypeFor[user]()})
	if err != nil {
		t.Fatal(err)
	}
	s := schemaOf(t, registered...)
	for value, want := range map[user]keyexpr.Reason{{}: keyexpr.ReasonUnset, {Level: 1}: keyexpr.ReasonEmpty, {Tenant: "a"}: 0} {
		if _, err := compileFor(t, "#{who.Tenant}", s).Keys(keyexpr.Values{value}); (err != nil || want != 0) && reasonOf(t, err) != want {
			t.Errorf("%v: got %v, want %v", value, err, want)
		}
	}
}

func TestRegistered_EmptyListIsNoNil(t *testing.T) {
	t.Parallel()
	registered, err := keyexpr.RegisteredVariables(keyexpr.Registered{Name: "who", Type: reflect.TypeFor[[]string]()})
	if err != nil {
		t.Fatal(err)
	}
	s := schemaOf(t, registered...)
	if _, err := compileFor(t, "#{who}", s).Keys(keyexpr.Values{[]string{}}); reasonOf(t, err) != keyexpr.ReasonEmpty {
		t.Errorf("got %v, want that it is empty", err)
	}
	got, err := compileFor(t, `#{len(who) > 0 ? "some" : "none"}`, s).Key(keyexpr.Values{[]string{}})
	if err != nil || got != "none" {
		t.Errorf("got %q, %v, want none", got, err)
	}
}
