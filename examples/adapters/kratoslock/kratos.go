package kratoslock

import (
	"context"
	"errors"
	"strconv"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	kstatus "github.com/go-kratos/kratos/v2/transport/http/status"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

// Middleware runs the operations of a kratos server, HTTP or gRPC, under their rules. A rule names an operation as a gRPC
// method, and the variable req of its key is the message that the handler gets, whichever transport it came from.
func Middleware(guard *grpclock.Guard) middleware.Middleware {
	intercept := guard.UnaryServerInterceptor()
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (any, error) {
			tr, ok := transport.FromServerContext(ctx)
			if !ok {
				return nil, kerrors.InternalServer(failpolicy.ReasonMisconfigured, "the lock of this method is misconfigured") // the guard cannot know the operation
			}
			info := &grpc.UnaryServerInfo{FullMethod: tr.Operation()}
			if tr.Kind() != transport.KindHTTP {
				return intercept(ctx, req, info, grpc.UnaryHandler(next))
			}
			reply, err := intercept(asGRPC(ctx, tr), req, info, grpc.UnaryHandler(next))
			return reply, asHTTP(err, tr.ReplyHeader())
		}
	}
}

// Files contains the services that only an HTTP server serves, for [grpclock.Guard.Check].
type Files []protoreflect.FileDescriptor

// GetServiceInfo implements [grpclock.Server].
func (f Files) GetServiceInfo() map[string]grpc.ServiceInfo {
	services := map[string]grpc.ServiceInfo{}
	for _, file := range f {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			var info grpc.ServiceInfo
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				if !m.IsStreamingClient() && !m.IsStreamingServer() { // kratos serves no stream over HTTP
					info.Methods = append(info.Methods, grpc.MethodInfo{Name: string(m.Name())})
				}
			}
			services[string(service.FullName())] = info
		}
	}
	return services
}

// asGRPC returns the context that a call over gRPC would have: with metadata, the address of the client, and a stream
// whose header is the header of the HTTP answer.
func asGRPC(ctx context.Context, tr transport.Transporter) context.Context {
	if s, ok := grpc.ServerTransportStreamFromContext(ctx).(*stream); ok && s.Transporter == tr {
		return ctx // the middleware is installed twice
	}
	md := metadata.MD{}
	for _, key := range tr.RequestHeader().Keys() {
		md.Append(key, tr.RequestHeader().Values(key)...)
	}
	if r, ok := khttp.RequestFromServerContext(ctx); ok {
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: address(r.RemoteAddr)})
	}
	return grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(ctx, md), &stream{tr})
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// stream implements [grpc.ServerTransportStream] for an HTTP request.
type stream struct{ transport.Transporter }

func (s *stream) Method() string { return s.Operation() }

// SetHeader adds to the header of the answer. No cache may keep an answer that was given instead of the handler's.
func (s *stream) SetHeader(md metadata.MD) error {
	for key, values := range md {
		for _, value := range values {
			s.ReplyHeader().Add(key, value)
		}
	}
	if len(md.Get(failpolicy.StatusHeader)) > 0 {
		s.ReplyHeader().Set("Cache-Control", "no-store")
	}
	return nil
}

func (s *stream) SendHeader(md metadata.MD) error { return s.SetHeader(md) }

func (s *stream) SetTrailer(metadata.MD) error { return nil } // asHTTP sends Retry-After

// asHTTP returns the error of a refusal with the status and the reason of its cause. Other errors stay as they are.
func asHTTP(err error, header transport.Header) error {
	refused := refusalOf(err)
	if refused == nil {
		return err
	}
	code, reason := refused.Status.HTTP, refused.Cause.Reason()
	if code == 0 {
		code = kstatus.ClientClosed
	}
	if refused.Misconfigured {
		reason = failpolicy.ReasonMisconfigured
	}
	if after := refused.RetryAfter; after > 0 {
		header.Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	}
	header.Set("Cache-Control", "no-store")
	return kerrors.New(code, reason, refused.Message).WithCause(err)
}

// refusalOf returns the refusal if err is an answer of the guard. An error of a handler may wrap another refusal.
func refusalOf(err error) *aspect.RefusedError {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == failpolicy.Domain {
			refused, _ := errors.AsType[*aspect.RefusedError](err)
			return refused
		}
	}
	return nil
}
