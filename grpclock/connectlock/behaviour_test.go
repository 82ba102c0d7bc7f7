package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, p := range []program{{"connect", "Pay"}, {"grpc", "Track"}, {"grpcweb", "Import"}, {"connect", "Chat"}} { // for each shape and protocol
		t.Run(p.protocol+"/"+p.method, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, adaptertest.Adapter{
				Endpoint: ruleset.GRPC(path(p.method)), ID: "req.order_id", Tenant: `metadata["x-tenant"]`, Response: responseOf(p.method),
				Code:    func(s failpolicy.Status) int { return int(s.GRPC) },
				Streams: p.method != "Pay", Declares: true, Start: p.start,
			})
		})
	}
}

// program is the program of package adaptertest for Connect: a method of one shape.
type program struct{ protocol, method string }

// responseOf returns a response for the methods that end with one reply, and "" for the others.
func responseOf(method string) string {
	if method == "Track" || method == "Chat" {
		return ""
	}
	return `{"receipt": "later"}`
}

func (p program) start(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []connectlock.Option{
		connectlock.WithTokenHeader(),
		connectlock.WithFallback("queue", func(ctx context.Context, req *request) (*receipt, error) {
			text, err := what.Queue(ctx, req.GetOrderId())
			return reply(text), err
		}),
		connectlock.WithStreamFallback("queue", func(ctx context.Context, conn connect.StreamingHandlerConn) error {
			req := new(request)
			if err := conn.Receive(req); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			text, err := what.Queue(ctx, req.GetOrderId())
			if err != nil {
				return err
			}
			return conn.Send(reply(text))
		}),
	}
	if len(what.Declared) > 0 {
		opts = append(opts, connectlock.WithDescriptors(shoppb.Described(tb, p.method, what.Declared...)))
	}
	for _, r := range what.InCode {
		r.Endpoint = ruleset.GRPC(path(p.method))
		opts = append(opts, connectlock.WithRules(r))
	}
	if len(what.InCode) == 0 {
		opts = append(opts, connectlock.WithSet(what.Set))
	}
	guard, err := connectlock.New(what.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	b := &bench{t: tb, locks: what.Locks, guard: guard, shop: payingShop(what.Pay)}
	b.serveHandler(b.shop.handler(withRecovery(), connect.WithInterceptors(guard.Interceptor())))
	return adaptertest.Server{
		Check: func() error { return guard.Check(service) }, Aspect: guard.Aspect(), Hold: connectlock.Hold,
		Call: func(ctx context.Context, c adaptertest.Call) adaptertest.Answer { return b.callProgram(ctx, p, c) },
	}, nil
}

// payingShop returns a shop whose methods all call pay.
func payingShop(pay func(context.Context, string) (string, error)) *shop {
	first := func(ctx context.Context, req *request, err error) (*receipt, error) {
		if err != nil {
			return nil, err
		}
		text, err := pay(ctx, req.GetOrderId())
		return reply(text), err
	}
	return &shop{
		pay: func(ctx context.Context, req *request) (*receipt, error) { return first(ctx, req, nil) },
		track: func(ctx context.Context, req *request, stream *trackStream) error {
			r, err := first(ctx, req, nil)
			if err != nil {
				return err
			}
			return stream.Send(r)
		},
		importAll: func(ctx context.Context, stream *importStream) (*receipt, error) {
			stream.Receive()
			return first(ctx, stream.Msg(), stream.Err())
		},
		chat: func(ctx context.Context, stream *chatStream) error {
			req, err := stream.Receive()
			r, err := first(ctx, req, err)
			if err != nil {
				return err
			}
			return stream.Send(r)
		},
	}
}

// callProgram calls a method for package adaptertest.
func (b *bench) callProgram(ctx context.Context, p program, c adaptertest.Call) adaptertest.Answer {
	var headers []string
	if c.Tenant != "" {
		headers = []string{"X-Tenant", c.Tenant}
	}
	got := b.call(ctx, p.protocol, p.method, []string{c.ID}, headers...)
	a := adaptertest.Answer{
		OK: got.err == nil, Code: int(codeOf(got)), Text: strings.Join(got.replies, ","),
		Lock: got.lockStatus(), Token: strings.Join(got.header.Values(failpolicy.TokenHeader), ","),
		All: fmt.Sprint(got.replies, got.header, got.err),
	}
	if slices.Contains(got.replies, "") && responseOf(p.method) == "" {
		b.t.Errorf("got replies %q of a method that ends without one", got.replies)
	}
	e := new(connect.Error)
	if !errors.As(got.err, &e) {
		return a
	}
	for _, detail := range e.Details() {
		value, _ := detail.Value()
		switch d := value.(type) {
		case *errdetails.ErrorInfo:
			if a.Cause != "" || d.GetDomain() != "interlock" {
				b.t.Errorf("got %v after the reason %q, want one of the domain interlock", d, a.Cause)
			}
			a.Cause = d.GetReason()
		case *errdetails.RetryInfo:
			delay := d.GetRetryDelay().AsDuration()
			if seconds := fmt.Sprint(math.Ceil(delay.Seconds())); e.Meta().Get("Retry-After") == seconds {
				a.Retry = delay
			}
		}
		a.All += fmt.Sprint(value)
	}
	return a
}
