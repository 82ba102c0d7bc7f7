package protovars_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/keyexpr"
)

// scalars lists the kinds of fields that are neither messages nor enums.
var scalars = []descriptorpb.FieldDescriptorProto_Type{
	descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BOOL, descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	descriptorpb.FieldDescriptorProto_TYPE_INT32, descriptorpb.FieldDescriptorProto_TYPE_INT64,
	descriptorpb.FieldDescriptorProto_TYPE_UINT32, descriptorpb.FieldDescriptorProto_TYPE_UINT64,
	descriptorpb.FieldDescriptorProto_TYPE_SINT32, descriptorpb.FieldDescriptorProto_TYPE_SINT64,
	descriptorpb.FieldDescriptorProto_TYPE_FIXED32, descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
	descriptorpb.FieldDescriptorProto_TYPE_SFIXED32, descriptorpb.FieldDescriptorProto_TYPE_SFIXED64,
	descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
}

// nameOf returns the part of field names that stands for a kind: one_int32, many_int32, by_int32.
func nameOf(kind descriptorpb.FieldDescriptorProto_Type) string {
	return strings.ToLower(strings.TrimPrefix(kind.String(), "TYPE_"))
}

// isKey reports whether maps may have keys of a kind.
func isKey(kind descriptorpb.FieldDescriptorProto_Type) bool {
	switch kind {
	case descriptorpb.FieldDescriptorProto_TYPE_BYTES, descriptorpb.FieldDescriptorProto_TYPE_FLOAT, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE:
		return false
	}
	return true
}

// everyKind returns a message with a field, a list and, if possible, a map of each kind. The values of the maps are strings.
func everyKind(tb testing.TB) protoreflect.MessageDescriptor {
	tb.Helper()
	message := &descriptorpb.DescriptorProto{Name: new("Every")}
	add := func(to *descriptorpb.DescriptorProto, name string, kind descriptorpb.FieldDescriptorProto_Type, repeated bool, typeName string) {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		field := &descriptorpb.FieldDescriptorProto{Name: &name, Number: new(int32(len(to.GetField()) + 1)), Type: &kind, Label: &label}
		if typeName != "" {
			field.TypeName = &typeName
		}
		to.Field = append(to.Field, field)
	}
	for _, kind := range scalars {
		name := nameOf(kind)
		add(message, "one_"+name, kind, false, "")
		add(message, "many_"+name, kind, true, "")
		if !isKey(kind) {
			continue
		}
		entry := &descriptorpb.DescriptorProto{
			Name:    new("By" + strings.ToUpper(name[:1]) + name[1:] + "Entry"),
			Options: &descriptorpb.MessageOptions{MapEntry: new(true)},
		}
		add(entry, "key", kind, false, "")
		add(entry, "value", descriptorpb.FieldDescriptorProto_TYPE_STRING, false, "")
		message.NestedType = append(message.NestedType, entry)
		add(message, "by_"+name, descriptorpb.FieldDescriptorProto_TYPE_MESSAGE, true, ".every.Every."+entry.GetName())
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("every.proto"), Package: new("every"), Syntax: new("proto3"), MessageType: []*descriptorpb.DescriptorProto{message},
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return file.Messages().Get(0)
}

// keysOf returns the keys that an expression yields for a message, or the reason why it yields none.
func keysOf(tb testing.TB, d protoreflect.MessageDescriptor, expression, text string) string {
	tb.Helper()
	v := variablesOf(tb, d)
	keys, err := compile(tb, v, "#{"+expression+"}").Keys(v.Call(messageOf(tb, d, text), &host{}))
	if failure, ok := errors.AsType[*keyexpr.EvalError](err); ok {
		return "!" + failure.Reason.String()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Join(keys, " ")
}

// Integers of every kind have one text: the text of the number.
func TestMessage_Numbers(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	for _, kind := range scalars {
		name := nameOf(kind)
		if !strings.Contains(name, "int") && !strings.Contains(name, "fixed") {
			continue
		}
		largest := map[bool]string{true: "2147483647", false: "9223372036854775807"}[strings.Contains(name, "32")]
		for _, tt := range []struct{ expression, text, want string }{
			{"req.one_" + name, "one_" + name + ": 42", "42"},
			{"req.one_" + name, "one_" + name + ": " + largest, largest},
			{"req.one_" + name, "one_" + name + ": 0", "!missing"},
			{"req.one_" + name, "", "!missing"},
			{"req.one_" + name + " ?? 0", "", "0"},
			{"req.one_" + name + " + 1", "one_" + name + ": 41", "42"},
			{"req.one_" + name + " == 42", "one_" + name + ": 42", "true"},
			{"req.many_" + name, "many_" + name + ": [3, 1, 3]", "1 3"},
			{"req.many_" + name + "[0]", "many_" + name + ": [0]", "0"},
			{"req.many_" + name, "", "!empty"},
			{"first(req.many_" + name + ")", "many_" + name + ": [3, 1, 3]", "3"},
			{"3 in req.many_" + name, "many_" + name + ": [3]", "true"},
			{"any(req.many_" + name + ", # == 2)", "many_" + name + ": [3, 1, 2, 3]", "true"},
			{"any(req.many_" + name + ", # > 3)", "many_" + name + ": [3, 1, 2, 3]", "false"},
			{"map(req.many_" + name + ", # + 1)", "many_" + name + ": [3, 1, 2, 3]", "2 3 4"},
			{"req.by_" + name + "[7]", "by_" + name + " { key: 7 value: 'v' }", "v"},
			{"req.by_" + name + `["7"]`, "by_" + name + " { key: 7 value: 'v' }", "v"},
			{"req.by_" + name + `["07"]`, "by_" + name + " { key: 7 value: 'v' }", "!missing"},
			{"req.by_" + name + `["+7"]`, "by_" + name + " { key: 7 value: 'v' }", "!missing"},
			{"req.by_" + name + `["x"]`, "by_" + name + " { key: 7 value: 'v' }", "!missing"},
			{"req.by_" + name + `["99999999999999999999"]`, "by_" + name + " { key: 7 value: 'v' }", "!missing"},
			{"req.by_" + name + "[8]", "by_" + name + " { key: 7 value: 'v' }", "!missing"},
			{`"7" in req.by_` + name, "by_" + name + " { key: 7 value: 'v' }", "true"},
			{`"8" in req.by_` + name, "by_" + name + " { key: 7 value: 'v' }", "false"},
			{"keys(req.by_" + name + ")", "by_" + name + " { key: 7 value: 'v' } by_" + name + " { key: 0 value: 'w' }", "0 7"},
		} {
			if got := keysOf(t, d, tt.expression, tt.text); got != tt.want {
				t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.text, got, tt.want)
			}
		}
	}
}

// A signed kind accepts negative numbers, as a field and as the key of a map.
func TestMessage_NegativeNumbers(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	for _, name := range []string{"int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64"} {
		if got := keysOf(t, d, "req.one_"+name, "one_"+name+": -5"); got != "-5" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := keysOf(t, d, "req.by_"+name+`["-5"]`, "by_"+name+" { key: -5 value: 'v' }"); got != "v" {
			t.Errorf("a key of %s: got %q", name, got)
		}
		if got := keysOf(t, d, "req.by_"+name+`[-5]`, "by_"+name+" { key: -5 value: 'v' }"); got != "v" {
			t.Errorf("a literal key of %s: got %q", name, got)
		}
	}
}

// The texts of the kinds that are not numbers, and the values of each kind that count as missing.
func TestMessage_OtherKinds(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	for _, tt := range []struct{ expression, text, want string }{
		{`req.one_string`, `one_string: "a b"`, "a b"},
		{`req.one_string`, `one_string: ""`, "!empty"},
		{`req.one_string ?? "none"`, ``, "none"},
		{`req.many_string`, `many_string: ["b", "a"]`, "a b"},
		{`req.many_string`, `many_string: ["b", ""]`, "!empty"},
		{`req.by_string.k`, `by_string { key: "k" value: "v" }`, "v"},
		{`req.by_string.K`, `by_string { key: "k" value: "v" }`, "!missing"},
		{`req.by_string[""]`, `by_string { key: "" value: "v" }`, "v"},
		{`req.by_string.k`, `by_string { key: "k" value: "" }`, "!empty"},
		{`req.one_bool`, `one_bool: true`, "true"},
		{`req.one_bool`, ``, "false"},
		{`req.many_bool`, `many_bool: [true, false, true]`, "false true"},
		{`req.by_bool["true"]`, `by_bool { key: true value: "v" }`, "v"},
		{`req.by_bool["false"]`, `by_bool { key: true value: "v" }`, "!missing"},
		{`req.by_bool["1"]`, `by_bool { key: true value: "v" }`, "!missing"},
		{`req.by_bool["TRUE"]`, `by_bool { key: true value: "v" }`, "!missing"},
		{`"true" in req.by_bool`, `by_bool { key: true value: "v" }`, "true"},
		{`req.one_bytes`, `one_bytes: "42"`, "3432"},
		{`req.one_bytes`, `one_bytes: "\x00\xff"`, "00ff"},
		{`req.one_bytes`, ``, "!empty"},
		{`req.one_bytes ?? "none"`, ``, "none"},
		{`req.many_bytes`, `many_bytes: ["a", "b"]`, "61 62"},
		{`req.one_double > 1 ? "high" : "low"`, `one_double: 1.5`, "high"},
		{`req.one_float > 1 ? "high" : "low"`, `one_float: 1.5`, "high"},
		{`req.one_double == 0 ? 1 : 2`, ``, "1"},
		{`int(req.one_double)`, `one_double: 3`, "3"},
		{`int(req.one_double)`, `one_double: 3.5`, "!expression"},
	} {
		if got := keysOf(t, d, tt.expression, tt.text); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.text, got, tt.want)
		}
	}
}

// A float is refused at start-up, wherever it is in a message.
func TestMessage_Floats(t *testing.T) {
	t.Parallel()
	v := variablesOf(t, everyKind(t))
	for _, expression := range []string{`req.one_float`, `req.one_double`, `req.many_float`, `req.many_double[0]`, `req.one_double + 1`, `map(req.many_double, #)`, `-req.one_double`} {
		_, err := keyexpr.Compile("#{"+expression+"}", v.Schema())
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || !strings.Contains(problem.Message, "float") {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}

// The schema of a message has its fields in the order of the file.
func TestMessage_Fields(t *testing.T) {
	t.Parallel()
	d := everyKind(t)
	v := variablesOf(t, d)
	if got := v.Schema().Variables(); !slices.Equal(got, []string{"metadata", "method", "peer", "req"}) {
		t.Errorf("got %q", got)
	}
	for i := range d.Fields().Len() {
		name := string(d.Fields().Get(i).Name())
		if _, err := keyexpr.CompileCondition("req."+name+" == nil", v.Schema()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := keyexpr.Compile(`#{req.one_strin}`, v.Schema())
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != "req.one_string" {
		t.Errorf("got %v", err)
	}
}
