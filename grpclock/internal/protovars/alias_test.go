package protovars_test

import (
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A value of an enum with two names is one key, whichever name the client wrote.
func TestMessage_EnumAliases(t *testing.T) {
	t.Parallel()
	var file descriptorpb.FileDescriptorProto
	err := prototext.Unmarshal([]byte(`name: "alias.proto" package: "alias" syntax: "proto3"
		enum_type { name: "State" options { allow_alias: true }
			value { name: "NONE" number: 0 } value { name: "PAID" number: 1 } value { name: "SETTLED" number: 1 } }
		message_type { name: "Order" field { name: "state" number: 1 type: TYPE_ENUM type_name: ".alias.State" label: LABEL_OPTIONAL } }`), &file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := protodesc.NewFile(&file, new(protoregistry.Files))
	if err != nil {
		t.Fatal(err)
	}
	order := d.Messages().ByName("Order")
	v := variablesOf(t, order)
	template, err := keyexpr.Compile(`#{req.state}`, v.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []protoreflect.Name{"PAID", "SETTLED"} {
		m := dynamicpb.NewMessage(order)
		m.Set(order.Fields().ByName("state"), protoreflect.ValueOfEnum(d.Enums().Get(0).Values().ByName(name).Number()))
		if key, err := template.Key(v.Call(proto.Message(m), &host{})); err != nil || key != "PAID" {
			t.Errorf("%s: got %q, %v, want PAID", name, key, err)
		}
	}
}
