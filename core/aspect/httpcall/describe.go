package httpcall

import (
	"cmp"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// WriteRoutes writes the names that rules of a program may use, as JSON: its routes as registered, its variables, and its
// fallbacks. `interlock check --routes` reads this JSON to check a rule file without the program:
//
//	{
//	  "routes": [
//	    {"method": "POST", "path": "/orders/:id/pay", "body": {"amount": "integer"}}
//	  ],
//	  "variables": {"user": "string", "principal": {"Tenant": "string"}},
//	  "fallbacks": ["queue"]
//	}
//
// A route has a body only if [Config.Body] declares its type. The fields of bodies have their JSON names. The fields of
// variables have their Go names. A type is "string", "integer", "number", "boolean", a list [type] of one element, an
// object {"field": type}, or "any". Interfaces, maps and recursive types are "any". Empty members are left out.
//
// The output depends only on the program: routes are sorted by path and method, names alphabetically.
func (c *Config) WriteRoutes(w io.Writer, routes []ruleset.Endpoint, fallbacks []string) error {
	program := description{Routes: []routeDescription{}, Variables: map[string]any{}, Fallbacks: slices.Sorted(slices.Values(fallbacks))}
	for name, t := range c.types {
		program.Variables[name] = describeType(t, goFields)
	}
	for _, e := range slices.SortedFunc(slices.Values(routes), byPath) {
		r := routeDescription{Method: e.Method, Path: e.Path}
		if body := c.bodies[c.canonical(e)]; body != nil {
			r.Body = describeType(body, jsonFields)
		}
		program.Routes = append(program.Routes, r)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(program)
}

// description is the output of [Config.WriteRoutes].
type description struct {
	Routes    []routeDescription `json:"routes"`
	Variables map[string]any     `json:"variables,omitempty"`
	Fallbacks []string           `json:"fallbacks,omitempty"`
}

type routeDescription struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body,omitempty"`
}

// fieldLister returns the fields of a struct by the names that expressions use.
type fieldLister func(reflect.Type) map[string]reflect.Type

// describeType returns the description of a Go type in the format of [Config.WriteRoutes]. It returns nil if expressions
// cannot use values of the type. enclosing contains the types around t.
func describeType(t reflect.Type, fields fieldLister, enclosing ...reflect.Type) any {
	if slices.Contains(enclosing, t) || t == reflect.TypeFor[json.Number]() {
		return "any"
	}
	enclosing = append(slices.Clip(enclosing), t)
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describeType(t.Elem(), fields, enclosing...)
	case reflect.Slice, reflect.Array:
		return describeList(t.Elem(), fields, enclosing)
	case reflect.Struct:
		object := make(map[string]any)
		for name, field := range fields(t) {
			if described := describeType(field, fields, enclosing...); described != nil {
				object[name] = described
			}
		}
		return object
	case reflect.Interface, reflect.Map:
		return "any"
	}
	return describeScalar(t.Kind())
}

func describeList(elem reflect.Type, fields fieldLister, enclosing []reflect.Type) any {
	described := describeType(elem, fields, enclosing...)
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

// goFields returns the fields of a struct by their Go names, including the fields of embedded structs.
func goFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(t) {
		if promoted, ok := t.FieldByName(f.Name); ok && f.IsExported() {
			fields[f.Name] = promoted.Type
		}
	}
	return fields
}

// jsonFields returns the fields of a struct by their names in JSON.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	addJSONFields(fields, t, nil)
	return fields
}

// addJSONFields adds the fields of t and then the fields of embedded structs. The less deeply nested field takes
// precedence.
func addJSONFields(fields map[string]reflect.Type, t reflect.Type, enclosing []reflect.Type) {
	if slices.Contains(enclosing, t) {
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
		addJSONFields(fields, inner, append(slices.Clip(enclosing), t))
	}
}
