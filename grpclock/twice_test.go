package grpclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// setupTwice returns a bench with two guards on every method: the same guard twice, or two different ones.
func setupTwice(t *testing.T, s *shop, outer func(b *bench) *grpclock.Guard, opts ...any) *bench {
	t.Helper()
	b := prepare(t, s, opts...)
	guard := outer(b)
	b.server = b.newServer([]grpc.UnaryServerInterceptor{guard.UnaryServerInterceptor()}, []grpc.StreamServerInterceptor{guard.StreamServerInterceptor()})
	shoppb.RegisterOrdersServer(b.server, s)
	return b.checkAndServe()
}

func sameGuard(b *bench) *grpclock.Guard { return b.guard }

// If a guard is installed twice, the second one does nothing.
func TestTwice_SameGuard(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			seen := &decisions{}
			s := &shop{}
			b := setupTwice(t, s, sameGuard, core.WithObserver(seen.observer()), grpclock.WithRules(rule(kind)))
			count := func(ctx context.Context) {
				state, err := b.locks.Lock("order:1").State(ctx)
				for _, n := range state.Holders {
					if n != 1 {
						t.Errorf("the lock is held %d times", n)
					}
				}
				if err != nil || len(state.Holders) != 1 || grpclock.Hold(ctx) == nil || grpclock.Caller(ctx).Value(core.ContextKey) != nil {
					t.Errorf("held by %v, error %v", state.Holders, err)
				}
			}
			s.pay = func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
				count(ctx)
				return reply("paid " + req.GetOrderId()), nil
			}
			s.track = func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error {
				count(stream.Context())
				return nil
			}
			s.importAll = func(stream shoppb.Orders_ImportServer) error {
				count(stream.Context())
				return stream.SendAndClose(reply(""))
			}
			s.chat = func(stream shoppb.Orders_ChatServer) error { count(stream.Context()); return nil }
			if got := b.call(t.Context(), kind, "1", "2"); got.err != nil || s.ran.Load() != 1 {
				t.Errorf("got %v, %d runs", got.err, s.ran.Load())
			}
			b.stop()
			if len(seen.list) != 1 {
				t.Errorf("%d decisions, want 1", len(seen.list))
			}
		})
	}
}

// If a guard is installed twice and runs the handler unlocked, the header has only one value, and the call
// waits only once.
func TestTwice_LockStatusAndWait(t *testing.T) {
	t.Parallel()
	for strategy, mark := range map[failpolicy.Strategy]string{failpolicy.Proceed: "unlocked", failpolicy.Skip: "skipped", failpolicy.NullResponse: "null"} {
		for _, kind := range kinds {
			synctest.Test(t, func(t *testing.T) {
				b := setupTwice(t, &shop{}, sameGuard, grpclock.WithRules(rule(kind, func(r *ruleset.Rule) {
					r.WaitTime, r.OnBusy = 3*time.Second, strategy
				})))
				b.redis.Take("order:1", time.Hour)
				start := time.Now()
				got := b.call(t.Context(), kind, "1")
				if got.err != nil || got.lockStatus() != mark {
					t.Errorf("%s, %s: got x-lock-status %q, error %v", kind, strategy, got.lockStatus(), got.err)
				}
				if waited := time.Since(start).Round(100 * time.Millisecond); waited != 3*time.Second {
					t.Errorf("%s, %s: waited %s, want 3s", kind, strategy, waited)
				}
				b.stop()
			})
		}
	}
}

// An interceptor between the two places of a guard may replace the message. The call still needs only one
// permit.
func TestTwice_Permit(t *testing.T) {
	t.Parallel()
	s := &shop{}
	b := prepare(t, s, grpclock.WithRules(rule("Pay", kindOf(ruleset.Semaphore), func(r *ruleset.Rule) { r.Permits = 1 })))
	b.server = b.newServer([]grpc.UnaryServerInterceptor{
		b.guard.UnaryServerInterceptor(),
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, proto.Clone(req.(proto.Message)))
		},
	}, nil)
	shoppb.RegisterOrdersServer(b.server, s)
	b.checkAndServe()
	if got := b.call(t.Context(), "Pay", "1"); got.err != nil || s.ran.Load() != 1 {
		t.Errorf("got %v after %d runs", got.err, s.ran.Load())
	}
}

// Two different guards both act, but the header contains the same status only once.
func TestTwice_TwoUnlockedGuards(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		unlocked := rule(kind, func(r *ruleset.Rule) { r.OnBusy = failpolicy.Proceed })
		another := func(b *bench) *grpclock.Guard {
			other := unlocked
			other.Key = "other"
			guard, err := grpclock.New(b.locks, grpclock.WithRules(other))
			if err != nil {
				t.Fatal(err)
			}
			return guard
		}
		b := setupTwice(t, &shop{}, another, grpclock.WithRules(unlocked))
		b.redis.Take("order:1", time.Hour)
		b.redis.Take("other", time.Hour)
		if got := b.call(t.Context(), kind, "1"); got.err != nil || got.lockStatus() != "unlocked" {
			t.Errorf("%s: got x-lock-status %q, error %v", kind, got.lockStatus(), got.err)
		}
		b.redis.Free("other")
		if got := b.call(t.Context(), kind, "1"); got.err != nil || got.lockStatus() != "unlocked" {
			t.Errorf("%s, the outer lock is free: got x-lock-status %q, error %v", kind, got.lockStatus(), got.err)
		}
	}
}

// A different call inside the first one takes another lock.
func TestTwice_OtherCalls(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay"), ruleset.Rule{Endpoint: ruleset.GRPC(path("Track")), Key: "track:#{metadata.id}", WaitTime: ruleset.NoWait}))
	unary, stream := b.guard.UnaryServerInterceptor(), b.guard.StreamServerInterceptor()
	info := &grpc.UnaryServerInfo{FullMethod: path("Pay")}
	b.redis.Take("order:2", time.Minute)
	req := order("1")
	_, err := unary(t.Context(), req, info, func(ctx context.Context, _ any) (any, error) {
		for name, call := range map[string]func() error{
			"another request":    func() error { _, err := unary(ctx, order("2"), info, replyEmpty); return err },
			"a detached context": func() error { _, err := unary(core.Detach(ctx), req, info, replyEmpty); return err },
			"its own context": func() error {
				ctx := metadata.NewIncomingContext(ctx, metadata.Pairs("id", "7"))
				return stream(b.shop, silentStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: path("Track"), IsServerStream: true}, func(_ any, s grpc.ServerStream) error {
					if !b.held("track:7") {
						t.Error("another method runs without its lock")
					}
					return status.Error(codes.Aborted, "ran")
				})
			},
		} {
			if err := call(); status.Code(err) != codes.Aborted {
				t.Errorf("%s: got %v, want ABORTED", name, err)
			}
		}
		return unary(ctx, req, info, func(context.Context, any) (any, error) { return reply(""), nil })
	})
	if err != nil {
		t.Error(err)
	}
}

func replyEmpty(context.Context, any) (any, error) { return reply(""), nil }
