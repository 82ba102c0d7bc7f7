package connectlock_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// The kinds of messages of the service, and of streams.
type (
	request      = shoppb.PayRequest
	receipt      = shoppb.PayReply
	trackStream  = connect.ServerStream[receipt]
	importStream = connect.ClientStream[request]
	chatStream   = connect.BidiStream[request, receipt]
)

const service = "shop.v1.Orders"

// kinds are the shapes of a call, by the method that has the shape.
var kinds = []string{"Pay", "Track", "Import", "Chat"}

// protocols are the protocols that clients of a Connect handler may speak.
var protocols = map[string][]connect.ClientOption{
	"connect": nil, "grpc": {connect.WithGRPC()}, "grpcweb": {connect.WithGRPCWeb()},
}

func path(method string) string { return "/" + service + "/" + method }

// rule returns a rule for a method, with the order of the request as the key.
func rule(method string, more ...func(*ruleset.Rule)) ruleset.Rule {
	r := ruleset.Rule{Endpoint: ruleset.GRPC(path(method)), Key: "order:#{req.order_id}", WaitTime: ruleset.NoWait}
	for _, change := range more {
		change(&r)
	}
	return r
}

func reply(text string) *receipt { return shoppb.PayReply_builder{Receipt: text}.Build() }

func order(id string) *request { return shoppb.PayRequest_builder{OrderId: id}.Build() }

// shop is the service under test. It counts its calls. A handler that is not set answers with a receipt.
type shop struct {
	ran       atomic.Int32
	pay       func(ctx context.Context, req *request) (*receipt, error)
	track     func(ctx context.Context, req *request, stream *trackStream) error
	importAll func(ctx context.Context, stream *importStream) (*receipt, error)
	chat      func(ctx context.Context, stream *chatStream) error
}

// uniformShop returns a shop whose handlers all call do and then answer.
func uniformShop(do func(ctx context.Context) error) *shop {
	return &shop{
		pay:       func(ctx context.Context, _ *request) (*receipt, error) { return reply("done"), do(ctx) },
		track:     func(ctx context.Context, _ *request, _ *trackStream) error { return do(ctx) },
		importAll: func(ctx context.Context, _ *importStream) (*receipt, error) { return reply("done"), do(ctx) },
		chat:      func(ctx context.Context, _ *chatStream) error { return do(ctx) },
	}
}

// handler serves the shop as generated code does.
func (s *shop) handler(opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path("Pay"), connect.NewUnaryHandlerSimple(path("Pay"), s.servePay, opts...))
	mux.Handle(path("Free"), connect.NewUnaryHandlerSimple(path("Free"), s.servePay, opts...))
	mux.Handle(path("Track"), connect.NewServerStreamHandlerSimple(path("Track"), s.serveTrack, opts...))
	mux.Handle(path("Import"), connect.NewClientStreamHandlerSimple(path("Import"), s.serveImport, opts...))
	mux.Handle(path("Chat"), connect.NewBidiStreamHandler(path("Chat"), s.serveChat, opts...))
	return mux
}

func (s *shop) servePay(ctx context.Context, req *request) (*receipt, error) {
	s.ran.Add(1)
	if s.pay != nil {
		return s.pay(ctx, req)
	}
	return reply("paid " + req.GetOrderId()), nil
}

func (s *shop) serveTrack(ctx context.Context, req *request, stream *trackStream) error {
	s.ran.Add(1)
	if s.track != nil {
		return s.track(ctx, req, stream)
	}
	return errors.Join(stream.Send(reply("packed "+req.GetOrderId())), stream.Send(reply("sent "+req.GetOrderId())))
}

func (s *shop) serveImport(ctx context.Context, stream *importStream) (*receipt, error) {
	s.ran.Add(1)
	if s.importAll != nil {
		return s.importAll(ctx, stream)
	}
	var ids []string
	for stream.Receive() {
		ids = append(ids, stream.Msg().GetOrderId())
	}
	return reply("imported " + strings.Join(ids, ",")), stream.Err()
}

func (s *shop) serveChat(ctx context.Context, stream *chatStream) error {
	s.ran.Add(1)
	if s.chat != nil {
		return s.chat(ctx, stream)
	}
	for {
		req, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(reply("re " + req.GetOrderId())); err != nil {
			return err
		}
	}
}

// bench is a shop behind a guard, with a server and a Redis.
type bench struct {
	t      testing.TB
	redis  *redistest.Server
	locks  *core.Client
	guard  *connectlock.Guard
	shop   *shop
	server *httptest.Server
	stop   func() // stops the server and the lock client; also called at the end of the test
}

// patient is the backend timeout of most tests.
const patient = 10 * time.Second

// prepare returns a bench that is neither checked nor served yet.
func prepare(t testing.TB, timeout time.Duration, s *shop, opts ...any) *bench {
	t.Helper()
	b := &bench{t: t, redis: redistest.New(t), shop: s}
	client, own := splitOptions(opts)
	var err error
	b.locks, err = core.New(b.redis.Client(), append(client, core.WithWatchdog(3*time.Second), core.WithBackendTimeout(timeout))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.locks.Close(context.Background()) })
	if b.guard, err = connectlock.New(b.locks, own...); err != nil {
		t.Fatal(err)
	}
	s.handler(connect.WithInterceptors(b.guard.Interceptor())) // for Check; serve creates another one
	return b
}

// setup starts a bench whose guard passes its check.
func setup(t testing.TB, s *shop, opts ...any) *bench {
	t.Helper()
	b := prepare(t, patient, s, opts...)
	b.check()
	b.serve(b.guard.Interceptor())
	return b
}

func (b *bench) check() {
	b.t.Helper()
	if err := b.guard.Check(service); err != nil {
		b.t.Fatal(err)
	}
}

// serve serves the shop behind interceptors, over HTTP/2 and HTTP/1.1.
func (b *bench) serve(interceptors ...connect.Interceptor) {
	b.serveHandler(b.shop.handler(connect.WithInterceptors(interceptors...)))
}

func (b *bench) serveHandler(h http.Handler) {
	b.server = httptest.NewUnstartedServer(h)
	b.server.EnableHTTP2 = true
	b.server.StartTLS()
	b.stop = sync.OnceFunc(func() {
		b.server.CloseClientConnections()
		b.server.Close()
		_ = b.locks.Close(context.Background())
	})
	b.t.Cleanup(b.stop)
}

// client returns a client for a method of the shop in a protocol.
func (b *bench) client(protocol, method string) *connect.Client[request, receipt] {
	return connect.NewClient[request, receipt](b.server.Client(), b.server.URL+path(method), protocols[protocol]...)
}

// chat begins a bidirectional call.
func (b *bench) chat(ctx context.Context, protocol string, headers ...string) *connect.BidiStreamForClient[request, receipt] {
	b.t.Helper()
	s := b.client(protocol, "Chat").CallBidiStream(ctx)
	setHeaders(s.RequestHeader(), headers)
	if err := s.Send(nil); err != nil { // the headers
		b.t.Fatal(err)
	}
	return s
}

func setHeaders(h http.Header, pairs []string) {
	for pair := range slices.Chunk(pairs, 2) {
		h.Add(pair[0], pair[1])
	}
}

// held reports whether any holder has the lock.
func (b *bench) held(name string) bool {
	b.t.Helper()
	state, err := b.locks.Lock(name).State(context.WithoutCancel(b.t.Context()))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(state.Holders) > 0
}

// until waits for a condition that other goroutines make true.
func until(t testing.TB, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute) // reached only by a failing test
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("the condition does not become true")
		}
		runtime.Gosched()
	}
}

// answer contains everything that a client receives in a call. header contains headers and trailers.
type answer struct {
	replies []string
	header  http.Header
	err     error
}

// reasons returns the reasons of the ErrorInfos with their domains and the number of RetryInfos.
func (a answer) reasons() (reasons []string, hints int) {
	e := new(connect.Error)
	if !errors.As(a.err, &e) {
		return nil, 0
	}
	for _, d := range e.Details() {
		switch m, err := d.Value(); m := m.(type) {
		case *errdetails.ErrorInfo:
			reasons = append(reasons, m.GetDomain()+"/"+m.GetReason())
		case *errdetails.RetryInfo:
			hints++
		default:
			reasons = append(reasons, d.Type()+" "+err.Error())
		}
	}
	return reasons, hints
}

// lockStatus returns the header with the lock status.
func (a answer) lockStatus() string {
	return strings.Join(a.header.Values(failpolicy.StatusHeader), ",")
}

// check checks that the answer is not a refusal and has the given receipts.
func (a answer) check(t testing.TB, want ...string) {
	t.Helper()
	if a.err != nil || !slices.Equal(a.replies, want) {
		t.Errorf("got %q, error %v; want %q", a.replies, a.err, want)
	}
}

// codeOf returns the code of an answer, or 0 without an error.
func codeOf(a answer) connect.Code {
	if a.err == nil {
		return 0
	}
	return connect.CodeOf(a.err)
}

// call makes a call with one message for each id (unary and server-streaming: only the first), and pairs of
// headers.
func (b *bench) call(ctx context.Context, protocol, method string, ids []string, headers ...string) answer {
	b.t.Helper()
	client := b.client(protocol, method)
	switch method {
	case "Track":
		req := connect.NewRequest(order(ids[0]))
		setHeaders(req.Header(), headers)
		s, err := client.CallServerStream(ctx, req)
		if err != nil {
			return failedAnswer(err)
		}
		defer s.Close()
		var a answer
		for s.Receive() {
			a.replies = append(a.replies, s.Msg().GetReceipt())
		}
		return a.withEnd(s.ResponseHeader(), s.Err())
	case "Import":
		s := client.CallClientStream(ctx)
		setHeaders(s.RequestHeader(), headers)
		for _, id := range ids {
			if err := s.Send(order(id)); err != nil {
				break // the reply has the status
			}
		}
		return singleAnswer(s.CloseAndReceive())
	case "Chat":
		s := client.CallBidiStream(ctx)
		setHeaders(s.RequestHeader(), headers)
		defer s.CloseResponse()
		for _, id := range ids {
			if err := s.Send(order(id)); err != nil {
				break
			}
		}
		_ = s.CloseRequest()
		return drain(s)
	default:
		req := connect.NewRequest(order(ids[0]))
		setHeaders(req.Header(), headers)
		return singleAnswer(client.CallUnary(ctx, req))
	}
}

// singleAnswer returns the answer of a call that ends with one reply.
func singleAnswer(r *connect.Response[receipt], err error) answer {
	if err != nil {
		return failedAnswer(err)
	}
	return answer{replies: []string{r.Msg.GetReceipt()}, header: r.Header()}
}

// drain receives messages until the end of the stream.
func drain(s *connect.BidiStreamForClient[request, receipt]) (a answer) {
	for {
		r, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return a.withEnd(s.ResponseHeader(), nil)
		}
		if err != nil {
			return a.withEnd(s.ResponseHeader(), err)
		}
		a.replies = append(a.replies, r.GetReceipt())
	}
}

// withEnd completes the answer of a stream.
func (a answer) withEnd(header http.Header, err error) answer {
	a.header = header
	if err != nil {
		f := failedAnswer(err)
		f.replies = a.replies
		return f
	}
	return a
}

// failedAnswer returns the answer of a call that failed.
func failedAnswer(err error) answer {
	a := answer{err: err}
	e := new(connect.Error)
	if errors.As(err, &e) {
		a.header = e.Meta()
	}
	return a
}

// forEveryCall runs a test for every shape of a call in every protocol.
func forEveryCall(t *testing.T, test func(t *testing.T, protocol, kind string)) {
	t.Helper()
	for protocol := range protocols {
		for _, kind := range kinds {
			t.Run(protocol+"/"+kind, func(t *testing.T) {
				t.Parallel()
				test(t, protocol, kind)
			})
		}
	}
}

// callAll calls every shape in every protocol concurrently, each with a different order. It passes each
// answer to check.
func (b *bench) callAll(check func(t *testing.T, protocol, kind string, got answer)) {
	b.t.Helper()
	t := b.t.(*testing.T)
	type key struct{ protocol, kind string }
	var mu sync.Mutex
	answers := map[key]answer{}
	var calls sync.WaitGroup
	for protocol := range protocols {
		for _, kind := range kinds {
			calls.Go(func() {
				got := b.call(t.Context(), protocol, kind, []string{protocol + " " + kind})
				mu.Lock()
				defer mu.Unlock()
				answers[key{protocol, kind}] = got
			})
		}
	}
	calls.Wait()
	for at, got := range answers {
		t.Run(at.protocol+"/"+at.kind, func(t *testing.T) { check(t, at.protocol, at.kind, got) })
	}
}

// rules returns a rule for every shape.
func rules(more ...func(*ruleset.Rule)) connectlock.Option {
	list := make([]ruleset.Rule, len(kinds))
	for i, kind := range kinds {
		list[i] = rule(kind, more...)
	}
	return connectlock.WithRules(list...)
}

// splitOptions separates the options of a guard from the options of its lock client.
func splitOptions(opts []any) (client []core.Option, guard []connectlock.Option) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case core.Option:
			client = append(client, opt)
		case connectlock.Option:
			guard = append(guard, opt)
		}
	}
	return client, guard
}
