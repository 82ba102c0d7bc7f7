package protorules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// set takes over the value of a field, whose name is that of a field of a rule. It reports
// whether the field is now set; if it is not, either its value says so, or there is a
// problem.
func (r *reader) set(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	to := reflect.ValueOf(&r.declared.Rule).Elem().Field(slices.Index(ruleset.Fields(), string(field.Name())))
	switch {
	case field.IsList():
		r.setKeys(field, v.List())
	case field.Message() != nil:
		r.setStatus(field, v.Message())
	case field.Enum() != nil:
		return r.setWord(field, v.Enum(), to)
	case to.Type() == reflect.TypeFor[time.Duration]():
		return r.setDuration(field, v.String(), to)
	default: // a string, a number or a bool
		to.Set(reflect.ValueOf(v.Interface()).Convert(to.Type()))
	}
	return true
}

func (r *reader) setDuration(field protoreflect.FieldDescriptor, text string, to reflect.Value) bool {
	d, err := ruleset.ParseDuration(ruleset.LayerProto, string(field.Name()), text)
	if err != nil {
		r.reportf(string(field.Name()), []protoreflect.FieldNumber{field.Number()}, "%v", err)
		return false
	}
	to.SetInt(int64(d))
	return true
}

// setWord takes the value of an enum, whose words are those of a rule under a prefix in
// capitals: STRATEGY_NULL_RESPONSE is "null_response".
func (r *reader) setWord(field protoreflect.FieldDescriptor, number protoreflect.EnumNumber, to reflect.Value) bool {
	values := field.Enum().Values()
	value := values.ByNumber(number)
	switch {
	case value == nil:
		r.reportf(string(field.Name()), []protoreflect.FieldNumber{field.Number()},
			"%s number %d is not known to this program: write one of %s, or update github.com/interlock-go/interlock in its go.mod",
			field.Enum().FullName(), number, strings.Join(valueNames(values), ", "))
		return false
	case number == 0:
		return false
	}
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), unspecified)
	to.SetString(strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)))
	return true
}

const unspecified = "UNSPECIFIED"

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

func (r *reader) setKeys(field protoreflect.FieldDescriptor, keys protoreflect.List) {
	for i := range keys.Len() {
		r.declared.Rule.Keys = append(r.declared.Rule.Keys, keys.Get(i).String())
		r.notePart(fmt.Sprintf("keys[%d]", i), field.Number(), protoreflect.FieldNumber(i))
	}
}

// setStatus takes over the statuses of the causes.
func (r *reader) setStatus(field protoreflect.FieldDescriptor, statuses protoreflect.Message) {
	fields := statuses.Descriptor().Fields()
	for i := range fields.Len() {
		if cause := fields.Get(i); statuses.Has(cause) {
			r.readStatus(r.status(cause.Name()), statuses.Get(cause).Message(), field, cause)
		}
	}
	r.reportUnknown("status", statuses)
}

// status is that of a cause.
func (r *reader) status(cause protoreflect.Name) *failpolicy.Status {
	causes := reflect.ValueOf(&r.declared.Rule.Status).Elem()
	to := causes.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, string(cause)) })
	return to.Addr().Interface().(*failpolicy.Status) //nolint:errcheck,forcetypeassert // all fields are of this type
}

// readStatus takes over one status.
func (r *reader) readStatus(to *failpolicy.Status, status protoreflect.Message, field, cause protoreflect.FieldDescriptor) {
	name := string(field.Name() + "." + cause.Name())
	r.notePart(name, field.Number(), cause.Number())
	halves := status.Descriptor().Fields()
	for i := range halves.Len() {
		half := halves.Get(i)
		if !status.Has(half) {
			continue
		}
		part, numbers := name+"."+string(half.Name()), []protoreflect.FieldNumber{field.Number(), cause.Number(), half.Number()}
		r.notePart(part, numbers...)
		if err := setHalf(to, half, status.Get(half), cause); err != nil {
			r.reportf(part, numbers, "%v", err)
		}
	}
	r.reportUnknown(name, status)
}

// setHalf takes over the status of one transport.
func setHalf(to *failpolicy.Status, half protoreflect.FieldDescriptor, v protoreflect.Value, cause protoreflect.FieldDescriptor) (err error) {
	if half.Name() == "grpc" {
		to.GRPC, err = failpolicy.ParseCode(v.String())
		return err
	}
	to.HTTP = int(v.Int())
	if to.HTTP == 0 {
		return fmt.Errorf("0 is no status: write one of 400 to 599, such as %d", failpolicy.Cause(cause.Name()).Status().HTTP)
	}
	return nil
}
