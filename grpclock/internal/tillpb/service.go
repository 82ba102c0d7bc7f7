// Package tillpb contains a service for tests. Its .proto file declares locks of every kind.
package tillpb

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
)

//go:generate go run ../gen -roots ../../proto,.. tillpb/till.proto

// Service is the full name of the service.
const Service = "till.v1.Till"

// Answer implements every method. It answers the messages of a stream one by one.
type Answer func(ctx context.Context, method string, sale *Sale) (*Receipt, error)

// Register registers the service.
func Register(s grpc.ServiceRegistrar, answer Answer) {
	desc := &grpc.ServiceDesc{ServiceName: Service, HandlerType: (*any)(nil), Metadata: "tillpb/till.proto"}
	methods := File_tillpb_till_proto.Services().ByName("Till").Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		if m.IsStreamingClient() || m.IsStreamingServer() {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: string(m.Name()), Handler: answer.stream(m),
				ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer(),
			})
			continue
		}
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: string(m.Name()), Handler: answer.unary(string(m.Name()))})
	}
	s.RegisterService(desc, answer)
}

func (a Answer) unary(name string) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(Sale)
		if err := decode(in); err != nil {
			return nil, err
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + Service + "/" + name},
			func(ctx context.Context, req any) (any, error) {
				return a(ctx, name, req.(*Sale)) //nolint:forcetypeassert,errcheck // decoded above
			})
	}
}

func (a Answer) stream(m protoreflect.MethodDescriptor) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		last, err := a.each(m, stream)
		if err != nil || m.IsStreamingServer() {
			return err
		}
		return stream.SendMsg(last)
	}
}

// each answers every message of a stream, or the only one, and returns the last answer.
func (a Answer) each(m protoreflect.MethodDescriptor, stream grpc.ServerStream) (last *Receipt, err error) {
	for more := true; more; more = m.IsStreamingClient() {
		sale := new(Sale)
		if err := stream.RecvMsg(sale); errors.Is(err, io.EOF) {
			return last, nil
		} else if err != nil {
			return nil, err
		}
		if last, err = a(stream.Context(), string(m.Name()), sale); err != nil {
			return nil, err
		}
		if !m.IsStreamingServer() {
			continue
		}
		if err := stream.SendMsg(last); err != nil {
			return nil, err
		}
	}
	return last, nil
}
