package methodrules

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/protovars"
)

// Key identifies a method. Callers of one path may see the method in several shapes.
type Key struct {
	Path  string
	Shape Shape
}

// Shape reports which sides of a method stream, according to its registration.
type Shape struct {
	Client, Server bool
	unregistered   bool // a handler of unknown services serves the method, so its shape is not known
}

// Unregistered returns the shape of methods that are not registered.
func Unregistered() Shape { return Shape{Client: true, Server: true, unregistered: true} }

// shapeOf returns the shape of a method according to its descriptor.
func shapeOf(d protoreflect.MethodDescriptor) Shape {
	return Shape{Client: d.IsStreamingClient(), Server: d.IsStreamingServer()}
}

func (s Shape) unary() bool { return !s.Client && !s.Server }

// replies reports whether the method ends with exactly one reply.
func (s Shape) replies() bool { return !s.Server }

// String returns the name of the shape, for example "client-streaming".
func (s Shape) String() string {
	switch s {
	case Shape{}:
		return "unary"
	case Unregistered():
		return "not registered"
	case Shape{Client: true}:
		return "client-streaming"
	case Shape{Server: true}:
		return "server-streaming"
	default:
		return "bidirectional"
	}
}

// Request is the name of the message in expressions.
const Request = "req"

// Method holds the data that calls of a method need besides its rules. It is immutable.
type Method struct {
	Variables *protovars.Variables
	Reads     bool // a rule in force reads the message

	shape      Shape
	descriptor protoreflect.MethodDescriptor // nil if it is not known
	responses  []proto.Message               // the response of each rule; nil for a rule without one
}

// callerShape returns the shape that callers see, which is the shape of the descriptor if there is one. A
// proxy may have registered the method as streams, or not at all.
func (m *Method) callerShape() Shape {
	if m.descriptor != nil {
		return shapeOf(m.descriptor)
	}
	return m.shape
}

// Replies reports whether callers expect exactly one reply.
func (m *Method) Replies() bool { return m.callerShape().replies() }

// Described reports whether the descriptor of the method is known.
func (m *Method) Described() bool { return m.descriptor != nil }

// NewRequest returns an empty message of the input type of the method, which must be described.
func (m *Method) NewRequest() proto.Message { return newMessage(m.descriptor.Input()) }

// Reply returns the reply to a caller whose handler did not run: the response of the rule that
// decided, or an empty message.
func (m *Method) Reply(o *aspect.Outcome) proto.Message {
	if response := m.responses[o.Index]; response != nil && o.Reply.Body {
		return proto.Clone(response)
	}
	return newMessage(m.descriptor.Output())
}

// newMessage returns an empty message of the generated type if the program contains it, otherwise a
// dynamic one. Both are the same on the wire.
func newMessage(d protoreflect.MessageDescriptor) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil || t.Descriptor() != d {
		return dynamicpb.NewMessage(d)
	}
	return t.New().Interface()
}

// MisconfiguredError means that a method is misconfigured, or that a call shows such a mistake. The program
// is at fault; clients do not see the reason.
type MisconfiguredError struct{ Reason error }

// Error returns the message of the reason.
func (e *MisconfiguredError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *MisconfiguredError) Unwrap() error { return e.Reason }
