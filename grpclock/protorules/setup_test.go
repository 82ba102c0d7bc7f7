package protorules_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/internal/protofile"
	"github.com/interlock-go/interlock/grpclock/lockpb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// fileWith returns a file with one method that has the given options.
func fileWith(t testing.TB, options ...string) *descriptorpb.FileDescriptorSet {
	t.Helper()
	return protofile.Compile(t, false, map[string]string{"shop/v1/shop.proto": `syntax = "proto3";
package shop.v1;
import "interlock/v1/lock.proto";
message Order { string order_id = 1; }
service Orders {
  rpc Pay(Order) returns (Order) {
    ` + strings.Join(options, "\n    ") + `
  }
}`}, "../proto")
}

// lock returns an option with the given fields.
func lock(fields string) string { return "option (interlock.v1.lock) = {" + fields + "};" }

// pay returns a method with the given option in a program that knows the option.
func pay(t testing.TB, options ...string) protoreflect.MethodDescriptor {
	t.Helper()
	return read(t, fileWith(t, options...), generatedType(t))
}

func read(t testing.TB, set *descriptorpb.FileDescriptorSet, known *protoregistry.Types) protoreflect.MethodDescriptor {
	t.Helper()
	return protofile.Method(t, protofile.Read(t, set, known), "shop.v1.Orders.Pay")
}

func generatedType(t testing.TB) *protoregistry.Types {
	t.Helper()
	return typesOf(t, lockpb.E_Lock)
}

func typesOf(t testing.TB, extension protoreflect.ExtensionType) *protoregistry.Types {
	t.Helper()
	types := new(protoregistry.Types)
	if err := types.RegisterExtension(extension); err != nil {
		t.Fatal(err)
	}
	return types
}

// dynamicType returns a type of the option that is created at run time.
func dynamicType(t testing.TB, set *descriptorpb.FileDescriptorSet, name protoreflect.FullName) *protoregistry.Types {
	t.Helper()
	d, err := protofile.Read(t, set, new(protoregistry.Types)).FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return typesOf(t, dynamicpb.NewExtensionType(d.(protoreflect.ExtensionDescriptor)))
}

// onlyRule returns the rule of a method that must have one rule and no problems.
func onlyRule(t testing.TB, m protoreflect.MethodDescriptor) ruleset.Declared {
	t.Helper()
	rules, problems := protorules.Of(m)
	if len(rules) != 1 || len(problems) != 0 {
		t.Fatalf("got %d rules and problems %v, want one rule", len(rules), problems)
	}
	return rules[0]
}

// givenOptions is a method with other options.
type givenOptions struct {
	protoreflect.MethodDescriptor
	options proto.Message
}

func (m givenOptions) Options() proto.Message { return m.options }

// dynamicOptions is a method whose options are a dynamic message.
type dynamicOptions struct{ protoreflect.MethodDescriptor }

func (m dynamicOptions) Options() proto.Message {
	options := dynamicpb.NewMessage((*descriptorpb.MethodOptions)(nil).ProtoReflect().Descriptor())
	text, err := proto.Marshal(m.MethodDescriptor.Options())
	if err == nil {
		err = proto.Unmarshal(text, options)
	}
	if err != nil {
		panic(err)
	}
	return options
}
