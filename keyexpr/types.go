package keyexpr

import (
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
	texts  *texts // of a string, and of the names in a map
	// convert brings a variable's Go value into the form of the type.
	convert func(any) any
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

// kinds say what a kind is called, the Go type of its values in the machine, and what a
// missing one is in a condition.
var kinds = [...]struct { //nolint:gochecknoglobals // a table that is only read
	noun   string
	goType reflect.Type
	empty  any
}{
	kindInvalid: {"of no type", reflect.TypeFor[any](), nil},
	kindAny:     {"of unknown type", reflect.TypeFor[any](), nil},
	kindString:  {"a string", reflect.TypeFor[string](), ""},
	kindBool:    {"a bool", reflect.TypeFor[bool](), false},
	kindInt:     {"an integer", reflect.TypeFor[int](), 0},
	kindFloat:   {"a float", reflect.TypeFor[float64](), 0.0},
	kindList:    {"a list", reflect.TypeFor[[]any](), []any{}},
	kindMap:     {"a map", reflect.TypeFor[map[string]any](), map[string]any{}},
	kindObject:  {"an object", reflect.TypeFor[any](), nil},
	kindKeyed:   {"a set of values", reflect.TypeFor[any](), nil},
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

// goType is the Go type that values of a type have in the machine.
func (t Type) goType() reflect.Type {
	if t.kind == kindList && (t.elem.kind == kindString || t.elem.kind == kindInt) {
		return reflect.SliceOf(t.elem.goType())
	}
	return kinds[t.kind].goType
}

// StringType is the type of text. Its values are Go strings.
func StringType() Type { return Type{kind: kindString} }

// BoolType is the type of truth values. Its values are Go bools.
func BoolType() Type { return Type{kind: kindBool} }

// IntType is the type of integers. Its values are Go integers of any size.
func IntType() Type { return Type{kind: kindInt} }

// FloatType is the type of floating-point numbers: usable in comparisons, never
// as a key part.
func FloatType() Type { return Type{kind: kindFloat} }

// AnyType is the type of values known only at run time, such as decoded JSON:
// nil, bool, string, integers, float64, json.Number, []any and map[string]any.
func AnyType() Type { return Type{kind: kindAny} }

// JSONType is the type of JSON as clients send it, decoded by [DecodeJSON]. A name is
// found in any case, as encoding/json does it for the fields of a handler's struct: a
// client could otherwise hide a value from a key or a condition that the handler gets.
func JSONType() Type { return AnyType() }

// ListType is the type of lists of elem. Its values are []any.
func ListType(elem Type) Type { return Type{kind: kindList, elem: &elem} }

// MapType is the type of maps from strings to elem. Its values are
// map[string]any. A key that is absent is missing.
func MapType(elem Type) Type { return Type{kind: kindMap, elem: &elem} }

// ObjectType is the type of values with named fields.
func ObjectType(o Object) Type { return Type{kind: kindObject, object: o} }

// KeyedType is the type of a variable whose strings are looked up by name, such
// as the headers of a request. Only variables have it; their values are read
// through [Env.Item].
func KeyedType(k Keyed) Type { return Type{kind: kindKeyed, keyed: &k} }

// Object describes values with named fields. Field is called while a template
// is compiled, Get while a key is built. Implementations are immutable.
type Object interface {
	// Name is what messages call the type, such as shop.v1.PayRequest.
	Name() string
	// Fields lists the names for suggestions.
	Fields() []string
	// Field returns a field by its name.
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

// Valued is an [Object] that is also a value by itself, such as a timestamp. Value returns
// its type, and how to get it of the object.
type Valued interface {
	Object
	Value() Field
}

// Keyed describes a variable whose strings are looked up by name.
type Keyed struct {
	// Noun is what messages call an entry: "path parameter", "header".
	Noun string
	// Known lists the names that exist. Nil with Open set means any name.
	Known []string
	// Open admits names that are not in Known.
	Open bool
	// Canonical, if set, maps a name to the form given to [Env.Item]. It runs
	// while the template is compiled (and at run time for computed names).
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
