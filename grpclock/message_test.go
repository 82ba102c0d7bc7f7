package grpclock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// A codec of the application may decode a request into a type that is not a message. A condition over its
// fields then fails. If it read the fields as missing, the handler could run without its lock.
func TestMessages_RequestOfOtherCodec(t *testing.T) {
	t.Parallel()
	requests := map[string]any{"bytes": []byte("x"), "another message": shoppb.PayReply_builder{Receipt: "x"}.Build(), "nothing": nil}
	for name, req := range requests {
		for _, change := range []func(*ruleset.Rule){
			func(r *ruleset.Rule) { r.When = `req.order_id != ""` },
			func(r *ruleset.Rule) { r.Key = `order:#{req.order_id ?? "none"}` },
			func(r *ruleset.Rule) { r.OnKey = failpolicy.Proceed },
		} {
			b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", change)))
			info := &grpc.UnaryServerInfo{FullMethod: path("Pay")}
			_, err := b.guard.UnaryServerInterceptor()(t.Context(), req, info, func(context.Context, any) (any, error) {
				t.Errorf("%s: the handler ran", name)
				return nil, nil
			})
			if status.Code(err) != codes.Internal {
				t.Errorf("%s: got %v, want INTERNAL", name, err)
			}
		}
	}
}

// loadService returns the test service like a service whose file was loaded at run time. pkg replaces its
// package. The service is not registered globally.
func loadService(t *testing.T, pkg string) (*protoregistry.Files, protoreflect.ServiceDescriptor) {
	t.Helper()
	raw := protodesc.ToFileDescriptorProto(shoppb.File_shoppb_shop_proto)
	raw.Package = new(pkg)
	for _, m := range raw.GetService()[0].GetMethod() {
		m.InputType, m.OutputType = new("."+pkg+".PayRequest"), new("."+pkg+".PayReply")
	}
	file, err := protodesc.NewFile(raw, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(file); err != nil {
		t.Fatal(err)
	}
	return files, file.Services().Get(0)
}

// dynamicServer serves Pay and Chat of a service with dynamic messages.
func dynamicServer(guard *grpclock.Guard, service protoreflect.ServiceDescriptor) *grpc.Server {
	in, out := service.Methods().Get(0).Input(), service.Methods().Get(0).Output()
	answer := func(req proto.Message) proto.Message {
		m := dynamicpb.NewMessage(out)
		id := req.ProtoReflect().Get(in.Fields().ByName("order_id")).String()
		m.Set(out.Fields().ByName("receipt"), protoreflect.ValueOfString("dynamic "+id))
		return m
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(guard.UnaryServerInterceptor()), grpc.StreamInterceptor(guard.StreamServerInterceptor()))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: string(service.FullName()), HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Pay", Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			req := dynamicpb.NewMessage(in)
			if err := decode(req); err != nil {
				return nil, err
			}
			return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + string(service.FullName()) + "/Pay"},
				func(_ context.Context, req any) (any, error) { return answer(req.(proto.Message)), nil })
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Chat", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				req := dynamicpb.NewMessage(in)
				if err := stream.RecvMsg(req); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := stream.SendMsg(answer(req)); err != nil {
					return err
				}
			}
		}}},
	}, nil)
	return s
}

func TestMessages_DynamicService(t *testing.T) {
	t.Parallel()
	files, service := loadService(t, "late.v1")
	at := func(method string) ruleset.Rule {
		return rule("", func(r *ruleset.Rule) {
			r.Endpoint = ruleset.GRPC("/late.v1.Orders/" + method)
			r.OnBusy, r.Response = failpolicy.NullResponse, map[string]string{"Pay": `{"receipt":"none"}`}[method]
		})
	}
	b := prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithRules(at("Pay"), at("Chat")))
	b.server = dynamicServer(b.guard, service)
	if err := b.guard.Check(b.server); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.redis.Take("order:taken", time.Minute)
	for id, want := range map[string]string{"1": "dynamic 1", "taken": "none"} {
		got := new(shoppb.PayReply)
		if err := b.conn.Invoke(t.Context(), "/late.v1.Orders/Pay", order(id), got); err != nil || got.GetReceipt() != want {
			t.Errorf("Pay %s: got %q, %v; want %q", id, got.GetReceipt(), err, want)
		}
	}
	s, err := b.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/late.v1.Orders/Chat")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"2", "3"} {
		got := new(shoppb.PayReply)
		if err := errors.Join(s.SendMsg(order(id)), s.RecvMsg(got)); err != nil || got.GetReceipt() != "dynamic "+id {
			t.Errorf("Chat %s: got %q, %v", id, got.GetReceipt(), err)
		}
	}
}

func TestMessages_ReplayIntoDynamicMessage(t *testing.T) {
	t.Parallel()
	_, again := loadService(t, "shop.v1") // another descriptor of the same messages
	for name, service := range map[string]protoreflect.ServiceDescriptor{
		"same descriptor":    shoppb.File_shoppb_shop_proto.Services().Get(0),
		"another descriptor": again,
	} {
		b := prepare(t, &shop{}, grpclock.WithRules(rule("Chat")))
		b.server = dynamicServer(b.guard, service)
		b.serve()
		if got := b.call(t.Context(), "Chat", "1", "2"); got.err != nil || len(got.replies) != 2 || got.replies[0] != "dynamic 1" || got.replies[1] != "dynamic 2" {
			t.Errorf("%s: got %q, %v", name, got.replies, got.err)
		}
	}
}

// openService is a service whose messages were generated with the open API.
type openService struct {
	grpc_testing.UnimplementedTestServiceServer
}

func (openService) UnaryCall(_ context.Context, req *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	return &grpc_testing.SimpleResponse{Username: req.GetResponseStatus().GetMessage()}, nil
}

func TestMessages_OpenAPI(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{},
		grpclock.WithFallback("echo", openService{}.UnaryCall),
		grpclock.WithRules(ruleset.Rule{
			Endpoint: ruleset.GRPC(grpc_testing.TestService_UnaryCall_FullMethodName),
			Key:      "job:#{req.response_status.message}", WaitTime: ruleset.NoWait, OnBusy: failpolicy.Fallback, Fallback: "echo",
		}))
	b.server = grpc.NewServer(grpc.UnaryInterceptor(b.guard.UnaryServerInterceptor()))
	grpc_testing.RegisterTestServiceServer(b.server, openService{})
	if err := b.guard.Check(b.server); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.redis.Take("job:b", time.Minute)
	client := grpc_testing.NewTestServiceClient(b.conn)
	for _, message := range []string{"a", "b"} {
		got, err := client.UnaryCall(t.Context(), &grpc_testing.SimpleRequest{ResponseStatus: &grpc_testing.EchoStatus{Message: message}})
		if err != nil || got.GetUsername() != message {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if _, err := client.UnaryCall(t.Context(), &grpc_testing.SimpleRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v for an unset message, want INVALID_ARGUMENT", err)
	}
}
