package protorules

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
)

// fullMethod is the name of a method in a call and in rules: "/shop.v1.Orders/Pay".
func fullMethod(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// Method is a method with the rules of its options.
type Method struct {
	Descriptor protoreflect.MethodDescriptor
	FullMethod string             // "/shop.v1.Orders/Pay"
	Rules      []ruleset.Declared // see [Of]
	Problems   []*ruleset.Problem // see [Of]
}

// All lists every method of the files, those without rules too, in the order of
// their full names. For a descriptor set, make the files with
// [google.golang.org/protobuf/reflect/protodesc.NewFiles].
func All(files *protoregistry.Files) []Method {
	var list []Method
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		services := file.Services()
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				rules, problems := Of(m)
				list = append(list, Method{Descriptor: m, FullMethod: fullMethod(m), Rules: rules, Problems: problems})
			}
		}
		return true
	})
	slices.SortFunc(list, func(a, b Method) int { return cmp.Compare(a.FullMethod, b.FullMethod) })
	return list
}

// NeedsRule reports whether a method that has no rule is uncovered in the sense of
// [ruleset.Settings]: unless its idempotency_level is NO_SIDE_EFFECTS, or it is
// [ruleset.Endpoint.Infrastructure]. m is nil where the method has no descriptor.
func NeedsRule(fullMethod string, m protoreflect.MethodDescriptor) bool {
	return !ruleset.GRPC(fullMethod).Infrastructure() && (m == nil || !readOnly(m.Options()))
}

// readOnly reads the standard option, whatever type the options have.
func readOnly(options protoreflect.ProtoMessage) bool {
	if options == nil || !options.ProtoReflect().IsValid() {
		return false
	}
	fields := options.ProtoReflect().Descriptor().Fields()
	level := fields.ByNumber(levelOfOptions)
	return level != nil && options.ProtoReflect().Get(level).Enum() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Number()
}

// levelOfOptions is the number of idempotency_level.
const levelOfOptions = 34
