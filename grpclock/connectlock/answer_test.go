package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

// The interceptors of the server can unwrap the reason. Clients get only the message, which contains neither a
// key nor an owner nor an answer of Redis.
func TestRefusal_ReasonForInterceptorsOnly(t *testing.T) {
	t.Parallel()
	forEveryCall(t, func(t *testing.T, protocol, kind string) {
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

// errorsSeen is an interceptor that records the error of a call.
type errorsSeen struct {
	passThrough
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
