package keyexpr

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
)

// naming selects the names that the fields of Go structs have in expressions.
type naming uint8

const (
	goNames   naming = iota // the names of the Go fields
	jsonNames               // the names that encoding/json uses
)

// TypeFor returns the [GoType] of T.
func TypeFor[T any]() Type { return GoType(reflect.TypeFor[T]()) }

// GoType returns the type of Go values of type t:
//
//   - A struct is an object of its exported fields, including the fields of embedded structs.
//   - A pointer may be nil, which is missing.
//   - Slices and arrays are lists. Maps need string keys.
//   - A type that implements encoding.TextMarshaler is a string.
//   - An interface is [AnyType].
//
// [NewSchema] reports byte slices, functions, channels and complex numbers. Using a field of
// such a type in an expression is an error, too.
//
// A variable whose value is a nil slice or map, or a pointer to one, is missing, like a nil
// pointer. Inside a value, a nil slice or map is an empty list or map.
//
// A field that is not a pointer cannot tell zero from not set. See [Field].
func GoType(t reflect.Type) Type { return variableType(t, goNames) }

// JSONType is like [GoType], but its fields have the names that encoding/json uses.
func JSONType(t reflect.Type) Type { return variableType(t, jsonNames) }

func variableType(t reflect.Type, names naming) Type {
	if t == nil {
		return AnyType()
	}
	g, err := goTypeOf(t, names, 0)
	typ := g.typ
	typ.convert = func(v any) any { return g.convert(t, v) }
	typ.invalid = err
	return typ
}

// convert converts the value of a variable, which has type t or a pointer to it. It returns a
// value of another type unchanged; the expression that uses it refuses it.
func (g goType) convert(t reflect.Type, v any) any {
	rv := reflect.ValueOf(v)
	if isNil(rv) {
		return nil
	}
	for rv.Kind() == reflect.Pointer && rv.Type() != t {
		rv = rv.Elem()
	}
	if rv.Type() != t && t.Kind() != reflect.Interface {
		return v
	}
	return g.value(rv)
}

// isNil reports whether v is nil or a chain of pointers that ends in nil.
func isNil(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	}
	return false
}

// goType is a Type together with the conversion of Go values to it.
type goType struct {
	typ   Type
	value func(reflect.Value) any
}

// maxGoDepth bounds recursive types, for example type T []T.
const maxGoDepth = 16

func goTypeOf(t reflect.Type, names naming, depth int) (goType, error) {
	if depth > maxGoDepth {
		return goType{}, fmt.Errorf("the Go type %v is nested too deeply", t)
	}
	if t == reflect.TypeFor[json.Number]() {
		return goType{AnyType(), anyValue}, nil
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return goText(t), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return goPointer(t, names, depth)
	case reflect.Struct:
		return goType{ObjectType(goObject{t, names}), structValue}, nil
	case reflect.Slice, reflect.Array:
		return goList(t, names, depth)
	case reflect.Map:
		return goMap(t, names, depth)
	case reflect.Interface:
		return goType{AnyType(), anyValue}, nil
	}
	return goScalar(t)
}

func goScalar(t reflect.Type) (goType, error) {
	switch t.Kind() {
	case reflect.String:
		return goType{Type{kind: kindString}, func(v reflect.Value) any { return v.String() }}, nil
	case reflect.Bool:
		return goType{Type{kind: kindBool}, func(v reflect.Value) any { return v.Bool() }}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return goType{Type{kind: kindInt}, func(v reflect.Value) any { return int(v.Int()) }}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return goType{Type{kind: kindInt}, func(v reflect.Value) any { return fromUint(v.Uint()) }}, nil
	case reflect.Float32, reflect.Float64:
		return goType{Type{kind: kindFloat}, func(v reflect.Value) any { return v.Float() }}, nil
	}
	return goType{}, fmt.Errorf("values of the Go type %v cannot be used in expressions", t)
}

func goPointer(t reflect.Type, names naming, depth int) (goType, error) {
	elem, err := goTypeOf(t.Elem(), names, depth+1)
	if err != nil {
		return goType{}, err
	}
	if elem.typ.kind == kindObject { // the pointer saves a copy
		return goType{elem.typ, nonNil}, nil
	}
	return goType{elem.typ, func(v reflect.Value) any {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		return elem.value(v)
	}}, nil
}

func goList(t reflect.Type, names naming, depth int) (goType, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return goType{}, fmt.Errorf("bytes (%v) cannot be used in expressions", t)
	}
	elem, err := goTypeOf(t.Elem(), names, depth+1)
	if err != nil {
		return goType{}, err
	}
	return goType{ListType(elem.typ), func(v reflect.Value) any {
		return LazyList(v.Len(), func(i int) any { return elem.value(v.Index(i)) })
	}}, nil
}

func goMap(t reflect.Type, names naming, depth int) (goType, error) {
	if t.Key().Kind() != reflect.String {
		return goType{}, fmt.Errorf("the keys of %v are not strings", t)
	}
	elem, err := goTypeOf(t.Elem(), names, depth+1)
	if err != nil {
		return goType{}, err
	}
	return goType{MapType(elem.typ), func(v reflect.Value) any {
		return LazyMap(v.Len(), func(name string) (any, bool) {
			value := v.MapIndex(reflect.ValueOf(name).Convert(t.Key()))
			if !value.IsValid() {
				return nil, false
			}
			return elem.value(value), true
		}, func(yield func(string, any) bool) {
			for i := v.MapRange(); i.Next(); {
				if !yield(i.Key().String(), elem.value(i.Value())) {
					return
				}
			}
		})
	}}, nil
}

// structValue returns a pointer to the struct if that saves a copy.
func structValue(v reflect.Value) any {
	if v.CanAddr() {
		return v.Addr().Interface()
	}
	return v.Interface()
}

func nonNil(v reflect.Value) any {
	if v.IsNil() {
		return nil
	}
	return v.Interface()
}

func anyValue(v reflect.Value) any {
	return fromInterface(v.Interface())
}

// goTimeText returns the text of a time.Time.
func goTimeText(v reflect.Value) any {
	t, _ := reflect.TypeAssert[time.Time](v)
	return timeText(t)
}

// goText returns the type of a TextMarshaler, whose values are texts. A time has the text of its
// instant. The text of the zero value counts as not set, like the zero of other types. If
// MarshalText fails, the value is missing.
func goText(t reflect.Type) goType {
	if t == reflect.TypeFor[time.Time]() {
		return goType{timeType(), goTimeText}
	}
	zero := zeroText(t)
	value := func(v reflect.Value) any {
		if v.IsZero() {
			return ""
		}
		if text := marshaledText(v); text == nil || text != zero {
			return text
		}
		return ""
	}
	return goType{goTextType(t, value), value}
}

// goTextType returns the type of the texts of a TextMarshaler. If the Go type can also read
// texts, the compiler checks literals that are compared with them.
func goTextType(t reflect.Type, value func(reflect.Value) any) Type {
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return Type{kind: kindString}
	}
	typ := TextType("a text of "+t.String(), func(text string) (string, bool) {
		v := reflect.New(t)
		if target, _ := reflect.TypeAssert[encoding.TextUnmarshaler](v); text != "" && target.UnmarshalText([]byte(text)) != nil {
			return "", false
		}
		canonical, ok := value(v.Elem()).(string)
		return canonical, ok
	})
	typ.texts.vocabularies[0].isTime = t.ConvertibleTo(reflect.TypeFor[time.Time]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[clock]())
	return typ
}

// zeroText returns the text of the zero value, or nil if it has none.
func zeroText(t reflect.Type) (text any) {
	defer func() { _ = recover() }() //nolint:errcheck // MarshalText may panic for a zero value
	return marshaledText(reflect.New(t).Elem())
}

// clock is implemented by time.Time and by structs that embed it.
type clock interface{ UTC() time.Time }

func marshaledText(v reflect.Value) any {
	if !v.CanAddr() { // MarshalText may have a pointer receiver
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	marshaler, _ := reflect.TypeAssert[encoding.TextMarshaler](v.Addr()) // goTypeOf has checked it
	text, err := marshaler.MarshalText()
	if err != nil {
		return nil
	}
	return canonicalText(marshaler, string(text))
}

// address is implemented by netip.Addr and by structs that embed it.
type address interface{ Unmap() netip.Addr }

// endpoint is implemented by netip.AddrPort and by structs that embed it.
type endpoint interface {
	Addr() netip.Addr
	Port() uint16
}

// canonicalText returns the canonical text of an address, of an address with a port, or of a time
// with a zone. It returns another text unchanged.
func canonicalText(marshaler any, text string) any {
	switch marshaler.(type) {
	case address:
		return addressText(text)
	case endpoint:
		return endpointText(text)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	if exact, ok := marshaler.(clock); ok { // RFC 3339 cannot write the seconds of a zone
		t = exact.UTC()
	}
	return timeText(t)
}

// goObject describes a Go struct.
type goObject struct {
	t     reflect.Type
	names naming
}

// Name implements [Object].
func (o goObject) Name() string { return o.t.String() }

// Fields implements [Object].
func (o goObject) Fields() []string { return slices.Sorted(maps.Keys(o.byName())) }

// hides reports whether the struct has an unexported field of a name.
func (o goObject) hides(name string) bool {
	f, ok := o.t.FieldByName(name)
	return ok && !f.IsExported() && o.names == goNames
}

// Field implements [Object].
func (o goObject) Field(name string) (Field, bool) {
	f, ok := o.byName()[name]
	if !ok {
		return Field{}, false
	}
	g, err := goTypeOf(f.typ, o.names, 0)
	if err != nil {
		return Field{}, true // the zero Type marks a field that cannot be used
	}
	return Field{
		Type:     g.typ,
		Implicit: f.typ.Kind() != reflect.Pointer && (g.typ.kind == kindString || g.typ.kind == kindInt),
		Default:  o.declaredDefault(f),
		Get:      fieldGetter(o.t, f.index, g.value),
	}, true
}

// declaredDefault returns the default that a protobuf message declares for a field. It calls the
// getter of an empty message, so a declared default of zero looks like none.
func (o goObject) declaredDefault(f goField) any {
	if _, isMessage := reflect.PointerTo(o.t).MethodByName("ProtoReflect"); !isMessage || f.typ.Kind() != reflect.Pointer {
		return nil
	}
	getter := reflect.New(o.t).MethodByName("Get" + o.t.FieldByIndex(f.index).Name)
	if !getter.IsValid() || getter.Type() != reflect.FuncOf(nil, []reflect.Type{f.typ.Elem()}, false) {
		return nil
	}
	v := getter.Call(nil)[0]
	g, err := goTypeOf(v.Type(), o.names, 0)
	if err != nil || v.IsZero() {
		return nil
	}
	return g.value(v)
}

// fieldGetter returns a function that reads the field at index from a struct or a pointer to one.
func fieldGetter(t reflect.Type, index []int, value func(reflect.Value) any) func(any) any {
	return func(parent any) any {
		v := reflect.ValueOf(parent)
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() || v.Type() != t {
			return nil
		}
		field, err := v.FieldByIndexErr(index)
		if err != nil { // a pointer to an embedded struct is nil
			return nil
		}
		return value(field)
	}
}

// goField is a field that expressions can read.
type goField struct {
	typ    reflect.Type
	index  []int
	tagged bool
}

func (o goObject) byName() map[string]goField {
	if o.names == jsonNames {
		return jsonFields(o.t)
	}
	fields := make(map[string]goField)
	for _, f := range reflect.VisibleFields(o.t) {
		if promoted, ok := o.t.FieldByName(f.Name); ok && f.IsExported() {
			fields[f.Name] = goField{typ: promoted.Type, index: promoted.Index}
		}
	}
	return fields
}

// jsonFields returns the fields by their names in JSON. It follows encoding/json: a tag renames a
// field and "-" hides it. The fields of an embedded struct without a tag are promoted. Of several
// fields with one name the least nested one wins, then the tagged one. A tie hides all of them.
func jsonFields(t reflect.Type) map[string]goField {
	fields := make(map[string]goField)
	ambiguous := make(map[string]bool)
	collectJSON(t, nil, map[reflect.Type]bool{}, func(name string, f goField) {
		old, exists := fields[name]
		depth := len(f.index)
		switch {
		case !exists, depth < len(old.index), depth == len(old.index) && f.tagged && !old.tagged:
			fields[name] = f
			delete(ambiguous, name)
		case depth == len(old.index) && f.tagged == old.tagged:
			ambiguous[name] = true
		}
	})
	for name := range ambiguous {
		delete(fields, name)
	}
	return fields
}

func collectJSON(t reflect.Type, index []int, open map[reflect.Type]bool, add func(string, goField)) {
	if open[t] {
		return
	}
	open[t] = true
	defer delete(open, t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, hasTag := f.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		path := append(append([]int(nil), index...), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			collectJSON(inner, path, open, add)
		case !f.IsExported():
		case name != "":
			add(name, goField{f.Type, path, hasTag})
		default:
			add(f.Name, goField{f.Type, path, false})
		}
	}
}

// fromInterface converts the value in a Go interface. It converts lists and maps of encoding/json
// lazily. It converts a value of another Go type as it converts a field of that type.
func fromInterface(v any) any {
	switch x := v.(type) {
	case float64:
		return fromFloat(x)
	case float32:
		return fromFloat(float64(x))
	case []any:
		return LazyList(len(x), func(i int) any { return fromInterface(x[i]) })
	case map[string]any:
		return lazyDocument(x)
	}
	switch n := normalize(v).(type) {
	case nil, string, bool, int, uint64, json.Number, []any, jsonObject, lazyList, lazyMap:
		return n
	default: // a pointer to an interface stays as it is, because it may lead back to itself
		if g, err := goTypeOf(reflect.TypeOf(n), goNames, 0); err == nil && g.typ.kind != kindAny {
			return g.value(reflect.ValueOf(n))
		}
		return n
	}
}

func lazyDocument(m map[string]any) any {
	entry := func(name string) (any, bool) {
		v, found := m[name]
		return fromInterface(v), found
	}
	return LazyMap(len(m), entry, func(yield func(string, any) bool) {
		for name, v := range m {
			if !yield(name, fromInterface(v)) {
				return
			}
		}
	})
}
