package connectlock_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func withRecovery() connect.HandlerOption {
	return connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, v any) error {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("panic: %v", v))
	})
}

// If a guard is installed twice, the second one does nothing.
func TestTwice_SameGuard(t *testing.T) {
	t.Parallel()
	forEveryCall(t, func(t *testing.T, protocol, kind string) {
		seen := &decisions{}
		b := prepare(t, patient, nil, core.WithObserver(seen.observer()), connectlock.WithRules(rule(kind)))
		b.shop = uniformShop(func(ctx context.Context) error {
			state, err := b.locks.Lock("order:1").State(ctx)
			for _, n := range state.Holders {
				if n != 1 {
					t.Errorf("the lock is held %d times", n)
				}
			}
			if connectlock.Hold(ctx) == nil || connectlock.Caller(ctx).Value(core.ContextKey) != nil {
				t.Error("the inner guard hides the lock")
			}
			return err
		})
		b.serve(b.guard.Interceptor(), passThrough{}, b.guard.Interceptor())
		if got := b.call(t.Context(), protocol, kind, []string{"1", "2"}); got.err != nil || b.shop.ran.Load() != 1 {
			t.Errorf("got %v, %d runs", got.err, b.shop.ran.Load())
		}
		b.stop()
		if got := len(seen.take()); got != 1 {
			t.Errorf("%d decisions, want 1", got)
		}
	})
}

// passThrough is an interceptor of another library, which wraps streams.
type passThrough struct{ connect.Interceptor }

func (passThrough) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (passThrough) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, struct{ connect.StreamingHandlerConn }{conn})
	}
}
