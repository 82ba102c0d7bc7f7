package methodrules

import "google.golang.org/protobuf/reflect/protoreflect"

// Shape says which sides of a method stream, as it is registered.
type Shape struct {
	Client, Server bool
	unregistered   bool // served by a handler of unknown services: nobody says
}

// Unregistered is the shape of methods that are not registered.
func Unregistered() Shape { return Shape{Client: true, Server: true, unregistered: true} }

// shapeOf is the shape that a descriptor gives a method.
func shapeOf(d protoreflect.MethodDescriptor) Shape {
	return Shape{Client: d.IsStreamingClient(), Server: d.IsStreamingServer()}
}

func (s Shape) unary() bool { return !s.Client && !s.Server }

// replies reports whether the method ends with exactly one reply.
func (s Shape) replies() bool { return !s.Server }

// String is the word for it.
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
