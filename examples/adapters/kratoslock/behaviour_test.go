package kratoslock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/log"
	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/middleware/recovery"
	kgrpc "github.com/go-kratos/kratos/v2/transport/grpc"
	khttp "github.com/go-kratos/kratos/v2/transport/http"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/adapters/kratoslock"
	"github.com/interlock-go/interlock/examples/quickstart/shoppb"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

const operation = shoppb.Shop_ReserveOrFail_FullMethodName

func TestMain(m *testing.M) {
	log.SetLogger(log.NewStdLogger(io.Discard)) // panics, reloads and failures are part of the tests
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]adaptertest.Adapter{
		"http": {Code: func(s failpolicy.Status) int { return s.HTTP }, Start: starting(serveHTTP)},
		"grpc": {Code: func(s failpolicy.Status) int { return int(s.GRPC) }, Start: starting(serveGRPC)},
	} {
		a.Endpoint, a.ID, a.Tenant, a.Response = ruleset.GRPC(operation), "req.item", `metadata["x-tenant"]`, `{"receipt": "later"}`
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, a)
		})
	}
}

// shop is the service of the tests.
type shop struct {
	shoppb.UnimplementedShopServer
	pay func(context.Context, string) (string, error)
}

func (s *shop) ReserveOrFail(ctx context.Context, r *shoppb.ReserveRequest) (*shoppb.ReserveReply, error) {
	text, err := s.pay(ctx, r.GetItem())
	if err != nil {
		return nil, err
	}
	return &shoppb.ReserveReply{Receipt: text}, nil
}

// server serves a shop behind a middleware, without a timeout. checked is the argument of Check.
type server func(tb testing.TB, guard middleware.Middleware, s *shop) (checked grpclock.Server, call callFunc)

type callFunc func(context.Context, adaptertest.Call) adaptertest.Answer

func starting(serve server) func(testing.TB, *adaptertest.Program) (adaptertest.Server, error) {
	return func(tb testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
		queue := &shop{pay: p.Queue}
		opts := []grpclock.Option{grpclock.WithTokenHeader(), grpclock.WithFallback("queue", func(ctx context.Context, r proto.Message) (proto.Message, error) {
			return queue.ReserveOrFail(ctx, r.(*shoppb.ReserveRequest))
		})}
		for _, r := range p.InCode {
			r.Endpoint = ruleset.GRPC(operation)
			opts = append(opts, grpclock.WithRules(r))
		}
		if len(p.InCode) == 0 {
			opts = append(opts, grpclock.WithSet(p.Set))
		}
		guard, err := grpclock.New(p.Locks, opts...)
		if err != nil {
			return adaptertest.Server{}, err
		}
		checked, call := serve(tb, kratoslock.Middleware(guard), &shop{pay: p.Pay})
		return adaptertest.Server{Check: func() error { return guard.Check(checked) }, Aspect: guard.Aspect(), Hold: grpclock.Hold, Call: call}, nil
	}
}

// recovering answers with the value of a panic.
func recovering() recovery.Option {
	return recovery.WithHandler(func(_ context.Context, _, v any) error { return kerrors.InternalServer("PANIC", fmt.Sprint(v)) })
}

// register does what the generated Register…HTTPServer does.
func register(s *khttp.Server, shop shoppb.ShopServer) {
	s.Route("/").POST("/items/{item}/reserve", func(ctx khttp.Context) error {
		var in shoppb.ReserveRequest
		if err := ctx.BindVars(&in); err != nil {
			return err
		}
		khttp.SetOperation(ctx, operation)
		h := ctx.Middleware(func(ctx context.Context, req any) (any, error) {
			return shop.ReserveOrFail(ctx, req.(*shoppb.ReserveRequest))
		})
		out, err := h(ctx, &in)
		if err != nil {
			return err
		}
		return ctx.Result(http.StatusOK, out.(*shoppb.ReserveReply))
	})
}

func serveHTTP(tb testing.TB, guard middleware.Middleware, s *shop) (checked grpclock.Server, call callFunc) {
	tb.Helper()
	server := khttp.NewServer(khttp.Timeout(0), khttp.Middleware(recovery.Recovery(recovering()), guard))
	register(server, s)
	listening := httptest.NewServer(server)
	tb.Cleanup(listening.Close)
	return kratoslock.Files{shoppb.File_shop_proto}, func(ctx context.Context, c adaptertest.Call) adaptertest.Answer {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, listening.URL+"/items/"+c.ID+"/reserve", http.NoBody)
		if err != nil {
			return adaptertest.Answer{All: err.Error()}
		}
		if c.Tenant != "" {
			r.Header.Set("X-Tenant", c.Tenant)
		}
		response, err := listening.Client().Do(r)
		if err != nil {
			return adaptertest.Answer{Code: http.StatusInternalServerError}
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return httpAnswer(response, body)
	}
}

func httpAnswer(response *http.Response, body []byte) adaptertest.Answer {
	var answer struct{ Receipt, Reason string }
	_ = json.Unmarshal(body, &answer)
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	var header strings.Builder
	_ = response.Header.Write(&header)
	return adaptertest.Answer{
		OK: response.StatusCode == http.StatusOK, Code: response.StatusCode, Text: answer.Receipt, Cause: lockReason(answer.Reason),
		Retry: time.Duration(seconds) * time.Second, Lock: response.Header.Get(failpolicy.StatusHeader),
		Token: response.Header.Get(failpolicy.TokenHeader), All: header.String() + string(body),
	}
}

// lockReason returns a reason of Interlock, and "" for others.
func lockReason(reason string) string {
	if strings.HasPrefix(reason, "LOCK_") {
		return reason
	}
	return ""
}

func serveGRPC(tb testing.TB, guard middleware.Middleware, s *shop) (checked grpclock.Server, call callFunc) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := kgrpc.NewServer(kgrpc.Timeout(0), kgrpc.Middleware(recovery.Recovery(recovering()), guard))
	shoppb.RegisterShopServer(server, s)
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Server.Stop) // the Stop of kratos would wait for calls
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return server, func(ctx context.Context, c adaptertest.Call) adaptertest.Answer {
		if c.Tenant != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", c.Tenant)
		}
		var header, trailer metadata.MD
		reply, err := shoppb.NewShopClient(conn).ReserveOrFail(ctx, &shoppb.ReserveRequest{Item: c.ID}, grpc.Header(&header), grpc.Trailer(&trailer))
		return grpcAnswer(reply, status.Convert(err), header, trailer)
	}
}

func grpcAnswer(reply *shoppb.ReserveReply, st *status.Status, header, trailer metadata.MD) adaptertest.Answer {
	a := adaptertest.Answer{
		OK: st.Code() == 0, Code: int(st.Code()), Text: reply.GetReceipt(), Lock: strings.Join(header.Get(failpolicy.StatusHeader), ","),
		Token: strings.Join(header.Get(failpolicy.TokenHeader), ","), All: fmt.Sprint(reply, header, trailer, st.Proto()),
	}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			a.Cause = lockReason(d.GetReason())
		case *errdetails.RetryInfo:
			a.Retry = d.GetRetryDelay().AsDuration()
		}
	}
	return a
}
