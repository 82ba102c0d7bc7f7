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

// objectType is the type of objects: the [keyexpr.Object]. No field is implicit: zero says
// nothing special.
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
	return keyexpr.Field{Type: f.Type(name + " in " + o.name), Get: func(parent any) any {
		if r, ok := parent.(*record); ok {
			return r.members[name]
		}
		return nil
	}}, true
}

// record is a value of an objectType. It is no map, so that expressions see its fields
// only.
type record struct{ members map[string]any }

func (r *record) MarshalJSON() ([]byte, error) { return json.Marshal(r.members) }

// Value is a JSON document as a value of the [Shape.Type]. The error says which field
// has another type.
func (s *Shape) Value(document []byte) (any, error) {
	value, err := parse(document)
	if err != nil {
		return nil, err
	}
	return s.value(value, "")
}

// Given is what somebody wrote for a value: JSON, or the text itself where the value may
// be a string.
func (s *Shape) Given(written string) (any, error) {
	if s.kind == text {
		return written, nil
	}
	v, err := s.Value([]byte(written))
	if s.kind == anything && err != nil {
		v, err = written, nil
	}
	return v, err
}

func (s *Shape) value(value any, path string) (any, error) {
	wrong := fmt.Errorf("%s is no %s", cmp.Or(path, "it"), s.kind)
	switch got := ofValue(value, 1).kind; {
	case got == null:
		return nil, nil //nolint:nilnil // it is missing
	case s.kind == anything || s.kind == null:
		return keyexpr.FromJSON(value), nil
	case got != s.kind && (got != integer || s.kind != number):
		return nil, wrong
	}
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); s.kind == integer && err == nil {
			return n, nil
		}
		if f, err := v.Float64(); s.kind == number && err == nil {
			return f, nil
		}
		return nil, wrong // it is too large
	case []any:
		return s.listOf(v, path)
	case map[string]any:
		return s.recordOf(v, path)
	default:
		return v, nil
	}
}

func (s *Shape) listOf(values []any, path string) (result []any, err error) {
	result = make([]any, len(values))
	for i := range values {
		if result[i], err = s.elem.value(values[i], path); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// recordOf takes the fields of an object as encoding/json does: by their names, else
// whatever their case.
func (s *Shape) recordOf(members map[string]any, path string) (*record, error) {
	r := &record{map[string]any{}}
	for sent, value := range members {
		name := sent
		if s.fields[sent] == nil {
			for known := range s.fields {
				if strings.EqualFold(known, sent) {
					name = known
				}
			}
		}
		if s.fields[name] == nil {
			continue
		}
		v, err := s.fields[name].value(value, strings.TrimPrefix(path+"."+name, "."))
		if err != nil {
			return nil, err
		}
		r.members[name] = v
	}
	return r, nil
}
