package grpclock

import (
	"google.golang.org/grpc"
)

// shape says which sides of a method stream.
type shape struct {
	client, server bool
}

func (s shape) unary() bool { return !s.client && !s.server }

// replies reports whether the method ends with exactly one reply.
func (s shape) replies() bool { return !s.server }

func (s shape) String() string {
	switch s {
	case shape{}:
		return "unary"
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
