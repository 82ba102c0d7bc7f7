// Package shoppb is a service with a method of each shape, for tests and examples.
// Its messages have the opaque API.
package shoppb

import (
	"context"

	"google.golang.org/grpc"
)

//go:generate go run ../gen -roots .. shoppb/shop.proto

// TrackStream is what Track sends to.
type TrackStream = grpc.ServerStreamingServer[PayReply]

// ImportStream is what Import receives from.
type ImportStream = grpc.ClientStreamingServer[PayRequest, PayReply]

// ChatStream is both sides of Chat.
type ChatStream = grpc.BidiStreamingServer[PayRequest, PayReply]

// OrdersServer is the service.
type OrdersServer interface {
	Pay(ctx context.Context, req *PayRequest) (*PayReply, error)
	Track(req *PayRequest, stream TrackStream) error
	Import(stream ImportStream) error
	Chat(stream ChatStream) error
	Free(ctx context.Context, req *PayRequest) (*PayReply, error)
}

// RegisterOrdersServer registers an implementation.
func RegisterOrdersServer(s grpc.ServiceRegistrar, orders OrdersServer) {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "shop.v1.Orders",
		HandlerType: (*OrdersServer)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Pay", Handler: unary("Pay", OrdersServer.Pay)},
			{MethodName: "Free", Handler: unary("Free", OrdersServer.Free)},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Track", Handler: track, ServerStreams: true},
			{StreamName: "Import", Handler: importAll, ClientStreams: true},
			{StreamName: "Chat", Handler: chat, ClientStreams: true, ServerStreams: true},
		},
		Metadata: "shoppb/shop.proto",
	}, orders)
}

func unary(name string, method func(OrdersServer, context.Context, *PayRequest) (*PayReply, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(PayRequest)
		if err := decode(in); err != nil {
			return nil, err
		}
		orders := srv.(OrdersServer) //nolint:forcetypeassert,errcheck // registration has checked it
		handler := func(ctx context.Context, req any) (any, error) {
			return method(orders, ctx, req.(*PayRequest)) //nolint:forcetypeassert,errcheck // decoded above
		}
		if interceptor == nil {
			return handler(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/shop.v1.Orders/" + name}, handler)
	}
}

func track(srv any, stream grpc.ServerStream) error {
	in := new(PayRequest)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	return srv.(OrdersServer).Track(in, &grpc.GenericServerStream[PayRequest, PayReply]{ServerStream: stream}) //nolint:forcetypeassert,errcheck // as above
}

func importAll(srv any, stream grpc.ServerStream) error {
	return srv.(OrdersServer).Import(&grpc.GenericServerStream[PayRequest, PayReply]{ServerStream: stream}) //nolint:forcetypeassert,errcheck // as above
}

func chat(srv any, stream grpc.ServerStream) error {
	return srv.(OrdersServer).Chat(&grpc.GenericServerStream[PayRequest, PayReply]{ServerStream: stream}) //nolint:forcetypeassert,errcheck // as above
}
