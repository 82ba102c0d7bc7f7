package protorules

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// setter takes over the value of a field. It reports whether the field is now set;
// if it is not, either its value says so, or there is a problem.
type setter func(r *reader, field protoreflect.FieldDescriptor, v protoreflect.Value) bool

// setters are the fields of a Lock. Their names are those of the fields of a rule.
func setters() map[protoreflect.Name]setter {
	return map[protoreflect.Name]setter{
		"name":        text(func(r *ruleset.Rule) *string { return &r.Name }),
		"key":         text(func(r *ruleset.Rule) *string { return &r.Key }),
		"keys":        setKeys,
		"kind":        word(func(r *ruleset.Rule) *ruleset.Kind { return &r.Kind }),
		"wait_time":   duration(func(r *ruleset.Rule) *time.Duration { return &r.WaitTime }),
		"lease_time":  duration(func(r *ruleset.Rule) *time.Duration { return &r.LeaseTime }),
		"on_busy":     word(func(r *ruleset.Rule) *failpolicy.Strategy { return &r.OnBusy }),
		"on_backend":  word(func(r *ruleset.Rule) *failpolicy.Strategy { return &r.OnBackend }),
		"on_key":      word(func(r *ruleset.Rule) *failpolicy.Strategy { return &r.OnKey }),
		"on_overload": word(func(r *ruleset.Rule) *failpolicy.Strategy { return &r.OnOverload }),
		"on_lost":     word(func(r *ruleset.Rule) *failpolicy.OnLost { return &r.OnLost }),
		"fallback":    text(func(r *ruleset.Rule) *string { return &r.Fallback }),
		"when":        text(func(r *ruleset.Rule) *string { return &r.When }),
		"debounce":    duration(func(r *ruleset.Rule) *time.Duration { return &r.Debounce }),
		"max_waiters": number(func(r *ruleset.Rule) *int { return &r.MaxWaiters }),
		"permits":     number(func(r *ruleset.Rule) *int { return &r.Permits }),
		"token":       flag(func(r *ruleset.Rule) *bool { return &r.Token }),
		"status":      setStatus,
		"response":    text(func(r *ruleset.Rule) *string { return &r.Response }),
		"message":     text(func(r *ruleset.Rule) *string { return &r.Message }),
		"prefix":      text(func(r *ruleset.Rule) *string { return &r.Prefix }),
		"key_format":  word(func(r *ruleset.Rule) *ruleset.KeyFormat { return &r.KeyFormat }),
		"profile":     text(func(r *ruleset.Rule) *string { return &r.Profile }),
		"disabled":    flag(func(r *ruleset.Rule) *bool { return &r.Disabled }),
		"dry_run":     flag(func(r *ruleset.Rule) *bool { return &r.DryRun }),
		"none":        flag(func(r *ruleset.Rule) *bool { return &r.None }),
	}
}

func text(to func(*ruleset.Rule) *string) setter {
	return func(r *reader, _ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		*to(&r.declared.Rule) = v.String()
		return true
	}
}

func flag(to func(*ruleset.Rule) *bool) setter {
	return func(r *reader, _ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		*to(&r.declared.Rule) = v.Bool()
		return true
	}
}

func number(to func(*ruleset.Rule) *int) setter {
	return func(r *reader, _ protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		*to(&r.declared.Rule) = int(v.Int())
		return true
	}
}

func duration(to func(*ruleset.Rule) *time.Duration) setter {
	return func(r *reader, field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		d, err := parseDuration(string(field.Name()), v.String())
		if err != nil {
			r.reportf(string(field.Name()), []protoreflect.FieldNumber{field.Number()}, "%v", err)
			return false
		}
		*to(&r.declared.Rule) = d
		return true
	}
}

// word takes the value of an enum, whose words are those of a rule under a prefix in
// capitals: STRATEGY_NULL_RESPONSE is "null_response".
func word[T ~string](to func(*ruleset.Rule) *T) setter {
	return func(r *reader, field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		values := field.Enum().Values()
		value := values.ByNumber(v.Enum())
		if value == nil {
			r.reportf(string(field.Name()), []protoreflect.FieldNumber{field.Number()},
				"%s number %d is not known to this program: write one of %s, or update github.com/interlock-go/interlock in its go.mod",
				field.Enum().FullName(), v.Enum(), strings.Join(valueNames(values), ", "))
			return false
		}
		prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), unspecified)
		*to(&r.declared.Rule) = T(strings.ToLower(strings.TrimPrefix(string(value.Name()), prefix)))
		if value.Number() == 0 {
			*to(&r.declared.Rule) = ""
		}
		return value.Number() != 0
	}
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

func setKeys(r *reader, field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	for i := range v.List().Len() {
		r.declared.Rule.Keys = append(r.declared.Rule.Keys, v.List().Get(i).String())
		r.notePart(fmt.Sprintf("keys[%d]", i), field.Number(), protoreflect.FieldNumber(i))
	}
	return true
}

// setStatus takes over the statuses of the causes.
func setStatus(r *reader, field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
	s := &r.declared.Rule.Status
	causes := map[protoreflect.Name]*failpolicy.Status{
		"busy": &s.Busy, "debounced": &s.Debounced, "backend": &s.Backend, "key": &s.Key,
		"overload": &s.Overload, "lost": &s.Lost, "deadline": &s.Deadline,
	}
	statuses := v.Message()
	fields := statuses.Descriptor().Fields()
	for i := range fields.Len() {
		if cause := fields.Get(i); statuses.Has(cause) {
			r.readStatus(causes[cause.Name()], statuses.Get(cause).Message(), field, cause)
		}
	}
	r.reportUnknown("status", statuses)
	return true
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
