package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Type is the static type of a variable, a field or an element. The zero Type
// is invalid.
type Type struct {
	kind   kind
	elem   *Type
	object Object
	keyed  *Keyed
	texts  *texts // of a string
	// convert brings a variable's Go value into the form of the type.
	convert func(any) any
	invalid error // why no expression can read its values
}

type kind uint8

const (
	kindInvalid kind = iota
	kindAny
	kindString
	kindBool
	kindInt
	kindFloat
	kindList
	kindMap
	kindObject
	kindKeyed
)

// kinds say what a kind is called, and what a missing value of it is in a condition.
var kinds = [...]struct { //nolint:gochecknoglobals // a table that is only read
	noun  string
	empty any
}{
	kindInvalid: {"of no type", nil}, kindAny: {"of unknown type", nil}, kindString: {"a string", ""}, kindBool: {"a bool", false},
	kindInt: {"an integer", 0}, kindFloat: {"a float", 0.0}, kindList: {"a list", []any{}}, kindMap: {"a map", map[string]any{}},
	kindObject: {"an object", nil}, kindKeyed: {"a set of values", nil},
}

// describe names a type for messages.
func (t Type) describe() string {
	noun := kinds[t.kind].noun
	switch t.kind {
	case kindObject:
		return noun + " (" + t.object.Name() + ")"
	case kindKeyed:
		return noun + " (" + t.keyed.Noun + "s)"
	}
	return noun
}

// names are those that may follow a value in an expression, as far as they are known.
func (t Type) names() []string {
	switch t.kind {
	case kindKeyed:
		return slices.Clone(t.keyed.Known)
	case kindObject:
		return t.object.Fields()
	}
	return nil
}

// AnyType is the type of values known only at run time, such as decoded JSON:
// nil, bool, string, integers, float64, json.Number, []any and map[string]any, or what
// [DecodeJSON] makes of a document.
func AnyType() Type { return Type{kind: kindAny} }

// ListType is the type of lists of elem. Its values are []any.
func ListType(elem Type) Type { return Type{kind: kindList, elem: &elem, invalid: elem.invalid} }

// MapType is the type of maps from strings to elem. Its values are
// map[string]any. A key that is absent is missing.
func MapType(elem Type) Type { return Type{kind: kindMap, elem: &elem, invalid: elem.invalid} }

// ObjectType is the type of values with named fields.
func ObjectType(o Object) Type { return Type{kind: kindObject, object: o} }

// Object describes values with named fields. Field is called while a template
// is compiled, Get while a key is built. Implementations are immutable.
type Object interface {
	// Name is what messages call the type, such as shop.v1.PayRequest.
	Name() string
	// Fields lists the names for suggestions.
	Fields() []string
	// Field returns a field by its name. The field "" is what an object is that is also a value
	// by itself, such as a timestamp; an object without a value has none.
	Field(name string) (Field, bool)
}

// Field is one field of an [Object].
type Field struct {
	// Type is the static type of the field.
	Type Type
	// Implicit says that the field cannot tell "not set" from its zero value. A
	// zero integer and the zero of an Enum then count as missing in a key.
	Implicit bool
	// Zero is the text of the zero value of an enum whose values are given as names;
	// empty otherwise. In a condition it is the value of a field that is not set.
	Zero string
	// Default is the value of a field that is not set, if the schema declares one. Such a
	// field is never missing; only a comparison with nil sees that it is not set.
	Default any
	// Get returns the value of the field, nil if it is missing. The parent is
	// what the variable or the previous Get returned, never nil.
	Get func(parent any) any
}

// Keyed describes a variable whose strings are looked up by name, such as the headers of a
// request. They are read through [Env.Items].
type Keyed struct {
	// Noun is what messages call an entry: "path parameter", "header".
	Noun string
	// Known lists the names that exist. Nil with Open set means any name.
	Known []string
	// Open admits names that are not in Known.
	Open bool
	// Canonical, if set, maps a name to the form given to [Env.Items].
	Canonical func(name string) string
	// Repeatable says that one name may have several values: then name[0] picks
	// one and name[:] all of them, and name alone is an error for a request that
	// repeats it.
	Repeatable bool
	// Caseless is the canonical name of the entry whose case does not matter, such as the
	// host. Its values are in lower case.
	Caseless string
}

func (k *Keyed) isCaseless(name string) bool { return name != "" && name == k.Caseless }

// Variable is one name that expressions may use.
type Variable struct {
	// Name is an identifier: a letter or underscore, then letters, digits and
	// underscores.
	Name string
	// Type is the static type of the variable. Leave it out where there is a Keyed.
	Type  Type
	Keyed *Keyed
	// Registered marks a variable that the application provides. Its absence is
	// the application's mistake ([ReasonUnset]), not the client's. "" and the zero value
	// of a struct are absent, too. Without a Type it is a string.
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

// argumentName is the variable of the schemas made by [Argument].
const argumentName = "in"

// Argument returns the schema of a function whose argument has type t: one
// variable, in, with Go field names. More variables may follow; the argument
// has slot 0. A type that no expression can read is an error.
func Argument(t reflect.Type, more ...Variable) (*Schema, error) {
	return NewSchema(append([]Variable{{Name: argumentName, Type: GoType(t)}}, more...)...)
}

// Env supplies the values of one request to templates and conditions. Slots
// are those of the [Schema] the template was compiled against.
//
// Only what a template uses is asked for, and it may be asked for several
// times (by several parts, rules and conditions), so an Env keeps what is
// costly to compute. One goroutine uses an Env at a time. An error that is no
// *[EvalError] is reported as one with [ReasonInternal].
type Env interface {
	// Value returns the value of the variable in slot, of the kind its [Type]
	// describes. Nil is missing, or unset for a registered variable.
	Value(slot int) (any, error)

	// Items returns the values of a keyed variable's entry; none is missing. They are only read.
	Items(slot int, key string) ([]string, error)
}

// Values is an [Env] of fixed values by slot. A keyed variable's value is a
// map[string][]string. It suits tests and schemas made by [Argument]; for a
// large struct store a pointer to it.
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
