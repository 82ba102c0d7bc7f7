package protorules

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/grpclock/lockpb"
)

// locksOf returns the lock options in options. It marshals and parses options again, because options may contain the locks
// as unknown fields or as messages of a dynamic type.
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

// checkOwner returns an error if options contains another option with the number of the lock option.
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

// unknownFields returns the numbers of the fields in m that the generated code of this program does not contain.
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

// fullMethod returns the name that m has in calls and in rules, such as "/shop.v1.Orders/Pay".
func fullMethod(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}
