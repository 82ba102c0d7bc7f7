package protorules

import "google.golang.org/protobuf/reflect/protoreflect"

// FullMethod is for tests.
func FullMethod(m protoreflect.MethodDescriptor) string { return fullMethod(m) }
