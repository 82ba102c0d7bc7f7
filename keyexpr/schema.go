package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Variable is one name that expressions may use.
type Variable struct {
	// Name is an identifier: a letter or underscore, then letters, digits and
	// underscores.
	Name string
	// Type is the static type of the variable.
	Type Type
	// Registered marks a variable that the application provides. Its absence is
	// the application's mistake ([ReasonUnset]), not the client's. "" and the zero value
	// of a struct are absent, too.
	Registered bool
}

// Schema is the set of variables that an adapter offers to expressions. The
// slot of a variable is its position in the call of [NewSchema]. A Schema is
// immutable and safe for concurrent use.
type Schema struct {
	variables []Variable
	slots     map[string]int
}

// NewSchema returns the schema of the given variables. Bad or repeated names
// and invalid types are errors, all of them joined.
func NewSchema(variables ...Variable) (*Schema, error) {
	s := &Schema{variables: slices.Clone(variables), slots: make(map[string]int, len(variables))}
	var problems []error
	for i, v := range s.variables {
		problems = append(problems, s.add(i, v))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Schema) add(slot int, v Variable) error {
	if !identifier.MatchString(v.Name) || reservedNames[v.Name] {
		return fmt.Errorf("keyexpr: %q cannot be the name of a variable: use letters, digits and underscores, and no word of the language", v.Name)
	}
	first, taken := s.slots[v.Name]
	switch {
	case taken && v.Registered && !s.variables[first].Registered:
		return fmt.Errorf("keyexpr: the variable %q is built in: choose another name", v.Name)
	case taken:
		return fmt.Errorf("keyexpr: the variable %q is declared twice", v.Name)
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

// Slot returns the slot of a variable.
func (s *Schema) Slot(name string) (slot int, ok bool) {
	slot, ok = s.slots[name]
	return slot, ok
}

// With returns the schema in which a variable has another type, such as what is known of
// the body of one route. A name that no variable has, and an invalid type, are errors.
func (s *Schema) With(name string, t Type) (*Schema, error) {
	slot, ok := s.slots[name]
	if !ok {
		return nil, fmt.Errorf("keyexpr: there is no variable %q", name)
	}
	variables := slices.Clone(s.variables)
	variables[slot].Type = t
	return NewSchema(variables...)
}

// Registered declares a variable that the application computes for each request, such
// as the authenticated principal.
type Registered struct {
	// Name is the name in expressions.
	Name string
	// Type is the Go type of the values, fields by Go names. Nil means string.
	Type reflect.Type
}

// RegisteredVariables returns the variables that the application provides. Types that no
// expression can read are errors, all of them joined.
func RegisteredVariables(registered ...Registered) ([]Variable, error) {
	variables := make([]Variable, len(registered))
	var problems []error
	for i, r := range registered {
		if r.Type == nil {
			r.Type = reflect.TypeFor[string]()
		}
		typ, err := GoType(r.Type, GoNames)
		if err != nil {
			problems = append(problems, fmt.Errorf("keyexpr: variable %q: %w", r.Name, err))
		}
		variables[i] = Variable{Name: r.Name, Type: typ, Registered: true}
	}
	return variables, errors.Join(problems...)
}

// ArgumentName is the variable of the schemas made by [Argument].
const ArgumentName = "in"

// Argument returns the schema of a function whose argument has type t: one
// variable, in, with Go field names. More variables may follow; the argument
// has slot 0. A type that no expression can read is an error.
func Argument(t reflect.Type, more ...Variable) (*Schema, error) {
	typ, err := GoType(t, GoNames)
	if err != nil {
		return nil, fmt.Errorf("keyexpr: variable %s: %w", ArgumentName, err)
	}
	variables := append([]Variable{{Name: ArgumentName, Type: typ}}, more...)
	return NewSchema(variables...)
}
