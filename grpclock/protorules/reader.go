package protorules

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// reader reads the declaration of one option.
type reader struct {
	name     string // the name of the rule
	place    place
	index    int // the index of the option
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

// read reads every field of a message that is set. A lock has the same fields as a rule. prefix and
// numbers are the path to a message inside it: "status.busy.".
func (r *reader) read(prefix string, m protoreflect.Message, numbers ...protoreflect.FieldNumber) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); m.Has(field) {
			r.readField(prefix+string(field.Name()), field, m.Get(field), append(slices.Clip(numbers), field.Number()))
		}
	}
	// An unknown field is an error, because the lock would not do what its author wrote.
	for _, number := range unknownFields(m) {
		r.reportf(strings.TrimSuffix(prefix, "."), nil, "field number %d of %s is not known to this program: update github.com/interlock-go/interlock in its go.mod",
			number, m.Descriptor().FullName())
	}
}

// readField reads one field. It ignores an enum that is unspecified, and reports an invalid value.
func (r *reader) readField(name string, field protoreflect.FieldDescriptor, v protoreflect.Value, numbers []protoreflect.FieldNumber) {
	if field.Message() != nil {
		r.recordPlace(name, numbers)
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
		r.recordPlace(name, append(slices.Clip(numbers), 0)) // compilers record no other position
		for i := range v.List().Len() {
			r.recordPlace(fmt.Sprintf("%s[%d]", name, i), append(slices.Clip(numbers), protoreflect.FieldNumber(i)))
		}
	case isSet:
		r.recordPlace(name, numbers)
	}
}

// recordPlace records the position of a field. It records the position of a part of a field only if it
// differs from the position of the field.
func (r *reader) recordPlace(name string, numbers []protoreflect.FieldNumber) {
	at := r.place.lock(r.index, numbers...)
	if !strings.ContainsAny(name, ".[") || at != r.place.lock(r.index, numbers[0]) {
		r.declared.Fields[name] = at
	}
}

// reportf adds a problem of a field, for example "status.busy.grpc". numbers is the path to it.
func (r *reader) reportf(field string, numbers []protoreflect.FieldNumber, format string, args ...any) {
	r.problems = append(r.problems, &ruleset.Problem{
		Rule: r.name, Endpoint: r.declared.Rule.Endpoint, Field: field,
		Source: r.place.lock(r.index, numbers...), Message: fmt.Sprintf(format, args...),
	})
}

// valueOf returns a value for [ruleset.Declared.Set], or "" for an enum that is unspecified. The values of
// an enum are the words of a rule in capitals, with a prefix: STRATEGY_NULL_RESPONSE is "null_response".
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

// valueNames returns the names of the values that a field may have.
func valueNames(values protoreflect.EnumValueDescriptors) []string {
	var names []string
	for i := range values.Len() {
		if values.Get(i).Number() != 0 {
			names = append(names, string(values.Get(i).Name()))
		}
	}
	return names
}
