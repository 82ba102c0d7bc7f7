package protorules

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/lockpb"
)

// Of returns the rules that the options of a method declare, in their order, and
// what is wrong with them; nil and nil without options. Each rule is of the layer
// [ruleset.LayerProto] and has the method as its endpoint. A field that has a problem
// is left out of its rule. Values are checked where the rules are resolved.
func Of(m protoreflect.MethodDescriptor) ([]ruleset.Declared, []*ruleset.Problem) {
	locks, err := locksOf(m.Options())
	if err != nil {
		return nil, []*ruleset.Problem{{
			Endpoint: ruleset.GRPC(fullMethod(m)), Source: placeOf(m).method(), Message: err.Error(),
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

// locksOf reads the option. It is parsed again from its bytes, because it may be
// there as unknown fields, or as messages of a type made at run time.
func locksOf(options proto.Message) ([]*lockpb.Lock, error) {
	if options == nil || !options.ProtoReflect().IsValid() {
		return nil, nil
	}
	if err := checkOwner(options.ProtoReflect()); err != nil {
		return nil, err
	}
	var lockOnly protoregistry.Types
	if err := lockOnly.RegisterExtension(lockType()); err != nil {
		return nil, err
	}
	text, err := proto.MarshalOptions{AllowPartial: true}.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("the options cannot be read: %w", err)
	}
	again := &descriptorpb.MethodOptions{}
	if err := (proto.UnmarshalOptions{AllowPartial: true, Resolver: &lockOnly}).Unmarshal(text, again); err != nil {
		return nil, fmt.Errorf("the option %s cannot be read: %w", lockType().TypeDescriptor().FullName(), err)
	}
	locks, ok := proto.GetExtension(again, lockType()).([]*lockpb.Lock)
	if !ok {
		return nil, nil
	}
	return locks, nil
}

// checkOwner finds an option of somebody else that has the same number.
func checkOwner(options protoreflect.Message) (err error) {
	own := lockType().TypeDescriptor()
	options.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if field.Number() == own.Number() && field.FullName() != own.FullName() {
			err = fmt.Errorf("the option %s has the number %d of %s: give it another number", field.FullName(), own.Number(), own.FullName())
		}
		return err == nil
	})
	return err
}

func lockType() protoreflect.ExtensionType { return lockpb.E_Lock }

// unknownFields are the numbers of fields that this program does not know.
func unknownFields(m protoreflect.Message) []protowire.Number {
	var numbers []protowire.Number
	for rest := m.GetUnknown(); len(rest) > 0; {
		number, _, size := protowire.ConsumeField(rest)
		if size < 0 {
			break
		}
		numbers = append(numbers, number)
		rest = rest[size:]
	}
	return numbers
}
