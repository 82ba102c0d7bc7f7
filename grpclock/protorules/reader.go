package protorules

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
)

// reader converts one lock option of a method to a [ruleset.Declared] and collects its problems.
type reader struct {
	name     string // the name of the rule
	sources  sourceFinder
	index    int // the index of the option among the lock options of the method
	declared ruleset.Declared
	problems []*ruleset.Problem
}

func newReader(m protoreflect.MethodDescriptor, index int, name string) *reader {
	sources := newSourceFinder(m)
	return &reader{name: name, sources: sources, index: index, declared: ruleset.Declared{
		Rule:   ruleset.Rule{Endpoint: ruleset.GRPC(fullMethod(m))},
		Source: sources.option(index),
		Fields: map[string]ruleset.Source{},
	}}
}

// read reads the fields of m that are set. m is the lock or a message inside it. prefix is the field path from the lock to
// m, such as "status.busy.". numbers is the same path in field numbers. A lock has the same fields as a rule.
func (r *reader) read(prefix string, m protoreflect.Message, numbers ...protoreflect.FieldNumber) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); m.Has(field) {
			r.readField(prefix+string(field.Name()), field, m.Get(field), append(slices.Clip(numbers), field.Number()))
		}
	}
	// An unknown field is an error, because ignoring it would change the lock without notice.
	for _, number := range unknownFields(m) {
		r.reportf(strings.TrimSuffix(prefix, "."), nil, "field number %d of %s is not known to this program: update github.com/interlock-go/interlock in its go.mod",
			number, m.Descriptor().FullName())
	}
}

// readField reads the field with the path name. It ignores an unspecified enum value. It reports an invalid value.
func (r *reader) readField(name string, field protoreflect.FieldDescriptor, v protoreflect.Value, numbers []protoreflect.FieldNumber) {
	if field.Message() != nil {
		r.recordSource(name, numbers)
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
		r.recordSource(name, append(slices.Clip(numbers), 0)) // compilers record sources of list elements, and none of the list
		for i := range v.List().Len() {
			r.recordSource(fmt.Sprintf("%s[%d]", name, i), append(slices.Clip(numbers), protoreflect.FieldNumber(i)))
		}
	case isSet:
		r.recordSource(name, numbers)
	}
}

// recordSource records the source of the field with the path name. If the field is a part of another field, recordSource
// records its source only if it differs from the source of the whole field.
func (r *reader) recordSource(name string, numbers []protoreflect.FieldNumber) {
	source := r.sources.option(r.index, numbers...)
	if !strings.ContainsAny(name, ".[") || source != r.sources.option(r.index, numbers[0]) {
		r.declared.Fields[name] = source
	}
}

// reportf adds a problem of a field. field is its path, such as "status.busy.grpc". numbers is the same path in field
// numbers.
func (r *reader) reportf(field string, numbers []protoreflect.FieldNumber, format string, args ...any) {
	r.problems = append(r.problems, &ruleset.Problem{
		Rule: r.name, Endpoint: r.declared.Rule.Endpoint, Field: field,
		Source: r.sources.option(r.index, numbers...), Message: fmt.Sprintf(format, args...),
	})
}

// valueOf converts v, the value of field, for [ruleset.Declared.Set]. For an unspecified enum value it returns "". For any
// other enum value it removes the prefix and the capitals: STRATEGY_NULL_RESPONSE becomes "null_response".
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

// valueNames returns the names of the values of an enum. It leaves out the unspecified value.
func valueNames(values protoreflect.EnumValueDescriptors) []string {
	var names []string
	for i := range values.Len() {
		if values.Get(i).Number() != 0 {
			names = append(names, string(values.Get(i).Name()))
		}
	}
	return names
}
