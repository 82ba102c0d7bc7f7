package grpclock_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// What the package comment advises to find a server without the interceptors, which Check
// cannot.
func TestUnguardedServer_IsFoundByAStrangersLockAndByMustHold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		guarded       bool
		before, taken codes.Code // answers: before a stranger holds the lock, and then
	}{
		"guarded":   {true, codes.OK, codes.Aborted},
		"unguarded": {false, codes.Unknown, codes.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shop{pay: func(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
				core.MustHold(ctx, "order:"+req.GetOrderId())
				return reply("paid"), nil
			}}
			b := prepare(t, s, grpclock.WithRules(rule("Pay")))
			if !tt.guarded {
				b.server = grpc.NewServer(grpc.UnaryInterceptor(recoverUnary))
				shoppb.RegisterOrdersServer(b.server, s)
			}
			b.checked()
			if _, err := b.client.Pay(t.Context(), order("42")); status.Code(err) != tt.before {
				t.Errorf("got %v, want %v", err, tt.before)
			}
			b.redis.Take("order:42", time.Hour)
			if _, err := b.client.Pay(t.Context(), order("42")); status.Code(err) != tt.taken {
				t.Errorf("while a stranger holds the lock: got %v, want %v", err, tt.taken)
			}
		})
	}
}
