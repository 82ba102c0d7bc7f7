package protorules

import (
	"fmt"

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
		Rule:   ruleset.Rule{Endpoint: ruleset.GRPC(FullMethod(m))},
		Source: at.lock(index),
		Fields: map[string]ruleset.Source{},
	}}
}

// read takes over every field that is set.
func (r *reader) read(lock protoreflect.Message) {
	fields := lock.Descriptor().Fields()
	for i := range fields.Len() {
		if field := fields.Get(i); lock.Has(field) && r.set(field, lock.Get(field)) {
			r.note(field)
		}
	}
	r.reportUnknown("", lock)
}

// note remembers the place of a field; of a list that of its first element, because
// compilers tell no other.
func (r *reader) note(field protoreflect.FieldDescriptor) {
	numbers := []protoreflect.FieldNumber{field.Number()}
	if field.IsList() {
		numbers = append(numbers, 0)
	}
	r.declared.Fields[string(field.Name())] = r.place.lock(r.index, numbers...)
}

// notePart remembers the place of a part of a field, where it is a place of its own.
func (r *reader) notePart(part string, numbers ...protoreflect.FieldNumber) {
	if at := r.place.lock(r.index, numbers...); at != r.place.lock(r.index, numbers[0]) {
		r.declared.Fields[part] = at
	}
}

// reportf adds a problem with a field such as "status.busy.grpc"; numbers lead to it.
func (r *reader) reportf(field string, numbers []protoreflect.FieldNumber, format string, args ...any) {
	r.problems = append(r.problems, &ruleset.Problem{
		Rule: r.name, Endpoint: r.declared.Rule.Endpoint, Field: field,
		Source: r.place.lock(r.index, numbers...), Message: fmt.Sprintf(format, args...),
	})
}

// reportUnknown reports what a newer lock.proto has. A lock is not to be half
// understood.
func (r *reader) reportUnknown(field string, m protoreflect.Message) {
	for _, number := range unknownFields(m) {
		r.reportf(field, nil, "field number %d of %s is not known to this program: update github.com/interlock-go/interlock in its go.mod",
			number, m.Descriptor().FullName())
	}
}
