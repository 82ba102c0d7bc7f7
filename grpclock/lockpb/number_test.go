package lockpb_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/runtime/protoimpl"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/interlock-go/interlock/grpclock/lockpb"
)

// Generated code of another option with the same number panics, as the comment of the option says.
func TestLock_NumberOfOtherOption(t *testing.T) {
	t.Parallel()
	raw, err := proto.Marshal(&descriptorpb.FileDescriptorProto{
		Name: new("other.proto"), Package: new("other"), Syntax: new("proto3"),
		Dependency: []string{"google/protobuf/descriptor.proto"},
		Extension: []*descriptorpb.FieldDescriptorProto{{
			Name: new("owner"), Number: new(int32(75625)), Extendee: new(".google.protobuf.MethodOptions"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "extension number 75625 is already registered") {
			t.Errorf("got %s, want a panic that names the number", got)
		}
	}()
	options := (*descriptorpb.MethodOptions)(nil)
	protoimpl.TypeBuilder{ // as protoc-gen-go writes it
		File:              protoimpl.DescBuilder{GoPackagePath: "other", RawDescriptor: raw, NumExtensions: 1},
		GoTypes:           []any{options},
		DependencyIndexes: []int32{0, 1, 1, 1, 0, 0},
		ExtensionInfos: []protoimpl.ExtensionInfo{{
			ExtendedType: options, ExtensionType: (*string)(nil), Field: 75625, Name: "other.owner",
			Tag: "bytes,75625,opt,name=owner", Filename: "other.proto",
		}},
	}.Build()
}
