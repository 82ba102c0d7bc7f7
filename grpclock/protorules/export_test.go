package protorules

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// FullMethod exports fullMethod.
func FullMethod(m protoreflect.MethodDescriptor) string { return fullMethod(m) }
