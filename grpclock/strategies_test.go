package grpclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// answered contains the answers of the handlers to the calls of these tests.
var answered = map[string][]string{
	"Pay": {"paid 1"}, "Track": {"packed 1", "sent 1"}, "Import": {"imported 1,2"}, "Chat": {"re 1", "re 2"},
}

// An interceptor before the guard gets the error of the handler itself, when the lock is free and no debounce window has begun.
func TestInterceptor_ErrorOfTheHandler(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Debounce, r.WaitTime = time.Hour, 0 })))
	errNoOrder := errors.New("no such order")
	for range 2 {
		_, err := b.guard.UnaryServerInterceptor()(t.Context(), order("7"), &grpc.UnaryServerInfo{FullMethod: path("Pay")},
			func(context.Context, any) (any, error) {
				if !b.held("order:7") {
					t.Error("the handler runs without the lock")
				}
				return nil, errNoOrder
			})
		if err != errNoOrder || b.held("order:7") { //nolint:errorlint // the error itself
			t.Errorf("got %v, and the lock is held: %t", err, b.held("order:7"))
		}
	}
}

func TestStrategies_Fallback(t *testing.T) {
	t.Parallel()
	causes := make(chan failpolicy.Cause, 2)
	note := func(ctx context.Context) {
		out, _ := aspect.OutcomeFrom(ctx)
		causes <- out.Cause
		if grpclock.Hold(ctx) != nil {
			t.Error("a fallback holds the lock")
		}
	}
	b := setup(t, &shop{},
		grpclock.WithFallback("later", func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
			note(ctx)
			return reply("later " + req.GetOrderId()), nil
		}),
		grpclock.WithStreamFallback("later", func(srv any, stream grpc.ServerStream) error {
			note(stream.Context())
			req := new(shoppb.PayRequest)
			if err := stream.RecvMsg(req); err != nil {
				return err
			}
			if _, ok := srv.(shoppb.OrdersServer); !ok {
				t.Errorf("got %T as the implementation", srv)
			}
			return stream.SendMsg(reply("later " + req.GetOrderId()))
		}),
		grpclock.WithRules(
			rule("Pay", func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "later" }),
			rule("Track", func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "later" }),
		))
	b.redis.Take("order:7", time.Minute)
	for _, kind := range []string{"Pay", "Track"} {
		b.call(t.Context(), kind, "7").check(t, "later 7")
		if got := <-causes; got != failpolicy.Busy {
			t.Errorf("%s: got cause %q, want busy", kind, got)
		}
	}
}

func TestStrategies_NullReplyIsNewMessage(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.OnBusy, r.Response = failpolicy.NullResponse, `{"receipt":"none"}`
	})))
	b.server = b.newServer([]grpc.UnaryServerInterceptor{
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			got, err := handler(ctx, req)
			if m, ok := got.(*shoppb.PayReply); ok {
				m.SetReceipt(m.GetReceipt() + "!")
			}
			return got, err
		},
	}, nil)
	shoppb.RegisterOrdersServer(b.server, b.shop)
	b.serve()
	b.redis.Take("order:1", time.Minute)
	for range 2 {
		b.call(t.Context(), "Pay", "1").check(t, "none!")
	}
}
