package methodrules

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/grpclock/internal/protovars"
)

// Request is the name of the message in expressions.
const Request = "req"

// Method is what a method has beside its rules. It never changes.
type Method struct {
	Variables *protovars.Variables
	Reads     bool // a rule in force reads the message

	shape      Shape
	descriptor protoreflect.MethodDescriptor // nil if it is not known
	responses  []proto.Message               // per rule, nil without one
}

// called is the shape that callers give to the method: that of its descriptor. A proxy
// may have registered it as streams, or not at all.
func (m *Method) called() Shape {
	if m.descriptor != nil {
		return shapeOf(m.descriptor)
	}
	return m.shape
}

// Replies reports whether callers expect exactly one reply.
func (m *Method) Replies() bool { return m.called().replies() }

// NewRequest is an empty message of the method's input type; its rules read it.
func (m *Method) NewRequest() proto.Message { return NewMessage(m.descriptor.Input()) }

// Reply is what a caller gets whose handler did not run: the response of the rule that decided, or
// an empty message.
func (m *Method) Reply(o *aspect.Outcome) proto.Message {
	if response := m.responses[o.Index]; response != nil && o.Reply.Body {
		return proto.Clone(response)
	}
	return NewMessage(m.descriptor.Output())
}
