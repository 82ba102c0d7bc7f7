// Package shape knows what JSON values look like, from what a program says about its types.
package shape

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// Shape is what is known of the values in one place. It does not change once it is
// made.
type Shape struct {
	kind   kind
	elem   *Shape            // of a list
	fields map[string]*Shape // of an object
}

// kind is a type as messages name it, in the words of a routes file.
type kind string

const (
	anything kind = "any"
	text     kind = "string"
	boolean  kind = "boolean"
	integer  kind = "integer"
	number   kind = "number"
	list     kind = "list"
	object   kind = "object"
)

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

// Type is the shape as a type of expressions. name is what messages call the value.
func (s *Shape) Type(name string) keyexpr.Type {
	switch s.kind {
	case text:
		return keyexpr.TypeFor[string]()
	case boolean:
		return keyexpr.TypeFor[bool]()
	case integer:
		return keyexpr.TypeFor[int]()
	case number:
		return keyexpr.TypeFor[float64]()
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
	err := s.Check([]byte(written))
	switch {
	case err == nil:
		d := json.NewDecoder(strings.NewReader(written))
		d.UseNumber()
		var value any
		err = d.Decode(&value)
		return value, err
	case s.kind == anything:
		return written, nil
	default:
		return nil, err
	}
}

// Check reports whether encoding/json decodes a document into the type. The error names the field that has another
// type.
func (s *Shape) Check(document []byte) error {
	err := json.Unmarshal(document, reflect.New(s.goType()).Interface())
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		named := map[reflect.Kind]kind{
			reflect.String: text, reflect.Bool: boolean, reflect.Int64: integer, reflect.Float64: number, reflect.Slice: list, reflect.Struct: object,
		}
		return fmt.Errorf("%s is no %s", cmp.Or(wrong.Field, "it"), named[wrong.Type.Kind()])
	}
	if err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	return nil
}

// goType is a Go type for the values. It lacks fields whose names a struct tag cannot have.
func (s *Shape) goType() reflect.Type {
	switch s.kind {
	case text:
		return reflect.TypeFor[string]()
	case boolean:
		return reflect.TypeFor[bool]()
	case integer:
		return reflect.TypeFor[int64]()
	case number:
		return reflect.TypeFor[float64]()
	case list:
		return reflect.SliceOf(s.elem.goType())
	case object:
		var fields []reflect.StructField
		for name, field := range s.fields {
			if !strings.Contains(name, ",") {
				fields = append(fields, reflect.StructField{
					Name: fmt.Sprint("F", len(fields)), Type: field.goType(), Tag: reflect.StructTag("json:" + strconv.Quote(name)),
				})
			}
		}
		return reflect.StructOf(fields)
	default:
		return reflect.TypeFor[any]()
	}
}
