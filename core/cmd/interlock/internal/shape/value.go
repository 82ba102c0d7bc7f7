package shape

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

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

func (s *Shape) check(value any, path string) error {
	got := ofValue(value, 1).kind
	if s.kind == anything || s.kind == null || got == null {
		return nil
	}
	var err error
	switch v := value.(type) {
	case json.Number:
		if s.kind == integer {
			_, err = v.Int64()
		} else {
			_, err = v.Float64()
		}
	case []any:
		for i := 0; i < len(v) && s.kind == list; i++ {
			if err := s.elem.check(v[i], path); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, member := range v {
			if f := s.field(name); f != nil {
				if err := f.check(member, strings.TrimPrefix(path+"."+name, ".")); err != nil {
					return err
				}
			}
		}
	}
	if err != nil || got != s.kind && (got != integer || s.kind != number) { // or the number is too large
		return fmt.Errorf("%s is no %s", cmp.Or(path, "it"), s.kind)
	}
	return nil
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
