package keyexpr

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// goObject describes a Go struct.
type goObject struct {
	t     reflect.Type
	names Names
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
	if o.names == JSONNames {
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
