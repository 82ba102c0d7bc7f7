package shoppb

import (
	"context"

	"google.golang.org/grpc"
)

// OrdersClient calls the service.
type OrdersClient struct {
	Conn grpc.ClientConnInterface
}

// Pay is unary.
func (c OrdersClient) Pay(ctx context.Context, req *PayRequest, opts ...grpc.CallOption) (*PayReply, error) {
	return c.unary(ctx, "Pay", req, opts)
}

// Free is unary and meant to have no rule.
func (c OrdersClient) Free(ctx context.Context, req *PayRequest, opts ...grpc.CallOption) (*PayReply, error) {
	return c.unary(ctx, "Free", req, opts)
}

// Track is server-streaming.
func (c OrdersClient) Track(ctx context.Context, req *PayRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[PayReply], error) {
	s, err := c.stream(ctx, &grpc.StreamDesc{StreamName: "Track", ServerStreams: true}, opts)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(req); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

// Import is client-streaming.
func (c OrdersClient) Import(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStreamingClient[PayRequest, PayReply], error) {
	return c.stream(ctx, &grpc.StreamDesc{StreamName: "Import", ClientStreams: true}, opts)
}

// Chat is bidirectional.
func (c OrdersClient) Chat(ctx context.Context, opts ...grpc.CallOption) (grpc.BidiStreamingClient[PayRequest, PayReply], error) {
	return c.stream(ctx, &grpc.StreamDesc{StreamName: "Chat", ClientStreams: true, ServerStreams: true}, opts)
}

func (c OrdersClient) unary(ctx context.Context, name string, req *PayRequest, opts []grpc.CallOption) (*PayReply, error) {
	reply := new(PayReply)
	if err := c.Conn.Invoke(ctx, "/shop.v1.Orders/"+name, req, reply, opts...); err != nil {
		return nil, err
	}
	return reply, nil
}

func (c OrdersClient) stream(ctx context.Context, d *grpc.StreamDesc, opts []grpc.CallOption) (*grpc.GenericClientStream[PayRequest, PayReply], error) {
	s, err := c.Conn.NewStream(ctx, d, "/shop.v1.Orders/"+d.StreamName, opts...)
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[PayRequest, PayReply]{ClientStream: s}, nil
}
