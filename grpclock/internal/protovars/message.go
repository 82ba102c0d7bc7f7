package protovars

import (
	"encoding/hex"
	"encoding/json"
	"math/big"
	"strconv"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/interlock-go/interlock/keyexpr"
)

// message describes a message type to expressions. Its values are
// protoreflect.Messages.
type message struct {
	descriptor protoreflect.MessageDescriptor
}

// Name implements [keyexpr.Object].
func (m message) Name() string { return string(m.descriptor.FullName()) }

// Fields implements [keyexpr.Object].
func (m message) Fields() []string {
	fields := m.descriptor.Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = string(fields.Get(i).Name())
	}
	return names
}

// Field implements [keyexpr.Object].
func (m message) Field(name string) (keyexpr.Field, bool) {
	fd := m.descriptor.Fields().ByName(protoreflect.Name(name))
	if fd == nil {
		return keyexpr.Field{}, false
	}
	f := keyexpr.Field{Type: typeOf(fd), Get: getter(fd)}
	f.Implicit = !fd.HasPresence() && !fd.IsList() && !fd.IsMap() && !isWrapper(m.descriptor)
	if fd.Enum() != nil && !fd.IsList() {
		f.Zero = enumName(fd.Enum(), fd.Default().Enum())
	}
	if fd.HasDefault() {
		f.Default = scalar(fd, fd.Default())
	}
	return f, true
}

// isWrapper reports whether a message is declared in google/protobuf/wrappers.proto. The value of a
// wrapper is set if and only if the wrapper is set.
func isWrapper(d protoreflect.MessageDescriptor) bool {
	return d.ParentFile() != nil && d.ParentFile().Path() == "google/protobuf/wrappers.proto"
}

func typeOf(fd protoreflect.FieldDescriptor) keyexpr.Type {
	switch {
	case fd.IsMap():
		return keyexpr.MapType(singular(fd.MapValue(), true))
	case fd.IsList():
		return keyexpr.ListType(singular(fd, true))
	}
	return singular(fd, false)
}

// singular returns the type of one value. inside marks an element of a list or map. Such an element may be
// absent, and a condition then reads an enum as empty.
func singular(fd protoreflect.FieldDescriptor, inside bool) keyexpr.Type {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return keyexpr.TypeFor[string]()
	case protoreflect.BytesKind:
		return keyexpr.TextType("hexadecimal text, as bytes are written", canonicalHex)
	case protoreflect.EnumKind:
		return enumType(fd.Enum(), inside)
	case protoreflect.BoolKind:
		return keyexpr.TypeFor[bool]()
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return keyexpr.TypeFor[float64]()
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return keyexpr.ObjectType(objectOf(fd.Message()))
	}
	return keyexpr.TypeFor[int]()
}

// getter returns a function that reads a field. It finds the field by its number in a message that has the
// same name and another descriptor, for example a dynamic message.
func getter(fd protoreflect.FieldDescriptor) func(any) any {
	parent := fd.ContainingMessage()
	return func(v any) any {
		m, ok := v.(protoreflect.Message)
		if !ok {
			return nil
		}
		field := fd
		if d := m.Descriptor(); d != parent {
			field = counterpart(d, fd)
			if field == nil {
				return nil
			}
		}
		if field.HasPresence() && !m.Has(field) {
			return nil
		}
		return convert(field, m.Get(field))
	}
}

// counterpart returns the same field in another descriptor of the message, or nil.
func counterpart(d protoreflect.MessageDescriptor, fd protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if d.FullName() != fd.ContainingMessage().FullName() {
		return nil
	}
	found := d.Fields().ByNumber(fd.Number())
	if found == nil || found.Kind() != fd.Kind() || found.Cardinality() != fd.Cardinality() {
		return nil
	}
	return found
}

// convert converts the value of a field to the form that package keyexpr documents.
func convert(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case fd.IsMap():
		return convertMap(fd, v.Map())
	case fd.IsList():
		list := v.List()
		return keyexpr.LazyList(list.Len(), func(i int) any { return scalar(fd, list.Get(i)) })
	}
	return scalar(fd, v)
}

func convertMap(fd protoreflect.FieldDescriptor, m protoreflect.Map) any {
	return keyexpr.LazyMap(m.Len(), func(name string) (any, bool) {
		key, ok := mapKey(fd.MapKey(), name)
		if !ok || !m.Has(key) {
			return nil, false
		}
		return scalar(fd.MapValue(), m.Get(key)), true
	}, func(yield func(string, any) bool) {
		m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			return yield(k.String(), scalar(fd.MapValue(), v))
		})
	})
}

// mapKey returns the map key with a given text. It accepts only the canonical text of a key: "01" is not a
// key of a map with numbers.
func mapKey(fd protoreflect.FieldDescriptor, text string) (protoreflect.MapKey, bool) {
	v, err := keyValue(fd.Kind(), text)
	if err != nil {
		return protoreflect.MapKey{}, false
	}
	key := v.MapKey()
	return key, key.String() == text
}

func keyValue(kind protoreflect.Kind, text string) (protoreflect.Value, error) {
	switch kind {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(text), nil
	case protoreflect.BoolKind:
		b, err := strconv.ParseBool(text)
		return protoreflect.ValueOfBool(b), err
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		return protoreflect.ValueOfUint32(uint32(n)), err
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		return protoreflect.ValueOfUint64(n), err
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := strconv.ParseInt(text, 10, 32)
		return protoreflect.ValueOfInt32(int32(n)), err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return protoreflect.ValueOfInt64(n), err
}

func scalar(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch fd.Kind() {
	case protoreflect.BytesKind:
		return hex.EncodeToString(v.Bytes())
	case protoreflect.EnumKind:
		return enumName(fd.Enum(), v.Enum())
	}
	return v.Interface()
}

func canonicalHex(text string) (string, bool) {
	b, err := hex.DecodeString(text)
	return hex.EncodeToString(b), err == nil
}

// enumType returns the type of the names of an enum. An alias and a number are other spellings of a
// value. If empty is true, the empty string is a value, too.
func enumType(d protoreflect.EnumDescriptor, empty bool) keyexpr.Type {
	names := make([]string, 0, d.Values().Len())
	for i := range d.Values().Len() {
		if value := d.Values().Get(i); enumName(d, value.Number()) == string(value.Name()) {
			names = append(names, string(value.Name()))
		}
	}
	return keyexpr.TextType("a value of "+string(d.FullName()), func(text string) (string, bool) {
		if value := d.Values().ByName(protoreflect.Name(text)); value != nil {
			return enumName(d, value.Number()), true
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return "", empty && text == ""
		}
		return enumName(d, protoreflect.EnumNumber(n)), true
	}, names...)
}

// enumName returns the name of a value of an enum, or the number if it has no name.
func enumName(d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	if value := d.Values().ByNumber(n); value != nil {
		return string(value.Name())
	}
	return strconv.Itoa(int(n))
}

// wellKnown is a message with seconds and nanoseconds that is also a value.
type wellKnown struct {
	message

	typ   keyexpr.Type
	value func(seconds int64, nanos int32) any
}

// objectOf returns the description of a message type.
func objectOf(d protoreflect.MessageDescriptor) keyexpr.Object {
	if d.Fields().ByNumber(1) == nil || d.Fields().ByNumber(2) == nil {
		return message{d}
	}
	switch d.FullName() {
	case "google.protobuf.Timestamp":
		return wellKnown{message{d}, keyexpr.TypeFor[time.Time](), instant}
	case "google.protobuf.Duration":
		return wellKnown{message{d}, keyexpr.TypeFor[int](), nanoseconds}
	}
	return message{d}
}

// Field implements [keyexpr.Object]. An invalid message is a missing value.
func (w wellKnown) Field(name string) (keyexpr.Field, bool) {
	if name != "" {
		return w.message.Field(name)
	}
	seconds, nanos := getter(w.descriptor.Fields().ByNumber(1)), getter(w.descriptor.Fields().ByNumber(2))
	return keyexpr.Field{Type: w.typ, Get: func(parent any) any {
		s, okS := seconds(parent).(int64)
		n, okN := nanos(parent).(int32)
		if !okS || !okN {
			return nil
		}
		return w.value(s, n)
	}}, true
}

func instant(seconds int64, nanos int32) any {
	if !(&timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}).IsValid() {
		return nil
	}
	return time.Unix(seconds, int64(nanos))
}

// nanoseconds returns the exact number of nanoseconds, even beyond the 292 years of a time.Duration.
func nanoseconds(seconds int64, nanos int32) any {
	if !(&durationpb.Duration{Seconds: seconds, Nanos: nanos}).IsValid() {
		return nil
	}
	n := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(int64(time.Second)))
	return json.Number(n.Add(n, big.NewInt(int64(nanos))).String())
}
