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

// call is what Connect tells of a call, unary or streaming, and how it answers: see
// [methodcall.Call].
type call struct {
	procedure string
	address   string
	request   http.Header
	answer    func() http.Header // made when it is asked for
}

func (c *call) Method() string { return c.procedure }

// Metadata is the values of a header, binary ones decoded.
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

// Identity is the header's, which no interceptor can replace.
func (c *call) Identity() any { return reflect.ValueOf(c.request).Pointer() }

func (c *call) Error(a *methodcall.Answer) error {
	e := connect.NewError(connect.Code(a.Code), &answerError{a})
	for _, d := range a.Details {
		if detail, err := connect.NewErrorDetail(d); err == nil { // the code is worth more
			e.AddDetail(detail)
		}
	}
	return e
}

// answerError has the text for clients, and leads the server's own interceptors to the
// reason.
type answerError struct{ answer *methodcall.Answer }

func (e *answerError) Error() string { return e.answer.Message }

func (e *answerError) Unwrap() error { return e.answer.Reason }

func (c *call) Canceled(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeCanceled || code == connect.CodeDeadlineExceeded
}

// Header adds a header to the reply, or to the error in its place. It is lost when the
// headers were sent already.
func (c *call) Header(key, value string) { c.answer().Add(key, value) }

// Own forbids caches to keep the answer: a call may come as GET.
func (c *call) Own() { c.answer().Set("Cache-Control", "no-store") }

// Hint adds the header that says when to come again, in whole seconds, rounded up. The RetryInfo of
// the error is exact.
func (c *call) Hint(after time.Duration) {
	c.Header("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
}

// unaryCall is a unary call: see [methodcall.UnaryCall].
type unaryCall struct {
	call
	req  connect.AnyRequest
	next connect.UnaryFunc
}

func (c *unaryCall) Request() any { return c.req.Any() }

func (c *unaryCall) Handle(ctx context.Context) (any, error) { return c.next(ctx, c.req) }

// headerOf is where the headers of the answer to a unary call are collected.
func headerOf(ctx context.Context) http.Header {
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		return info.ResponseHeader()
	}
	return http.Header{} // no handler of Connect has called
}

// response is a reply as Connect has it: that of the handler, or a message around which
// there is none yet.
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

// message is a message of any type.
type message struct{ proto.Message }

// streamCall is a streaming call: see [methodcall.StreamCall].
type streamCall struct {
	call
	methodcall.Messages // those of conn
	conn                connect.StreamingHandlerConn
	next                connect.StreamingHandlerFunc
}

func (c *streamCall) Handle(ctx context.Context, messages methodcall.Messages) error {
	return c.Fallback(ctx, c.next, messages)
}

func (c *streamCall) Fallback(ctx context.Context, handler any, messages methodcall.Messages) error {
	run := handler.(connect.StreamingHandlerFunc) //nolint:errcheck,forcetypeassert // a handler of Connect, or of WithStreamFallback
	return run(ctx, &conn{c.conn, messages})
}

// conn is a conn with other messages.
type conn struct {
	connect.StreamingHandlerConn
	messages methodcall.Messages
}

func (c *conn) Send(m any) error { return c.messages.Send(m) }

func (c *conn) Receive(m any) error { return c.messages.Receive(m) }
