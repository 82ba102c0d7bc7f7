package protorules

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Method is a method with the rules that its options declare.
type Method struct {
	Descriptor protoreflect.MethodDescriptor
	FullMethod string             // "/shop.v1.Orders/Pay"
	Rules      []ruleset.Declared // see [Of]
	Problems   []*ruleset.Problem // see [Of]
}

// Of returns the rules that the lock options of m declare, in their order, and the problems of these options. If m has no
// lock option, both are nil. Each rule is in the layer [ruleset.LayerProto] and has m as its endpoint. Of leaves out a
// field that has a problem. Package ruleset checks the values when it resolves the rules.
func Of(m protoreflect.MethodDescriptor) ([]ruleset.Declared, []*ruleset.Problem) {
	locks, err := locksOf(m.Options())
	if err != nil {
		return nil, []*ruleset.Problem{{
			Endpoint: ruleset.GRPC(fullMethod(m)), Source: newSourceFinder(m).method(), Message: err.Error(),
		}}
	}
	var rules []ruleset.Declared
	var problems []*ruleset.Problem
	for i, lock := range locks {
		r := newReader(m, i, lock.GetName())
		r.read("", lock.ProtoReflect())
		rules = append(rules, r.declared)
		problems = append(problems, r.problems...)
	}
	return rules, problems
}

// All returns all methods in files, sorted by full name. It includes methods without rules. To read a descriptor set, create
// files with [google.golang.org/protobuf/reflect/protodesc.NewFiles].
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

// NeedsRule reports whether a method without a rule is uncovered in the sense of [ruleset.Settings]. A method needs no rule
// if its idempotency_level is NO_SIDE_EFFECTS, or if it is [ruleset.Endpoint.Infrastructure]. If a method has no
// descriptor, m is nil.
func NeedsRule(fullMethod string, m protoreflect.MethodDescriptor) bool {
	return !ruleset.GRPC(fullMethod).Infrastructure() && (m == nil || !isReadOnly(m.Options()))
}

// isReadOnly reports whether idempotency_level is NO_SIDE_EFFECTS. The options may have any type.
func isReadOnly(options protoreflect.ProtoMessage) bool {
	if options == nil || !options.ProtoReflect().IsValid() {
		return false
	}
	fields := options.ProtoReflect().Descriptor().Fields()
	level := fields.ByNumber(levelOfOptions)
	return level != nil && options.ProtoReflect().Get(level).Enum() == descriptorpb.MethodOptions_NO_SIDE_EFFECTS.Number()
}

// levelOfOptions is the field number of idempotency_level.
const levelOfOptions = 34
