package grpclock

import (
	"google.golang.org/grpc"
)

// shape says which sides of a method stream, as it is registered.
type shape struct {
	client, server bool
	unregistered   bool // served by a handler of unknown services: nobody says
}

// unregistered is the shape of methods that are not registered.
func unregistered() shape { return shape{client: true, server: true, unregistered: true} }

func (s shape) unary() bool { return !s.client && !s.server }

// replies reports whether the method ends with exactly one reply.
func (s shape) replies() bool { return !s.server }

func (s shape) String() string {
	switch s {
	case shape{}:
		return "unary"
	case unregistered():
		return "not registered"
	case shape{client: true}:
		return "client-streaming"
	case shape{server: true}:
		return "server-streaming"
	default:
		return "bidirectional"
	}
}

func shapeOf(info *grpc.StreamServerInfo) shape {
	return shape{client: info.IsClientStream, server: info.IsServerStream}
}
