package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
)

// Variable is one name that expressions may use.
type Variable struct {
	// Name is an identifier: a letter or underscore, then letters, digits and
	// underscores.
	Name string
	// Type is the static type of the variable. It is ignored if Keyed is set.
	Type  Type
	Keyed *Keyed
	// Registered marks a variable that the application provides. If it is absent, the
	// application is at fault ([ReasonUnset]), not the client. "" and the zero value of a
	// struct count as absent, too. A registered variable without a Type is a string.
	Registered bool
}

// Schema is the set of variables that an adapter offers to expressions. The
// slot of a variable is its position in the call of [NewSchema]. A Schema is
// immutable and safe for concurrent use.
type Schema struct {
	variables []Variable
	slots     map[string]int
}

// NewSchema returns the schema of the given variables. Its error joins one error for each
// name that is invalid or repeated, and for each invalid type.
func NewSchema(variables ...Variable) (*Schema, error) {
	s := &Schema{variables: slices.Clone(variables), slots: make(map[string]int, len(variables))}
	var problems []error
	for i := range s.variables {
		problems = append(problems, s.add(i, &s.variables[i]))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Schema) add(slot int, v *Variable) error {
	if v.Keyed != nil {
		v.Type = Type{kind: kindKeyed, keyed: v.Keyed}
	}
	if !identifier.MatchString(v.Name) || reservedNames[v.Name] {
		return fmt.Errorf("keyexpr: %q cannot be the name of a variable: use letters, digits and underscores, and no word of the language", v.Name)
	}
	first, taken := s.slots[v.Name]
	switch {
	case taken && v.Registered && !s.variables[first].Registered:
		return fmt.Errorf("keyexpr: the variable %q is built in: choose another name", v.Name)
	case taken:
		return fmt.Errorf("keyexpr: the variable %q is declared twice", v.Name)
	case v.Type.invalid != nil:
		return fmt.Errorf("keyexpr: variable %q: %w", v.Name, v.Type.invalid)
	case v.Type.kind == kindInvalid && v.Registered:
		v.Type = TypeFor[string]()
	case v.Type.kind == kindInvalid:
		return fmt.Errorf("keyexpr: the variable %q has no type", v.Name)
	}
	s.slots[v.Name] = slot
	return nil
}

// Variables returns the names of the variables in the order of their slots.
func (s *Schema) Variables() []string {
	names := make([]string, len(s.variables))
	for i, v := range s.variables {
		names[i] = v.Name
	}
	return names
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reservedNames are words of the expression language. The word in is also one of them, but
// [Argument] uses it as the name of a variable; see renameArgument.
var reservedNames = map[string]bool{ //nolint:gochecknoglobals // a table that is only read
	"true": true, "false": true, "nil": true, "not": true, "or": true, "and": true,
	"matches": true, "contains": true, "startsWith": true, "endsWith": true, "let": true,
	"if": true, "else": true,
}

// argumentName is the name of the variable in the schemas of [Argument].
const argumentName = "in"

// Argument returns the schema of a function whose argument has type t. The schema has one
// variable, in, with Go field names, in slot 0. The variables of more follow it. A type that no
// expression can read is an error.
func Argument(t reflect.Type, more ...Variable) (*Schema, error) {
	return NewSchema(append([]Variable{{Name: argumentName, Type: GoType(t)}}, more...)...)
}

// Env supplies the values of one request to templates and conditions. Its slots
// are the slots of the [Schema] that the template was compiled against.
//
// A template asks only for the values that it uses. Several parts, rules and conditions may ask
// for the same value, so an Env keeps the values that are costly to compute. One goroutine uses
// an Env at a time. An error that is not an *[EvalError] is reported as one with
// [ReasonInternal].
type Env interface {
	// Value returns the value of the variable in slot. Its [Type] describes the form of the
	// value. Nil means missing; for a registered variable, it means unset.
	Value(slot int) (any, error)

	// Items returns the values of one entry of a keyed variable. An entry without values is
	// missing. Callers do not change the slice.
	Items(slot int, key string) ([]string, error)
}

// Values is an [Env] of fixed values by slot. The value of a keyed variable is a
// map[string][]string. Values suits tests and the schemas of [Argument]. For a large struct,
// store a pointer to it.
type Values []any

// Value implements [Env].
func (v Values) Value(slot int) (any, error) {
	if slot >= len(v) {
		return nil, nil //nolint:nilnil // nil is missing
	}
	return v[slot], nil
}

// Items implements [Env].
func (v Values) Items(slot int, key string) ([]string, error) {
	if slot >= len(v) {
		return nil, nil
	}
	entries, _ := v[slot].(map[string][]string) //nolint:errcheck // nil has no entries
	return entries[key], nil
}
