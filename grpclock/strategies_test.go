package grpclock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// answered is what the handlers answer to the calls of these tests.
var answered = map[string][]string{
	"Pay": {"paid 1"}, "Track": {"packed 1", "sent 1"}, "Import": {"imported 1,2"}, "Chat": {"re 1", "re 2"},
}

// empty is one empty reply where the method ends with one.
var empty = map[string][]string{"Pay": {""}, "Import": {""}}

// queueing registers the fallback "queue" for every kind of call.
func queueing() []any {
	return []any{
		grpclock.WithFallback("queue", func(context.Context, *shoppb.PayRequest) (*shoppb.PayReply, error) {
			return reply("queued"), nil
		}),
		grpclock.WithStreamFallback("queue", func(_ any, stream grpc.ServerStream) error {
			return stream.SendMsg(reply("queued"))
		}),
	}
}

func TestStrategies_OnEveryCallKind(t *testing.T) {
	t.Parallel()
	queued := map[string][]string{"Pay": {"queued"}, "Track": {"queued"}, "Import": {"queued"}, "Chat": {"queued"}}
	given := map[string][]string{"Pay": {"none"}, "Import": {"none"}}
	tests := []struct {
		name     string
		strategy failpolicy.Strategy
		response string
		code     codes.Code
		header   string
		ran      int32
		replies  map[string][]string
	}{
		{"error", failpolicy.Error, "", codes.Aborted, "", 0, nil},
		{"skip", failpolicy.Skip, "", codes.OK, "skipped", 0, empty},
		{"null_response", failpolicy.NullResponse, "", codes.OK, "null", 0, empty},
		{"null_response with a response", failpolicy.NullResponse, `{"receipt": "none"}`, codes.OK, "null", 0, given},
		{"fallback", failpolicy.Fallback, "", codes.OK, "", 0, queued},
		{"proceed", failpolicy.Proceed, "", codes.OK, "unlocked", 1, answered},
	}
	for _, tt := range tests {
		for _, kind := range kinds {
			if tt.response != "" && given[kind] == nil {
				continue // a start-up error
			}
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				b := setup(t, &shop{}, append(queueing(), grpclock.WithRules(rule(kind, func(r *ruleset.Rule) {
					r.OnBusy, r.Response = tt.strategy, tt.response
					if tt.strategy == failpolicy.Fallback {
						r.Fallback = "queue"
					}
				})))...)
				b.redis.Take("order:1", time.Minute)
				got := b.call(t.Context(), kind, "1", "2")
				if status.Code(got.err) != tt.code || got.lockStatus() != tt.header || b.shop.ran.Load() != tt.ran {
					t.Errorf("code %v, header %q, ran %d (%v); want %v, %q, %d",
						status.Code(got.err), got.lockStatus(), b.shop.ran.Load(), got.err, tt.code, tt.header, tt.ran)
				}
				if !slices.Equal(got.replies, tt.replies[kind]) {
					t.Errorf("got replies %q, want %q", got.replies, tt.replies[kind])
				}
			})
		}
	}
}

func TestAcquired_RunsTheHandlerOnceUnderTheLockOnEveryCallKind(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := setup(t, &shop{}, grpclock.WithRules(rule(kind)))
			got := b.call(t.Context(), kind, "1", "2")
			got.check(t, answered[kind]...)
			if got.lockStatus() != "" || b.shop.ran.Load() != 1 {
				t.Errorf("header %q, ran %d; want none, once", got.lockStatus(), b.shop.ran.Load())
			}
			if b.held("order:1") {
				t.Error("the lock is still held after the call")
			}
		})
	}
}

func TestFallback_LearnsTheCauseAndHoldsNoLock(t *testing.T) {
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
				t.Errorf("got %T for the implementation", srv)
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

func TestNullReply_IsAFreshMessageForEveryCall(t *testing.T) {
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

func TestUnlockedByTheRule_IsNotMarked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ruleset.Rule){
		"disabled": func(r *ruleset.Rule) { r.Disabled = true },
		"dry run":  func(r *ruleset.Rule) { r.DryRun = true },
		"when":     func(r *ruleset.Rule) { r.When = "req.amount > 100" },
	} {
		for _, kind := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				b := setup(t, &shop{}, grpclock.WithRules(rule(kind, change)))
				b.redis.Take("order:1", time.Minute)
				got := b.call(t.Context(), kind, "1", "2")
				got.check(t, answered[kind]...)
				if got.lockStatus() != "" {
					t.Errorf("got header %q, want none", got.lockStatus())
				}
			})
		}
	}
}

func TestSuspend_RunsEverythingUnlocked(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		b := setup(t, &shop{}, grpclock.WithRules(rule(kind)))
		b.redis.Take("order:1", time.Minute)
		b.guard.Aspect().Suspend()
		b.call(t.Context(), kind, "1", "2").check(t, answered[kind]...)
		b.guard.Aspect().Resume()
		if got := b.call(t.Context(), kind, "1", "2"); status.Code(got.err) != codes.Aborted {
			t.Errorf("%s: after Resume got %v, want ABORTED", kind, got.err)
		}
	}
}
