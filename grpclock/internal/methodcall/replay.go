package methodcall

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// firstMessage is what the first receive of a stream gave.
type firstMessage struct {
	message proto.Message
	err     error
	taken   atomic.Bool // by the handler
}

// received is the message, nil if there is none.
func (f *firstMessage) received() proto.Message {
	if f == nil || f.err != nil {
		return nil
	}
	return f.message
}

// replayStream gives the first message again.
type replayStream struct {
	Messages
	first  *firstMessage
	worded func(error) error
}

// Receive gives the first message, or the error in its place, then what follows.
func (s *replayStream) Receive(m any) error {
	if s.first.taken.Swap(true) {
		return s.Messages.Receive(m)
	}
	if s.first.err != nil {
		return s.first.err
	}
	return s.worded(assign(m, s.first.message))
}

// assign gives dst the content of src, which it does not share. Both may be
// messages of one name and of different Go types: generated and dynamic.
func assign(dst, src any) error {
	to, from := messageOf(dst), messageOf(src)
	switch {
	case to == nil || from == nil:
		return assignValue(dst, src)
	case to.ProtoReflect().Descriptor() == from.ProtoReflect().Descriptor():
		proto.Reset(to)
		proto.Merge(to, from)
		return nil
	default:
		wire, err := proto.Marshal(from)
		if err != nil {
			return &methodrules.MisconfiguredError{Reason: fmt.Errorf("replay of the first message: %w", err)}
		}
		if err := proto.Unmarshal(wire, to); err != nil {
			return &methodrules.MisconfiguredError{Reason: fmt.Errorf("replay of the first message: %w", err)}
		}
		return nil
	}
}

// assignValue copies what the pointer src points to.
func assignValue(dst, src any) error {
	to, from := reflect.ValueOf(dst), reflect.ValueOf(src)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Type() != from.Type() {
		return &methodrules.MisconfiguredError{Reason: fmt.Errorf("the handler receives into %T, the method's messages are %T", dst, src)}
	}
	to.Elem().Set(from.Elem())
	return nil
}

// twin makes a message of the same type as m to receive into, nil if that cannot
// be done.
func twin(m any) any {
	if p, ok := m.(proto.Message); ok {
		return p.ProtoReflect().New().Interface()
	}
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	fresh := reflect.New(v.Type().Elem())
	fresh.Elem().Set(v.Elem()) // what a codec of its own expects to be set
	return fresh.Interface()
}
