package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// kinds are the shapes of a call, by the method that has the shape.
var kinds = []string{"Pay", "Track", "Import", "Chat"}

func path(method string) string { return "/shop.v1.Orders/" + method }

// rule returns a rule for a method, with the order of the request as the key.
func rule(method string, more ...func(*ruleset.Rule)) ruleset.Rule {
	r := ruleset.Rule{Endpoint: ruleset.GRPC(path(method)), Key: "order:#{req.order_id}", WaitTime: ruleset.NoWait}
	for _, change := range more {
		change(&r)
	}
	return r
}

// shop is the service under test. It counts its calls. A handler that is not set answers with a receipt.
type shop struct {
	ran       atomic.Int32
	pay       func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error)
	track     func(req *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error
	importAll func(stream shoppb.Orders_ImportServer) error
	chat      func(stream shoppb.Orders_ChatServer) error
}

func reply(receipt string) *shoppb.PayReply {
	return shoppb.PayReply_builder{Receipt: receipt}.Build()
}

func order(id string) *shoppb.PayRequest { return shoppb.PayRequest_builder{OrderId: id}.Build() }

func (s *shop) Pay(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
	s.ran.Add(1)
	if s.pay != nil {
		return s.pay(ctx, req)
	}
	return reply("paid " + req.GetOrderId()), nil
}

func (s *shop) Free(_ context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
	s.ran.Add(1)
	return reply("free " + req.GetOrderId()), nil
}

func (s *shop) Track(req *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
	s.ran.Add(1)
	if s.track != nil {
		return s.track(req, stream)
	}
	return errors.Join(stream.Send(reply("packed "+req.GetOrderId())), stream.Send(reply("sent "+req.GetOrderId())))
}

func (s *shop) Import(stream shoppb.Orders_ImportServer) error {
	s.ran.Add(1)
	if s.importAll != nil {
		return s.importAll(stream)
	}
	var ids []string
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(reply("imported " + strings.Join(ids, ",")))
		}
		if err != nil {
			return err
		}
		ids = append(ids, req.GetOrderId())
	}
}

func (s *shop) Chat(stream shoppb.Orders_ChatServer) error {
	s.ran.Add(1)
	if s.chat != nil {
		return s.chat(stream)
	}
	for {
		req, err := stream.Recv()
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

// bench is a shop behind a guard, with a server, a client and a Redis.
type bench struct {
	t      testing.TB
	redis  *redistest.Server
	locks  *core.Client
	guard  *grpclock.Guard
	server *grpc.Server
	shop   *shop
	conn   *grpc.ClientConn
	client shoppb.OrdersClient
	stop   func() // stops the client, the server and the lock client; also called at the end of the test
}

// setup starts a bench whose guard passes its check.
func setup(t testing.TB, s *shop, opts ...any) *bench {
	t.Helper()
	return prepare(t, s, opts...).checkAndServe()
}

// checkAndServe serves the bench after its guard has passed its check.
func (b *bench) checkAndServe() *bench {
	b.t.Helper()
	if err := b.guard.Check(b.server); err != nil {
		b.t.Fatal(err)
	}
	b.serve()
	return b
}

// prepare returns a bench that is neither checked nor served yet. Its timeouts are long enough for a busy
// machine.
func prepare(t testing.TB, s *shop, opts ...any) *bench {
	t.Helper()
	return prepareWithTimeout(t, patient, s, opts...)
}

// patient is the backend timeout of most tests.
const patient = 10 * time.Second

// prepareWithTimeout returns a bench with a backend timeout that is neither checked nor served yet.
func prepareWithTimeout(t testing.TB, timeout time.Duration, s *shop, opts ...any) *bench {
	t.Helper()
	b := &bench{t: t, redis: redistest.New(t), shop: s}
	client, own := splitOptions(opts)
	var err error
	b.locks, err = core.New(b.redis.Client(), append(client, core.WithWatchdog(3*time.Second), core.WithBackendTimeout(timeout))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.locks.Close(context.Background()) })
	b.guard, err = grpclock.New(b.locks, own...)
	if err != nil {
		t.Fatal(err)
	}
	b.server = b.newServer(nil, nil)
	shoppb.RegisterOrdersServer(b.server, s)
	return b
}

// newServer returns a server with a recovery, further interceptors and the guard.
func (b *bench) newServer(unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) *grpc.Server {
	unary = append([]grpc.UnaryServerInterceptor{recoverUnary}, unary...)
	stream = append([]grpc.StreamServerInterceptor{recoverStream}, stream...)
	return grpc.NewServer(
		grpc.ChainUnaryInterceptor(append(unary, b.guard.UnaryServerInterceptor())...),
		grpc.ChainStreamInterceptor(append(stream, b.guard.StreamServerInterceptor())...),
		grpc.WaitForHandlers(true),
	)
}

// serve starts the server and dials it with the given options.
func (b *bench) serve(opts ...grpc.DialOption) {
	b.t.Helper()
	listener := bufconn.Listen(1 << 20)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = b.server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///bufconn", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.conn, b.client = conn, shoppb.NewOrdersClient(conn)
	b.stop = sync.OnceFunc(func() {
		_ = conn.Close()
		b.server.Stop()
		<-served
		_ = b.locks.Close(context.Background())
	})
	b.t.Cleanup(b.stop)
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

// held reports whether any holder has the lock.
func (b *bench) held(name string) bool {
	b.t.Helper()
	state, err := b.locks.Lock(name).State(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return len(state.Holders) > 0
}

func recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
	defer recoverTo(&err)
	return handler(ctx, req)
}

func recoverStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer recoverTo(&err)
	return handler(srv, stream)
}

func recoverTo(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("panic: %v", v)
	}
}

// answer contains everything that a client receives in a call.
type answer struct {
	replies []string
	header  metadata.MD
	trailer metadata.MD
	err     error
}

// lockStatus returns the header with the lock status.
func (a answer) lockStatus() string {
	return strings.Join(a.header.Get(failpolicy.StatusHeader), ",")
}

// details returns the reasons with their domains and the number of RetryInfos.
func (a answer) details() (reasons []string, retries int) {
	for _, d := range status.Convert(a.err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reasons = append(reasons, d.GetDomain()+"/"+d.GetReason())
		case *errdetails.RetryInfo:
			retries++
		}
	}
	return reasons, retries
}

// call makes a call with one message for each id (unary and server-streaming: only the first).
func (b *bench) call(ctx context.Context, method string, ids ...string) answer {
	b.t.Helper()
	var a answer
	meta := []grpc.CallOption{grpc.Header(&a.header), grpc.Trailer(&a.trailer)}
	switch method {
	case "Pay", "Free":
		var got *shoppb.PayReply
		if method == "Pay" {
			got, a.err = b.client.Pay(ctx, order(ids[0]), meta...)
		} else {
			got, a.err = b.client.Free(ctx, order(ids[0]), meta...)
		}
		a.add(got)
	case "Track":
		s, err := b.client.Track(ctx, order(ids[0]), meta...)
		a.drain(s, err)
	case "Import":
		s, err := b.client.Import(ctx, meta...)
		if err == nil {
			err = sendAll(s.Send, ids)
		}
		if err == nil {
			var got *shoppb.PayReply
			got, err = s.CloseAndRecv()
			a.add(got)
		}
		a.err = err
	case "Chat":
		s, err := b.client.Chat(ctx, meta...)
		if err == nil {
			err = errors.Join(sendAll(s.Send, ids), s.CloseSend())
		}
		a.drain(s, err)
	}
	return a
}

// sendAll sends one message for each id until the server ends the call.
func sendAll(send func(*shoppb.PayRequest) error, ids []string) error {
	for _, id := range ids {
		if err := send(order(id)); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) add(r *shoppb.PayReply) {
	if r != nil {
		a.replies = append(a.replies, r.GetReceipt())
	}
}

func (a *answer) drain(s interface {
	Recv() (*shoppb.PayReply, error)
}, err error,
) {
	for a.err = err; a.err == nil; {
		var r *shoppb.PayReply
		r, a.err = s.Recv()
		a.add(r)
	}
	if errors.Is(a.err, io.EOF) {
		a.err = nil
	}
}

func (a answer) check(t *testing.T, want ...string) {
	t.Helper()
	if a.err != nil || !slices.Equal(a.replies, want) {
		t.Errorf("got %q, error %v; want %q", a.replies, a.err, want)
	}
}

// splitOptions separates the options of a guard from the options of its lock client.
func splitOptions(opts []any) (client []core.Option, guard []grpclock.Option) {
	for _, opt := range opts {
		switch opt := opt.(type) {
		case core.Option:
			client = append(client, opt)
		case grpclock.Option:
			guard = append(guard, opt)
		}
	}
	return client, guard
}
