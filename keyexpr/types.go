package keyexpr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Type is the static type of a variable, a field or an element. The zero Type
// is invalid.
type Type struct {
	kind   kind
	elem   *Type
	object Object
	keyed  *Keyed
	texts  *texts // the texts that a string may have
	// convert converts the Go value of a variable to the form that this package documents for the type.
	convert func(any) any
	invalid error // the reason that no expression can read values of the type; nil for a valid type
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

// kinds holds the noun of each kind, and the value that a condition reads where a value of the
// kind is missing.
var kinds = [...]struct { //nolint:gochecknoglobals // a table that is only read
	noun  string
	empty any
}{
	kindInvalid: {"of no type", nil}, kindAny: {"of unknown type", nil}, kindString: {"a string", ""}, kindBool: {"a bool", false},
	kindInt: {"an integer", 0}, kindFloat: {"a float", 0.0}, kindList: {"a list", []any{}}, kindMap: {"a map", map[string]any{}},
	kindObject: {"an object", nil}, kindKeyed: {"a set of values", nil},
}

// AnyType returns the type of values that are known only at run time, for example decoded JSON.
// Its values are nil, bool, string, integers, float64, json.Number, []any and map[string]any, or
// the result of [DecodeJSON].
func AnyType() Type { return Type{kind: kindAny} }

// ListType returns the type of lists of elem. Its values are []any.
func ListType(elem Type) Type { return Type{kind: kindList, elem: &elem, invalid: elem.invalid} }

// MapType returns the type of maps from strings to elem. Its values are map[string]any. A key
// that the map does not contain is missing.
func MapType(elem Type) Type { return Type{kind: kindMap, elem: &elem, invalid: elem.invalid} }

// ObjectType returns the type of values with named fields.
func ObjectType(o Object) Type { return Type{kind: kindObject, object: o} }

// TextType returns the type of values that have one canonical text each, although people spell them
// in several ways. Messages call such a value noun. canonical returns the canonical text of the
// value that a text spells, and false if the text spells no value. names are the texts to suggest,
// if they can be listed. [Compile] refuses to compare such a value with a literal text that is not
// canonical.
func TextType(noun string, canonical func(text string) (string, bool), names ...string) Type {
	return Type{kind: kindString, texts: &texts{vocabularies: []vocabulary{{noun: noun, canonical: canonical, names: names}}}}
}

// describe names a type for messages.
func (t Type) describe() string {
	noun := kinds[t.kind].noun
	switch t.kind {
	case kindObject:
		return noun + " (" + t.object.Name() + ")"
	case kindKeyed:
		return noun + " (" + t.keyed.Noun + "s)"
	case kindString:
		if t.texts != nil && len(t.texts.vocabularies) == 1 && len(t.texts.literals) == 0 {
			noun, _, _ = strings.Cut(t.texts.vocabularies[0].noun, ",") // without its explanation
		}
	}
	return noun
}

// names returns the known names that may follow a value in an expression.
func (t Type) names() []string {
	switch t.kind {
	case kindKeyed:
		return slices.Clone(t.keyed.Known)
	case kindObject:
		return t.object.Fields()
	}
	return nil
}

// element returns the type of the elements of a list or map.
func (t Type) element() Type {
	if t.kind == kindList || t.kind == kindMap {
		return *t.elem
	}
	return AnyType()
}

func (t Type) isNumber() bool { return t.kind == kindInt || t.kind == kindFloat }

// isPart reports whether values of the type can be part of a key. A value of unknown type is
// checked when the key is built.
func (t Type) isPart() bool {
	return t.kind == kindString || t.kind == kindBool || t.kind == kindInt || t.kind == kindAny
}

// unify returns the type of a value that has either type a or type b.
func unify(a, b Type) Type {
	switch {
	case a.kind != b.kind:
		return AnyType()
	case a.kind == kindObject && a.object.Name() != b.object.Name():
		return AnyType()
	case a.kind == kindString:
		return Type{kind: kindString, texts: a.texts.or(b.texts)}
	case a.kind == kindList || a.kind == kindMap:
		elem := unify(*a.elem, *b.elem)
		return Type{kind: a.kind, elem: &elem}
	}
	return a
}

// Object describes values with named fields. The compiler calls Field. Building a key calls Get
// of the fields. Implementations are immutable.
type Object interface {
	// Name returns the name of the type in messages, for example shop.v1.PayRequest.
	Name() string
	// Fields returns the names of the fields, for suggestions.
	Fields() []string
	// Field returns a field by its name. The field "" is the value of an object that is also
	// a value itself, such as a timestamp. Other objects have no such field.
	Field(name string) (Field, bool)
}

// Field is one field of an [Object].
type Field struct {
	// Type is the static type of the field.
	Type Type
	// Implicit marks a field that cannot tell "not set" from its zero value. In a key, a zero
	// integer and the zero of an enum (see Zero) then count as missing.
	Implicit bool
	// Zero is the text of the zero value of an enum whose values are given as names. It is
	// empty for other fields. A condition reads it where the field is not set.
	Zero string
	// Default is the value of a field that is not set, if the schema declares one. Such a field
	// is never missing. Only a comparison with nil shows that it is not set.
	Default any
	// Get returns the value of the field, or nil if it is missing. parent is the value that
	// the variable or the previous Get returned. It is never nil.
	Get func(parent any) any
}

// Keyed describes a variable whose strings are looked up by name, such as the headers of a
// request. Expressions read them through [Env.Items].
type Keyed struct {
	// Noun is the word for an entry in messages: "path parameter", "header".
	Noun string
	// Known lists the names that exist. Nil with Open set means any name.
	Known []string
	// Open permits names that are not in Known.
	Open bool
	// Canonical, if set, maps a name to the form that [Env.Items] receives.
	Canonical func(name string) string
	// Repeatable marks a variable whose names may have several values each. name[0] then picks
	// one value and name[:] takes all of them. If a request repeats a value, name alone is an error.
	Repeatable bool
	// Caseless is the canonical name of the entry in whose values case does not matter, such as the
	// host. Expressions see these values in lower case.
	Caseless string
}

func (k *Keyed) isCaseless(name string) bool { return name != "" && name == k.Caseless }

// texts describes the texts that a value may have: the texts of the vocabularies, and the literals.
// A nil *texts stands for any text.
type texts struct {
	vocabularies []vocabulary
	literals     []*ast.StringNode
}

// vocabulary holds the arguments of [TextType].
type vocabulary struct {
	noun      string
	canonical func(text string) (string, bool)
	names     []string
	isTime    bool
}

// or returns the texts of a value that has either type.
func (t *texts) or(other *texts) *texts {
	if t == nil || other == nil {
		return nil
	}
	return &texts{slices.Concat(t.vocabularies, other.vocabularies), slices.Concat(t.literals, other.literals)}
}

// contains reports whether a value may have the text.
func (t *texts) contains(text string) bool {
	for _, v := range t.vocabularies {
		if canonical, ok := v.canonical(text); ok && canonical == text {
			return true
		}
	}
	return slices.ContainsFunc(t.literals, func(l *ast.StringNode) bool { return l.Value == text })
}

// respelled returns the canonical text of the value that literal spells differently. ok is false
// if literal is not such a spelling.
func (t *texts) respelled(literal string) (text string, ok bool) {
	for _, v := range t.vocabularies {
		if canonical, ok := v.canonical(literal); ok && canonical != literal {
			return canonical, true
		}
	}
	return "", false
}

func (t *texts) isTime() bool {
	return t != nil && len(t.vocabularies) > 0 && t.vocabularies[0].isTime
}
