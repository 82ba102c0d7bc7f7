package grpclock

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// call implements [methodcall.Call] for unary and streaming calls of gRPC.
type call struct {
	ctx    context.Context //nolint:containedctx // lives as long as the call
	method string

	searched bool        // Metadata was called before
	metadata metadata.MD // all metadata, from the second call of Metadata on
}

func (c *call) Method() string { return c.method }

// Own does nothing, because caches do not store answers of gRPC.
func (c *call) Own() {}

// Metadata returns the values of a key. The first call searches the metadata for the key. Later calls use
// a copy of all metadata, so that a request with much metadata is not searched again and again.
func (c *call) Metadata(key string) []string {
	if !c.searched {
		c.searched = true
		return metadata.ValueFromIncomingContext(c.ctx, key)
	}
	if c.metadata == nil {
		c.metadata = metadata.MD{}
		if md, ok := metadata.FromIncomingContext(c.ctx); ok {
			c.metadata = md
		}
	}
	return c.metadata[key]
}

func (c *call) Peer() string {
	p, ok := peer.FromContext(c.ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	return methodcall.Host(p.Addr.String())
}

func (c *call) Identity() any { return grpc.ServerTransportStreamFromContext(c.ctx) }

func (c *call) Error(a *methodcall.Answer) error {
	return &statusError{status: statusOf(a), reason: a.Reason}
}

func (c *call) Canceled(err error) bool {
	code := status.Code(err)
	return code == codes.Canceled || code == codes.DeadlineExceeded
}

// trailerPushback is a trailer with the milliseconds to wait before the next attempt. Clients with a
// retry policy obey it.
const trailerPushback = "grpc-retry-pushback-ms"

// statusOf returns the status of an answer. If the details cannot be added, it returns the status without
// them.
func statusOf(a *methodcall.Answer) *status.Status {
	bare := status.New(codes.Code(a.Code), a.Message)
	details := make([]protoadapt.MessageV1, len(a.Details))
	for i, d := range a.Details {
		details[i] = protoadapt.MessageV1Of(d)
	}
	if with, err := bare.WithDetails(details...); err == nil {
		return with
	}
	return bare
}

// statusError is the error of an answer. Its message and the client's status do not contain the reason. The
// interceptors of the server unwrap it to the reason.
type statusError struct {
	status *status.Status
	reason error
}

func (e *statusError) Error() string              { return e.status.Err().Error() }
func (e *statusError) GRPCStatus() *status.Status { return e.status }
func (e *statusError) Unwrap() error              { return e.reason }

// pushback returns the trailer that asks clients to retry after a time.
func pushback(after time.Duration) metadata.MD {
	return metadata.Pairs(trailerPushback, strconv.FormatInt(after.Milliseconds(), 10))
}

// unaryCall implements [methodcall.UnaryCall].
type unaryCall struct {
	call
	req     any
	handler grpc.UnaryHandler
}

func (c *unaryCall) Request() any { return c.req }

func (c *unaryCall) Handle(ctx context.Context) (any, error) { return c.handler(ctx, c.req) }

// Header adds to the header. It fails only if the header was sent already.
func (c *unaryCall) Header(key, value string) {
	_ = grpc.SetHeader(c.ctx, metadata.Pairs(key, value)) //nolint:errcheck // the answer matters more
}

func (c *unaryCall) Hint(after time.Duration) {
	_ = grpc.SetTrailer(c.ctx, pushback(after)) //nolint:errcheck // the answer matters more
}

// streamCall implements [methodcall.StreamCall].
type streamCall struct {
	call
	srv     any
	stream  grpc.ServerStream
	handler grpc.StreamHandler
}

func (c *streamCall) Send(m any) error { return c.stream.SendMsg(m) }

func (c *streamCall) Receive(m any) error { return c.stream.RecvMsg(m) }

func (c *streamCall) Handle(ctx context.Context, messages methodcall.Messages) error {
	return c.Fallback(ctx, c.handler, messages)
}

// SharesWindow returns false, because grpc-go gives the window of a connection back as messages arrive, and limits the
// window of each stream.
func (c *streamCall) SharesWindow() bool { return false }

func (c *streamCall) Fallback(ctx context.Context, handler any, messages methodcall.Messages) error {
	run := handler.(grpc.StreamHandler) //nolint:errcheck,forcetypeassert // a handler of gRPC, or of WithStreamFallback
	return run(c.srv, &serverStream{ServerStream: c.stream, ctx: ctx, messages: messages})
}

// Header adds to the header. It fails only if the header was sent already.
func (c *streamCall) Header(key, value string) {
	_ = c.stream.SetHeader(metadata.Pairs(key, value)) //nolint:errcheck // the answer matters more
}

func (c *streamCall) Hint(after time.Duration) { c.stream.SetTrailer(pushback(after)) }

// serverStream is a stream with another context and other messages.
type serverStream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // Context returns it
	messages methodcall.Messages
}

func (s *serverStream) Context() context.Context { return s.ctx }

func (s *serverStream) SendMsg(m any) error { return s.messages.Send(m) }

func (s *serverStream) RecvMsg(m any) error { return s.messages.Receive(m) }
