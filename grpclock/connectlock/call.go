package connectlock

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/grpclock/internal/methodcall"
)

// call implements [methodcall.Call] for unary and streaming calls of Connect.
type call struct {
	procedure string
	address   string
	request   http.Header
	answer    func() http.Header // returns the headers of the answer
}

func (c *call) Method() string { return c.procedure }

// Metadata returns the values of a header. It decodes binary values.
func (c *call) Metadata(key string) []string {
	values := slices.Clone(c.request.Values(key))
	for i, value := range values {
		if raw, err := connect.DecodeBinaryHeader(value); err == nil && strings.HasSuffix(key, "-bin") {
			values[i] = string(raw)
		}
	}
	return values
}

func (c *call) Peer() string { return methodcall.Host(c.address) }

// Identity returns the address of the request header, which no interceptor can replace.
func (c *call) Identity() any { return reflect.ValueOf(c.request).Pointer() }

func (c *call) Error(a *methodcall.Answer) error {
	e := connect.NewError(connect.Code(a.Code), &answerError{a})
	for _, d := range a.Details {
		if detail, err := connect.NewErrorDetail(d); err == nil { // the code matters more than its details
			e.AddDetail(detail)
		}
	}
	return e
}

// answerError is the error of an answer. Its message is for clients. The interceptors of the server unwrap it to the
// reason.
type answerError struct{ answer *methodcall.Answer }

func (e *answerError) Error() string { return e.answer.Message }

func (e *answerError) Unwrap() error { return e.answer.Reason }

func (c *call) Canceled(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeCanceled || code == connect.CodeDeadlineExceeded
}

// Header adds a header to the reply or to the error. The header is lost if the headers were sent
// already.
func (c *call) Header(key, value string) { c.answer().Add(key, value) }

// Own forbids caches to keep the answer, because a call may come as GET.
func (c *call) Own() { c.answer().Set("Cache-Control", "no-store") }

// Hint adds the header Retry-After, in whole seconds, rounded up. The RetryInfo of the error is exact.
func (c *call) Hint(after time.Duration) {
	c.Header("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
}

// unaryCall implements [methodcall.UnaryCall].
type unaryCall struct {
	call
	req  connect.AnyRequest
	next connect.UnaryFunc
}

func newUnaryCall(ctx context.Context, req connect.AnyRequest, next connect.UnaryFunc) *unaryCall {
	return &unaryCall{
		call: call{req.Spec().Procedure, req.Peer().Addr, req.Header(), func() http.Header { return headerOf(ctx) }}, req: req, next: next,
	}
}

func (c *unaryCall) Request() any { return c.req.Any() }

func (c *unaryCall) Handle(ctx context.Context) (any, error) { return c.next(ctx, c.req) }

// headerOf returns the headers of the answer to a unary call.
func headerOf(ctx context.Context) http.Header {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return info.ResponseHeader()
	}
	return http.Header{} // ctx does not come from a handler of Connect
}

// response returns a reply as a response of Connect. The reply of a handler is one; a message is not.
func response(reply any, err error) (connect.AnyResponse, error) {
	switch r := reply.(type) {
	case connect.AnyResponse:
		return r, err
	case proto.Message:
		return connect.NewResponse(&message{r}), err
	default:
		return nil, err
	}
}

// message wraps a message of any type, because connect.NewResponse needs a concrete one.
type message struct{ proto.Message }

// streamCall implements [methodcall.StreamCall].
type streamCall struct {
	call
	methodcall.Messages // the messages of conn
	conn                connect.StreamingHandlerConn
	next                connect.StreamingHandlerFunc
}

func (c *streamCall) Handle(ctx context.Context, messages methodcall.Messages) error {
	return c.Fallback(ctx, c.next, messages)
}

// SharesWindow returns true, because Connect reads a message only when it is received.
func (c *streamCall) SharesWindow() bool { return true }

func (c *streamCall) Fallback(ctx context.Context, handler any, messages methodcall.Messages) error {
	run := handler.(connect.StreamingHandlerFunc) //nolint:errcheck,forcetypeassert // a handler of Connect, or of WithStreamFallback
	return run(ctx, &conn{c.conn, messages})
}

// conn is a connection with other messages.
type conn struct {
	connect.StreamingHandlerConn
	messages methodcall.Messages
}

func (c *conn) Send(m any) error { return c.messages.Send(m) }

func (c *conn) Receive(m any) error { return c.messages.Receive(m) }
