package connectlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func TestHold_IsTheLockOfTheHandlerAndMayBeReleasedEarly(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		b := prepare(t, patient, nil, connectlock.WithRules(rule(kind)))
		b.shop = alike(func(ctx context.Context) error {
			hold := connectlock.Hold(ctx)
			if _, ok := core.Held(ctx, "order:1"); !ok || hold.Key() != "order:1" || connectlock.Hold(core.Detach(ctx)) != nil {
				t.Errorf("got the lock %q", hold.Key())
			}
			if err := hold.Release(ctx); err != nil {
				return err
			}
			if b.held("order:1") || ctx.Err() == nil || connectlock.Caller(ctx).Err() != nil {
				t.Errorf("after the release: held %v, context %v, the caller's %v", b.held("order:1"), ctx.Err(), connectlock.Caller(ctx).Err())
			}
			return nil
		})
		b.serve(b.guard.Interceptor())
		if got := b.call(t.Context(), protocol, kind, []string{"1"}); got.err != nil {
			t.Error(got.err)
		}
	})
}

func TestHold_ReleasedEarlyLeavesTheStreamWorking(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{chat: func(ctx context.Context, stream *chatStream) error {
			if _, err := stream.Receive(); err != nil {
				return err
			}
			if err := connectlock.Hold(ctx).Release(ctx); err != nil {
				return err
			}
			req, err := stream.Receive()
			if err != nil {
				return err
			}
			return stream.Send(reply("still " + req.GetOrderId()))
		}}, connectlock.WithRules(rule("Chat")))
		b.call(t.Context(), protocol, "Chat", []string{"1", "2"}).check(t, "still 2")
	}
}

func TestHold_NoneWithoutALock(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if connectlock.Hold(ctx) != nil || connectlock.Caller(ctx) != ctx {
		t.Error("there is a lock without a guard")
	}
}

func recovering() connect.HandlerOption {
	return connect.WithRecover(func(_ context.Context, _ connect.Spec, _ http.Header, v any) error {
		return connect.NewError(connect.CodeInternal, fmt.Errorf("panic: %v", v))
	})
}

// isRecovered reports whether an answer is what recovering makes of a panic.
func isRecovered(a answer, value string) bool {
	e := new(connect.Error)
	return errors.As(a.err, &e) && e.Message() == "panic: "+value
}

func TestPanic_ReleasesAndGoesOnToTheRecovery(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		b := prepare(t, patient, alike(func(context.Context) error { panic("at the till") }), connectlock.WithRules(rule(kind)))
		b.serveHandler(b.shop.handler(recovering(), connect.WithInterceptors(b.guard.Interceptor())))
		if got := b.call(t.Context(), protocol, kind, []string{"1"}); !isRecovered(got, "at the till") {
			t.Errorf("got %v, want what the recovery made", got.err)
		}
		if b.held("order:1") {
			t.Error("the lock is still held")
		}
	})
}

func TestToken_IsInTheHeaderOnRequest(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		for _, shown := range []bool{false, true} {
			var token int64
			opts := []any{connectlock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Kind = ruleset.Fenced }))}
			if shown {
				opts = append(opts, connectlock.WithTokenHeader())
			}
			b := setup(t, alike(func(ctx context.Context) error { token = connectlock.Hold(ctx).Token(); return nil }), opts...)
			got := b.call(t.Context(), protocol, kind, []string{"1"})
			b.stop()
			var want []string
			if shown {
				want = []string{strconv.FormatInt(token, 10)}
			}
			if header := got.header.Values(failpolicy.TokenHeader); got.err != nil || token <= 0 || !slices.Equal(header, want) {
				t.Errorf("shown %t: got %v, the header %q and the token %d", shown, got.err, header, token)
			}
		}
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

func TestTwice_OneLockStatusOfTwoGuards(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, protocol, kind string) {
		unlocked := func(key string) connectlock.Option {
			return connectlock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Key, r.OnBusy = key, failpolicy.Proceed }))
		}
		b := prepare(t, patient, &shop{}, unlocked("order:#{req.order_id}"))
		outer, err := connectlock.New(b.locks, unlocked("other"))
		if err != nil {
			t.Fatal(err)
		}
		b.serve(outer.Interceptor(), b.guard.Interceptor())
		b.redis.Take("order:1", time.Hour)
		b.redis.Take("other", time.Hour)
		if got := b.call(t.Context(), protocol, kind, []string{"1"}); got.err != nil || got.lockStatus() != "unlocked" {
			t.Errorf("got x-lock-status %q, error %v", got.lockStatus(), got.err)
		}
	})
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
