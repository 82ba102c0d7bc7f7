package shape

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Type is a shape as a Go type.
type Type struct {
	Go reflect.Type

	// labels are what messages call the objects, by what Go calls them.
	labels []label
}

type label struct{ goName, name string }

// Body is the type of a body: its fields have JSON names. name is what messages call
// the body, such as "the body of order.json".
func (s *Shape) Body(name string) *Type {
	t := &Type{}
	t.Go = t.typeOf(s, name, jsonField)
	return t
}

// Variable is the type of a variable, whose fields have Go names.
func (s *Shape) Variable(name string) *Type {
	t := &Type{}
	t.Go = t.typeOf(s, name, goField)
	return t
}

// Readable replaces Go's names of the types by those of [Shape.Body].
func (t *Type) Readable(message string) string {
	if t == nil {
		return message
	}
	for _, l := range t.labels {
		message = strings.ReplaceAll(message, l.goName, l.name)
	}
	return message
}

// typeOf makes the type. What may be missing is a pointer, so that zero says nothing
// special.
func (t *Type) typeOf(s *Shape, path string, field fieldMaker) reflect.Type {
	switch s.kind {
	case kindString:
		return reflect.TypeFor[*string]()
	case kindBool:
		return reflect.TypeFor[*bool]()
	case kindInt:
		return reflect.TypeFor[*int]()
	case kindFloat:
		return reflect.TypeFor[*float64]()
	case kindList:
		return reflect.SliceOf(t.typeOf(s.elem, "an element of "+path, field))
	case kindObject:
		return t.object(s, path, field)
	default:
		return reflect.TypeFor[any]()
	}
}

func (t *Type) object(s *Shape, path string, field fieldMaker) reflect.Type {
	var fields []reflect.StructField
	for i, name := range s.names() {
		f, ok := field(i, name)
		if !ok {
			return reflect.TypeFor[map[string]any]()
		}
		f.Type = t.typeOf(s.fields[name], inside(path, name), field)
		fields = append(fields, f)
	}
	typ := reflect.StructOf(fields)
	t.labels = append(t.labels, label{typ.String(), path})
	slices.SortStableFunc(t.labels, func(a, b label) int { // what contains others first
		return cmp.Compare(len(b.goName), len(a.goName))
	})
	return typ
}

// inside is the path of a field: "user in the body" of "the body".
func inside(path, name string) string { return fmt.Sprintf("%s in %s", name, path) }

// fieldMaker makes the i-th field of a struct, but for its type; false if no struct
// can have it.
type fieldMaker func(i int, name string) (reflect.StructField, bool)

// tagged are the names that a JSON tag can have without a second thought.
var tagged = regexp.MustCompile(`^[\p{L}\p{N}_.:/@$+-]+$`)

func jsonField(i int, name string) (reflect.StructField, bool) {
	ok := tagged.MatchString(name) && name != "-"
	return reflect.StructField{
		Name: fmt.Sprintf("F%d", i),
		Tag:  reflect.StructTag(fmt.Sprintf("json:%q", name)),
	}, ok
}

// exported are the names that a field in Go has.
var exported = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]*$`)

func goField(_ int, name string) (reflect.StructField, bool) {
	return reflect.StructField{Name: name}, exported.MatchString(name)
}
