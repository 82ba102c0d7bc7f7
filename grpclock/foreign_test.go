package grpclock_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// What a codec of the program's own decodes into is no message without fields: a
// condition over them has no answer, rather than the answer that takes no lock.
func TestUnary_RequestThatIsNoMessageNeverRunsUnlocked(t *testing.T) {
	t.Parallel()
	requests := map[string]any{"bytes": []byte("x"), "another message": shoppb.PayReply_builder{Receipt: "x"}.Build(), "nothing": nil}
	for name, req := range requests {
		for _, change := range []func(*ruleset.Rule){
			func(r *ruleset.Rule) { r.When = `req.order_id != ""` },
			func(r *ruleset.Rule) { r.Key = `order:#{req.order_id ?? "none"}` },
			func(r *ruleset.Rule) { r.OnKey = failpolicy.Proceed },
		} {
			b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", change)))
			info := &grpc.UnaryServerInfo{FullMethod: path("Pay")}
			_, err := b.guard.UnaryServerInterceptor()(t.Context(), req, info, func(context.Context, any) (any, error) {
				t.Errorf("%s: the handler ran", name)
				return nil, nil
			})
			if status.Code(err) != codes.Internal {
				t.Errorf("%s: got %v, want INTERNAL", name, err)
			}
		}
	}
}
