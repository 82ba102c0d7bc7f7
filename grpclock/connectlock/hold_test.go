package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func recovering() connect.HandlerOption {
	return connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, v any) error {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("panic: %v", v))
	})
}

// A guard that meets a call which it guards already does nothing a second time.
func TestTwice_TheSameGuardCountsOnce(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		seen := &decisions{}
		b := prepare(t, patient, nil, core.WithObserver(seen.observer()), connectlock.WithRules(rule(kind)))
		b.shop = alike(func(ctx context.Context) error {
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
		b.serve(b.guard.Interceptor(), passing{}, b.guard.Interceptor())
		if got := b.call(t.Context(), protocol, kind, []string{"1", "2"}); got.err != nil || b.shop.ran.Load() != 1 {
			t.Errorf("got %v, %d runs", got.err, b.shop.ran.Load())
		}
		b.stop()
		if got := len(seen.take()); got != 1 {
			t.Errorf("%d decisions, want 1", got)
		}
	})
}

// passing is an interceptor of somebody else, which wraps streams.
type passing struct{ connect.Interceptor }

func (passing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

func (passing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return next(ctx, struct{ connect.StreamingHandlerConn }{conn})
	}
}

// The reason is for the server's own interceptors, the text for clients.
func TestRefusal_LeadsInterceptorsToTheReasonAndSaysNothingOfKeyOwnerOrRedis(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		seen := &errorsSeen{}
		b := prepare(t, patient, &shop{}, connectlock.WithRules(rule(kind)))
		b.serve(seen, b.guard.Interceptor())
		b.redis.Take("order:secret", time.Minute)
		got := b.call(t.Context(), protocol, kind, []string{"secret"})
		refused := new(aspect.RefusedError)
		if err := seen.err; !errors.Is(err, core.ErrNotAcquired) || !errors.As(err, &refused) || refused.Cause != failpolicy.Busy {
			t.Errorf("interceptors see %v", err)
		}
		text := strings.ToLower(fmt.Sprint(got.err, got.header))
		for _, word := range []string{"secret", "order:", "redis", b.locks.ID()} {
			if strings.Contains(text, word) {
				t.Errorf("the answer contains %q: %s", word, text)
			}
		}
	})
}

// errorsSeen is an interceptor that notes the error of a call.
type errorsSeen struct {
	passing
	err error
}

func (s *errorsSeen) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		s.err = err
		return res, err
	}
}

func (s *errorsSeen) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		s.err = next(ctx, conn)
		return s.err
	}
}
