package grpclock

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// describe finds the descriptor of a full method, nil if there is none.
func describe(fullMethod string, resolvers []protodesc.Resolver) protoreflect.MethodDescriptor {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", "."))
	if !name.IsValid() {
		return nil
	}
	for _, r := range resolvers {
		if m := methodNamed(name, r); m != nil {
			return m
		}
	}
	return methodNamed(name, protoregistry.GlobalFiles)
}

func methodNamed(name protoreflect.FullName, r protodesc.Resolver) protoreflect.MethodDescriptor {
	d, err := r.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok {
		return nil
	}
	return m
}

// newMessage makes an empty message: of the generated type where the program has
// it, else a dynamic one. On the wire they are the same.
func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil || t.Descriptor() != d {
		return dynamicpb.NewMessage(d)
	}
	return t.New().Interface()
}
