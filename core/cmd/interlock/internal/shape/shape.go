// Package shape knows what JSON values look like: from a sample of a body, or from what
// a program says about its types.
package shape

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// Shape is what is known of the values in one place. It does not change once it is
// made.
type Shape struct {
	called string // by messages; "" for what the place is called
	kind   kind
	elem   *Shape            // of a list
	fields map[string]*Shape // of an object
}

// kind is a type as messages name it, in the words of a routes file.
type kind string

const (
	anything kind = "any"
	null     kind = "null" // only that was seen
	text     kind = "string"
	boolean  kind = "boolean"
	integer  kind = "integer"
	number   kind = "number"
	list     kind = "list"
	object   kind = "object"
)

// Sample is the shape of a JSON document: objects have the fields that they have
// there, and the elements of a list those that any of them has. called is what messages
// call the document.
func Sample(document []byte, called string) (*Shape, error) {
	value, err := parse(document)
	if err != nil {
		return nil, err
	}
	s := *ofValue(value, maxDepth)
	s.called = called
	return &s, nil
}

// maxDepth is how deep shapes go. Of what is deeper nothing is known.
const maxDepth = 50

func parse(document []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(document)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("no JSON: there is more after the first value")
	}
	return value, nil
}

func ofValue(value any, depth int) *Shape {
	if depth == 0 {
		return &Shape{kind: anything}
	}
	switch v := value.(type) {
	case string:
		return &Shape{kind: text}
	case bool:
		return &Shape{kind: boolean}
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return &Shape{kind: number}
		}
		return &Shape{kind: integer}
	case []any:
		elem := &Shape{kind: null}
		for _, e := range v {
			elem = merge(elem, ofValue(e, depth-1))
		}
		return &Shape{kind: list, elem: elem}
	case map[string]any:
		s := &Shape{kind: object, fields: map[string]*Shape{}}
		for name, field := range v {
			s.fields[name] = ofValue(field, depth-1)
		}
		return s
	default:
		return &Shape{kind: null}
	}
}

// merge is a shape that both values have.
func merge(a, b *Shape) *Shape {
	switch {
	case a.kind == null:
		return b
	case b.kind == null:
		return a
	case a.kind != b.kind:
		return &Shape{kind: anything}
	case a.kind == list:
		return &Shape{kind: list, elem: merge(a.elem, b.elem)}
	case a.kind == object:
		s := &Shape{kind: object, fields: maps.Clone(a.fields)}
		for name, field := range b.fields {
			if own := s.fields[name]; own != nil {
				field = merge(own, field)
			}
			s.fields[name] = field
		}
		return s
	default:
		return a
	}
}

// UnmarshalJSON reads a type as a routes file has it: "string", "integer", "number",
// "boolean", "any", [type], {"field": type}. A word that is not known is any.
func (s *Shape) UnmarshalJSON(description []byte) error {
	var value any
	err := json.Unmarshal(description, &value)
	*s = *described(value)
	return err
}

func described(description any) *Shape {
	switch d := description.(type) {
	case string:
		switch k := kind(d); k {
		case text, boolean, integer, number:
			return &Shape{kind: k}
		}
	case []any:
		if len(d) == 1 {
			return &Shape{kind: list, elem: described(d[0])}
		}
	case map[string]any:
		s := &Shape{kind: object, fields: map[string]*Shape{}}
		for name, field := range d {
			s.fields[name] = described(field)
		}
		return s
	}
	return &Shape{kind: anything}
}

// Type is the shape as a type of expressions. name is what messages call the value
// unless it has a name of its own.
func (s *Shape) Type(name string) keyexpr.Type {
	if s.called != "" {
		name = s.called
	}
	switch s.kind {
	case text:
		return keyexpr.StringType()
	case boolean:
		return keyexpr.BoolType()
	case integer:
		return keyexpr.IntType()
	case number:
		return keyexpr.FloatType()
	case list:
		return keyexpr.ListType(s.elem.Type("an element of " + name))
	case object:
		return keyexpr.ObjectType(objectType{name, s.fields})
	default:
		return keyexpr.AnyType()
	}
}

// objectType is the type of objects: the [keyexpr.Object]. Expressions are compiled for it, and not evaluated.
type objectType struct {
	name   string
	fields map[string]*Shape
}

func (o objectType) Name() string     { return o.name }
func (o objectType) Fields() []string { return slices.Sorted(maps.Keys(o.fields)) }

func (o objectType) Field(name string) (keyexpr.Field, bool) {
	f, ok := o.fields[name]
	if !ok {
		return keyexpr.Field{}, false
	}
	return keyexpr.Field{Type: f.Type(name + " in " + o.name), Get: func(any) any { return nil }}, true
}

// Given is a value that was written on a command line: JSON, or the text itself where the value may be a string.
func (s *Shape) Given(written string) (any, error) {
	if s.kind == text {
		return written, nil
	}
	value, err := parse([]byte(written))
	if err == nil {
		err = s.check(value, "")
	}
	switch {
	case err == nil:
		return keyexpr.FromJSON(value), nil
	case s.kind == anything:
		return written, nil
	default:
		return nil, err
	}
}

// Check reports whether encoding/json decodes a document into the type. The error names the field that has another
// type.
func (s *Shape) Check(document []byte) error {
	value, err := parse(document)
	if err != nil {
		return err
	}
	return s.check(value, "")
}

// check is Check for a value that was parsed. A nil shape takes any value.
func (s *Shape) check(value any, path string) error {
	got := ofValue(value, 1).kind
	if s == nil || s.kind == anything || s.kind == null || got == null {
		return nil
	}
	n, isNumber := value.(json.Number)
	if got != s.kind && (got != integer || s.kind != number) || isNumber && !s.holds(n) {
		return fmt.Errorf("%s is no %s", cmp.Or(path, "it"), s.kind)
	}
	switch v := value.(type) {
	case []any:
		for _, elem := range v {
			if err := s.elem.check(elem, path); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			if err := s.field(name).check(member, strings.TrimPrefix(path+"."+name, ".")); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports whether a number is in the range of the type.
func (s *Shape) holds(n json.Number) bool {
	var err error
	if s.kind == integer {
		_, err = n.Int64()
	} else {
		_, err = n.Float64()
	}
	return err == nil
}

// field finds a field as encoding/json does: by its name, otherwise in whatever case; nil if there is none.
func (s *Shape) field(name string) *Shape {
	if f := s.fields[name]; f != nil {
		return f
	}
	for known, f := range s.fields {
		if strings.EqualFold(known, name) {
			return f
		}
	}
	return nil
}
