package protorules

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// reader makes a declaration of one option.
type reader struct {
	name     string // of the rule
	place    place
	index    int // of the option
	declared ruleset.Declared
	problems []*ruleset.Problem
}

func newReader(m protoreflect.MethodDescriptor, index int, name string) *reader {
	at := placeOf(m)
	return &reader{name: name, place: at, index: index, declared: ruleset.Declared{
		Rule:   ruleset.Rule{Endpoint: ruleset.GRPC(fullMethod(m))},
		Source: at.lock(index),
		Fields: map[string]ruleset.Source{},
	}}
}

// read takes over every field of a message that is set. The fields of a lock are those of a rule;
// prefix and numbers lead to a message inside of it: "status.busy.".
func (r *reader) read(prefix string, m protoreflect.Message, numbers ...protoreflect.FieldNumber) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); m.Has(field) {
			r.take(prefix+string(field.Name()), field, m.Get(field), append(slices.Clip(numbers), field.Number()))
		}
	}
	// A lock is not to be half understood.
	for _, number := range unknownFields(m) {
		r.reportf(strings.TrimSuffix(prefix, "."), nil, "field number %d of %s is not known to this program: update github.com/interlock-go/interlock in its go.mod",
			number, m.Descriptor().FullName())
	}
}

// take takes over one field, unless its value says that it is not set, or is a problem.
func (r *reader) take(name string, field protoreflect.FieldDescriptor, v protoreflect.Value, numbers []protoreflect.FieldNumber) {
	if field.Message() != nil {
		r.note(name, numbers)
		r.read(name+".", v.Message(), numbers...)
		return
	}
	value, err := valueOf(field, v)
	isSet := field.Enum() == nil || value != ""
	if err == nil && isSet {
		err = r.declared.Set(name, value)
	}
	switch {
	case err != nil:
		r.reportf(name, numbers, "%v", err)
	case field.IsList():
		r.note(name, append(slices.Clip(numbers), 0)) // compilers tell no other place
		for i := range v.List().Len() {
			r.note(fmt.Sprintf("%s[%d]", name, i), append(slices.Clip(numbers), protoreflect.FieldNumber(i)))
		}
	case isSet:
		r.note(name, numbers)
	}
}

// note remembers the place of a field; of a part of one, where it is a place of its own.
func (r *reader) note(name string, numbers []protoreflect.FieldNumber) {
	at := r.place.lock(r.index, numbers...)
	if !strings.ContainsAny(name, ".[") || at != r.place.lock(r.index, numbers[0]) {
		r.declared.Fields[name] = at
	}
}

// reportf adds a problem with a field such as "status.busy.grpc"; numbers lead to it.
func (r *reader) reportf(field string, numbers []protoreflect.FieldNumber, format string, args ...any) {
	r.problems = append(r.problems, &ruleset.Problem{
		Rule: r.name, Endpoint: r.declared.Rule.Endpoint, Field: field,
		Source: r.place.lock(r.index, numbers...), Message: fmt.Sprintf(format, args...),
	})
}

// valueOf is a value as [ruleset.Declared.Set] takes it; "" for an enum that is not specified. The
// words of an enum are those of a rule under a prefix in capitals: STRATEGY_NULL_RESPONSE is
// "null_response".
func valueOf(field protoreflect.FieldDescriptor, v protoreflect.Value) (any, error) {
	switch {
	case field.IsList():
		list := make([]string, v.List().Len())
		for i := range list {
			list[i] = v.List().Get(i).String()
		}
		return list, nil
	case field.Kind() == protoreflect.Int32Kind:
		return int(v.Int()), nil
	case field.Enum() == nil:
		return v.Interface(), nil
	}
	values := field.Enum().Values()
	value := values.ByNumber(v.Enum())
	switch {
	case value == nil:
		return nil, fmt.Errorf("%s number %d is not known to this program: write one of %s, or update github.com/interlock-go/interlock in its go.mod",
			field.Enum().FullName(), v.Enum(), strings.Join(valueNames(values), ", "))
	case v.Enum() == 0:
		return "", nil
	}
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)), nil
}

// valueNames are the values to choose from.
func valueNames(values protoreflect.EnumValueDescriptors) []string {
	var names []string
	for i := range values.Len() {
		if values.Get(i).Number() != 0 {
			names = append(names, string(values.Get(i).Name()))
		}
	}
	return names
}
