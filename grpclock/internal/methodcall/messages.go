package methodcall

import (
	"fmt"
	"reflect"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
)

// Messages sends and receives the messages of a stream. Calls of Receive do not overlap, and neither do
// calls of Send. At the end of the stream, Receive returns an error that matches [io.EOF].
type Messages interface {
	Send(m any) error
	Receive(m any) error
}

// messageOf returns a message of the library as a [proto.Message], or nil if the application's own codec
// uses another type.
func messageOf(m any) proto.Message {
	switch m := m.(type) {
	case proto.Message:
		return m
	case protoadapt.MessageV1:
		return protoadapt.MessageV2Of(m)
	default:
		return nil
	}
}

// firstMessage is the result of the first receive of a stream.
type firstMessage struct {
	message proto.Message
	err     error
	taken   atomic.Bool // the handler received it
}

// request returns the message, or nil if none was received.
func (f *firstMessage) request() proto.Message {
	if f == nil || f.err != nil {
		return nil
	}
	return f.message
}

// replayStream is a stream whose first message was already received. Its first Receive returns that
// message.
type replayStream struct {
	Messages
	first     *firstMessage
	translate func(error) error
}

// Receive returns the first message or its error, and after that the following messages.
func (s *replayStream) Receive(m any) error {
	if s.first.taken.Swap(true) {
		return s.Messages.Receive(m)
	}
	if s.first.err != nil {
		return s.first.err
	}
	return s.translate(copyMessage(m, s.first.message))
}

// copyMessage copies the content of src to dst. They may have the same message name but different Go types:
// generated and dynamic.
func copyMessage(dst, src any) error {
	to, from := messageOf(dst), messageOf(src)
	switch {
	case to == nil || from == nil:
		return copyValue(dst, src)
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

// copyValue copies the value that the pointer src points to.
func copyValue(dst, src any) error {
	to, from := reflect.ValueOf(dst), reflect.ValueOf(src)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Type() != from.Type() {
		return &methodrules.MisconfiguredError{Reason: fmt.Errorf("the handler receives into %T, the method's messages are %T", dst, src)}
	}
	to.Elem().Set(from.Elem())
	return nil
}

// newLike returns a new message of the type of m to receive into, or nil if m has no such type.
func newLike(m any) any {
	if p, ok := m.(proto.Message); ok {
		return p.ProtoReflect().New().Interface()
	}
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil
	}
	fresh := reflect.New(v.Type().Elem())
	fresh.Elem().Set(v.Elem()) // the application's own codec may need the fields that m has
	return fresh.Interface()
}
