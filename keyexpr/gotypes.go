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

// naming says which names the fields of Go structs have in expressions.
type naming uint8

const (
	goNames   naming = iota // of the Go fields
	jsonNames               // that encoding/json uses
)

// TypeFor returns the type of values of the Go type T: [GoType].
func TypeFor[T any]() Type { return GoType(reflect.TypeFor[T]()) }

// GoType returns the type of Go values of type t. Structs become objects by
// their exported fields, embedded ones included; pointers may be nil, which is
// missing; slices and arrays are lists, maps need string keys; a type that
// implements encoding.TextMarshaler is a string; interfaces are [AnyType].
// [NewSchema] reports byte slices, functions, channels and complex numbers. Using a field of
// such a type in an expression is an error, too.
//
// A variable whose value is a nil slice or map, or a pointer to one, is missing, as
// with a nil pointer. Inside of a value it is an empty list or map.
//
// A field that is no pointer cannot tell zero from not set, see [Field].
func GoType(t reflect.Type) Type { return variableType(t, goNames) }

// JSONType is [GoType] with the names that encoding/json gives to fields.
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

// convert brings a variable's value of type t, or a pointer to one, into the
// form of its type. A value of another type stays, and is refused where it is
// used.
func (g goType) convert(t reflect.Type, v any) any {
	rv := reflect.ValueOf(v)
	if isNothing(rv) {
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

// isNothing reports whether v is nil, or leads to nothing but a nil.
func isNothing(v reflect.Value) bool {
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

// goType is a Type with the way to bring a Go value into its form.
type goType struct {
	typ   Type
	value func(reflect.Value) any
}

// maxGoDepth bounds types such as type T []T.
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
	if elem.typ.kind == kindObject { // keep the pointer, it spares a copy
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
		return goType{}, fmt.Errorf("the keys of %v are no strings", t)
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

// structValue hands a struct on by pointer where that spares a copy.
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

// goTime is the form of a time.Time.
func goTime(v reflect.Value) any {
	t, _ := reflect.TypeAssert[time.Time](v)
	return fromTime(t)
}

// goText is the form of a TextMarshaler: its text, and for a time the text of its instant.
// The text of the zero value counts as not set, as the zero does for other types. If
// MarshalText fails, the value is missing.
func goText(t reflect.Type) goType {
	if t == reflect.TypeFor[time.Time]() {
		return goType{timeType(), goTime}
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

// goTextType is the type of the texts of a TextMarshaler. Literal texts are checked if the
// Go type can read them.
func goTextType(t reflect.Type, value func(reflect.Value) any) Type {
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return Type{kind: kindString}
	}
	typ := TextType("a text of "+t.String(), func(text string) (string, bool) {
		v := reflect.New(t)
		if target, _ := reflect.TypeAssert[encoding.TextUnmarshaler](v); text != "" && target.UnmarshalText([]byte(text)) != nil {
			return "", false
		}
		one, ok := value(v.Elem()).(string)
		return one, ok
	})
	typ.texts.vocabularies[0].isTime = t.ConvertibleTo(reflect.TypeFor[time.Time]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[clock]())
	return typ
}

// zeroText is the text of the zero value, nil if it has none.
func zeroText(t reflect.Type) (text any) {
	defer func() { _ = recover() }() //nolint:errcheck // a method may need more than a zero value
	return marshaledText(reflect.New(t).Elem())
}

// clock is a time, or a struct with one inside.
type clock interface{ UTC() time.Time }

func marshaledText(v reflect.Value) any {
	if !v.CanAddr() { // a method may need a pointer
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	marshaler, _ := reflect.TypeAssert[encoding.TextMarshaler](v.Addr()) // as goTypeOf has found out
	text, err := marshaler.MarshalText()
	if err != nil {
		return nil
	}
	return oneText(marshaler, string(text))
}

// address is an IP address, or a struct with one inside.
type address interface{ Unmap() netip.Addr }

// endpoint is an IP address with a port, or a struct with one inside.
type endpoint interface {
	Addr() netip.Addr
	Port() uint16
}

// oneText returns the one text of an instant for a text that is a time with a zone, the one
// text of an address, with or without a port, and other texts as they are.
func oneText(marshaler any, text string) any {
	switch marshaler.(type) {
	case address:
		return oneAddress(text)
	case endpoint:
		return oneEndpoint(text)
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	if exact, ok := marshaler.(clock); ok { // RFC 3339 has no seconds of a zone
		t = exact.UTC()
	}
	return fromTime(t)
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
		Default:  o.declared(f),
		Get:      fieldGetter(o.t, f.index, g.value),
	}, true
}

// declared is the default that a protobuf message declares for a field: what the getter of
// an empty message returns. A default of zero shows there as none.
func (o goObject) declared(f goField) any {
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

// fieldGetter reads the field at index from a struct or a pointer to one.
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
		if err != nil { // an embedded pointer is nil
			return nil
		}
		return value(field)
	}
}

// goField is a field as expressions see it.
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

// jsonFields applies the rules of encoding/json: tags rename, "-" hides,
// embedded structs without a tag are promoted, the least nested field wins, then
// the tagged one, and a tie hides the name.
func jsonFields(t reflect.Type) map[string]goField {
	fields := make(map[string]goField)
	ambiguous := make(map[string]int) // name to the depth at which it is a tie
	collectJSON(t, nil, map[reflect.Type]bool{}, func(name string, f goField) {
		old, exists := fields[name]
		depth := len(f.index)
		switch {
		case !exists, depth < len(old.index), depth == len(old.index) && f.tagged && !old.tagged:
			fields[name] = f
			delete(ambiguous, name)
		case depth == len(old.index) && f.tagged == old.tagged:
			ambiguous[name] = depth
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
