package httpcall

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// fieldsOf lists the fields of a struct by the names that expressions use.
type fieldsOf func(reflect.Type) map[string]reflect.Type

// describeType is a Go type in the words of [Config.WriteRoutes], nil if expressions
// cannot use its values. open are the types around it.
func describeType(t reflect.Type, fields fieldsOf, open ...reflect.Type) any {
	if slices.Contains(open, t) || t == reflect.TypeFor[json.Number]() {
		return "any"
	}
	open = append(slices.Clip(open), t)
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem(), fields, open...)
	case reflect.Slice, reflect.Array:
		return describeList(t.Elem(), fields, open)
	case reflect.Struct:
		object := make(map[string]any)
		for name, field := range fields(t) {
			if described := describeType(field, fields, open...); described != nil {
				object[name] = described
			}
		}
		return object
	case reflect.Interface, reflect.Map:
		return "any"
	}
	return describeScalar(t.Kind())
}

func describeList(elem reflect.Type, fields fieldsOf, open []reflect.Type) any {
	described := describeType(elem, fields, open...)
	if described == nil || elem.Kind() == reflect.Uint8 { // bytes
		return nil
	}
	return []any{described}
}

func describeScalar(k reflect.Kind) any {
	switch {
	case k == reflect.String:
		return "string"
	case k == reflect.Bool:
		return "boolean"
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "integer"
	case k == reflect.Float32, k == reflect.Float64:
		return "number"
	default:
		return nil
	}
}

// goFields are the fields of a struct, embedded ones included, by their Go names.
func goFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		if promoted, ok := t.FieldByName(f.Name); ok && f.IsExported() {
			fields[f.Name] = promoted.Type
		}
	}
	return fields
}

// jsonFields are the fields of a struct by their names in JSON.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	addJSONFields(fields, t, nil)
	return fields
}

// addJSONFields adds the fields of t, and then those of what it embeds: what is less
// nested wins.
func addJSONFields(fields map[string]reflect.Type, t reflect.Type, open []reflect.Type) {
	if slices.Contains(open, t) {
		return
	}
	var embedded []reflect.Type
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case f.IsExported() && fields[cmp.Or(name, f.Name)] == nil:
			fields[cmp.Or(name, f.Name)] = f.Type
		}
	}
	for _, inner := range embedded {
		addJSONFields(fields, inner, append(slices.Clip(open), t))
	}
}
