// Package shape describes the types of JSON values, as the routes file of a program lists them.
//
// It handles types and values, but neither routes nor rules. Package routes reads shapes, and the command
// key checks bodies and variables with them.
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

// Shape is the known type of the values in one place. It does not change after it is read.
type Shape struct {
	form   form
	elem   *Shape            // the shape of the elements of a list
	fields map[string]*Shape // the shapes of the fields of an object
}

// form is a type in the words of a routes file. Messages use them, too.
type form string

const (
	anything form = "any"
	text     form = "string"
	boolean  form = "boolean"
	integer  form = "integer"
	number   form = "number"
	list     form = "list"
	object   form = "object"
)

// UnmarshalJSON reads a type of a routes file: "string", "integer", "number",
// "boolean", "any", [type], {"field": type}. An unknown word means any.
func (s *Shape) UnmarshalJSON(description []byte) error {
	var value any
	err := json.Unmarshal(description, &value)
	*s = *parseShape(value)
	return err
}

func parseShape(description any) *Shape {
	switch d := description.(type) {
	case string:
		switch f := form(d); f {
		case text, boolean, integer, number:
			return &Shape{form: f}
		}
	case []any:
		if len(d) == 1 {
			return &Shape{form: list, elem: parseShape(d[0])}
		}
	case map[string]any:
		s := &Shape{form: object, fields: map[string]*Shape{}}
		for name, field := range d {
			s.fields[name] = parseShape(field)
		}
		return s
	}
	return &Shape{form: anything}
}

// Type returns the type of expressions for the shape. Messages call the value name.
func (s *Shape) Type(name string) keyexpr.Type {
	switch s.form {
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

// objectType is the [keyexpr.Object] of an object. Expressions are compiled for it but not evaluated.
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

// Given returns the value that a text on a command line stands for. The text is JSON, or the value itself if
// the value may be a string.
func (s *Shape) Given(written string) (any, error) {
	if s.form == text {
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
	case s.form == anything:
		return written, nil
	default:
		return nil, err
	}
}

// Check returns an error if encoding/json cannot decode a document into the type. The error names the field with
// the wrong type.
func (s *Shape) Check(document []byte) error {
	err := json.Unmarshal(document, reflect.New(s.goType()).Interface())
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		named := map[reflect.Kind]form{
			reflect.String: text, reflect.Bool: boolean, reflect.Int64: integer, reflect.Float64: number, reflect.Slice: list, reflect.Struct: object,
		}
		return fmt.Errorf("%s is not of type %s", cmp.Or(wrong.Field, "it"), named[wrong.Type.Kind()])
	}
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}

// goType returns a Go type for the values. It leaves out fields whose names a struct tag cannot have.
func (s *Shape) goType() reflect.Type {
	switch s.form {
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
