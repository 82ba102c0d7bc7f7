package grpclock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			adaptertest.Run(t, adaptertest.Adapter{
				Endpoint: ruleset.GRPC(path(kind)), ID: "req.order_id", Tenant: `metadata["x-tenant"]`, Response: responseOf(kind),
				Code:    func(s failpolicy.Status) int { return int(s.GRPC) },
				Streams: kind != "Pay", Declares: true, Start: program{kind}.start,
			})
		})
	}
}

// program is the program of package adaptertest for gRPC: a method of one shape.
type program struct{ method string }

// responseOf returns a response for the methods that end with one reply, and "" for the others.
func responseOf(method string) string {
	if method == "Track" || method == "Chat" {
		return ""
	}
	return `{"receipt": "later"}`
}

func (p program) start(tb testing.TB, what *adaptertest.Program) (adaptertest.Server, error) {
	tb.Helper()
	opts := []grpclock.Option{
		grpclock.WithTokenHeader(),
		grpclock.WithFallback("queue", func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
			text, err := what.Queue(ctx, req.GetOrderId())
			return reply(text), err
		}),
		grpclock.WithStreamFallback("queue", func(_ any, stream grpc.ServerStream) error {
			text, err := what.Queue(stream.Context(), "")
			if err != nil {
				return err
			}
			return stream.SendMsg(reply(text))
		}),
	}
	if len(what.Declared) > 0 {
		opts = append(opts, grpclock.WithDescriptors(shoppb.Described(tb, p.method, what.Declared...)))
	}
	for _, r := range what.InCode {
		r.Endpoint = ruleset.GRPC(path(p.method))
		opts = append(opts, grpclock.WithRules(r))
	}
	if len(what.InCode) == 0 {
		opts = append(opts, grpclock.WithSet(what.Set))
	}
	guard, err := grpclock.New(what.Locks, opts...)
	if err != nil {
		return adaptertest.Server{}, err
	}
	b := &bench{t: tb, locks: what.Locks, guard: guard, shop: payingShop(what.Pay)}
	b.server = b.newServer(nil, nil)
	shoppb.RegisterOrdersServer(b.server, b.shop)
	b.serve()
	return adaptertest.Server{
		Check: func() error { return guard.Check(b.server) }, Aspect: guard.Aspect(), Hold: grpclock.Hold,
		Call: func(ctx context.Context, c adaptertest.Call) adaptertest.Answer {
			return b.callProgram(ctx, p.method, c)
		},
	}, nil
}

// payingShop returns a shop whose methods all call pay.
func payingShop(pay func(context.Context, string) (string, error)) *shop {
	first := func(ctx context.Context, req *shoppb.PayRequest, err error) (*shoppb.PayReply, error) {
		if err != nil {
			return nil, err
		}
		text, err := pay(ctx, req.GetOrderId())
		return reply(text), err
	}
	return &shop{
		pay: func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
			return first(ctx, req, nil)
		},
		track: func(req *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
			r, err := first(stream.Context(), req, nil)
			if err != nil {
				return err
			}
			return stream.Send(r)
		},
		importAll: func(stream shoppb.Orders_ImportServer) error {
			req, err := stream.Recv()
			r, err := first(stream.Context(), req, err)
			if err != nil {
				return err
			}
			return stream.SendAndClose(r)
		},
		chat: func(stream shoppb.Orders_ChatServer) error {
			req, err := stream.Recv()
			r, err := first(stream.Context(), req, err)
			if err != nil {
				return err
			}
			return stream.Send(r)
		},
	}
}

// callProgram calls a method for package adaptertest.
func (b *bench) callProgram(ctx context.Context, method string, c adaptertest.Call) adaptertest.Answer {
	if c.Tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", c.Tenant)
	}
	got := b.call(ctx, method, c.ID)
	st := status.Convert(got.err)
	a := adaptertest.Answer{
		OK: got.err == nil, Code: int(st.Code()), Text: strings.Join(got.replies, ","),
		Lock: got.lockStatus(), Token: strings.Join(got.header.Get(failpolicy.TokenHeader), ","),
		All: fmt.Sprint(got.replies, got.header, got.trailer, st.Proto()),
	}
	if slices.Contains(got.replies, "") && responseOf(method) == "" {
		b.t.Errorf("got replies %q of a method that ends without one", got.replies)
	}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if a.Cause != "" || d.GetDomain() != "interlock" {
				b.t.Errorf("got %v after the reason %q, want one of the domain interlock", d, a.Cause)
			}
			a.Cause = d.GetReason()
		case *errdetails.RetryInfo:
			delay := d.GetRetryDelay().AsDuration()
			if pushback := fmt.Sprint(delay.Milliseconds()); slices.Equal(got.trailer.Get("grpc-retry-pushback-ms"), []string{pushback}) {
				a.Retry = delay
			}
		}
	}
	return a
}
