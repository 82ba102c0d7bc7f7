package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// refusal is one way in which a call is refused.
type refusal struct {
	name   string
	change func(*ruleset.Rule)
	before func(t *testing.T, b *bench)
	id     string
	code   codes.Code
	reason string
	hint   bool
}

func refusals() []refusal {
	taken := func(_ *testing.T, b *bench) { b.redis.Take("order:secret", time.Minute) }
	return []refusal{
		{"busy", nil, taken, "secret", codes.Aborted, failpolicy.Busy.Reason(), true},
		{
			"debounced", func(r *ruleset.Rule) { r.WaitTime, r.Debounce = 0, time.Minute },
			func(t *testing.T, b *bench) {
				t.Helper()
				if got := b.call(t.Context(), b.only, "secret"); got.err != nil {
					t.Fatal(got.err)
				}
			},
			"secret", codes.ResourceExhausted, failpolicy.Debounced.Reason(), true,
		},
		{"backend", nil, func(_ *testing.T, b *bench) { b.redis.Down() }, "secret", codes.Unavailable, failpolicy.Backend.Reason(), true},
		{
			"backend answers", func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }, // which tells busy from backend
			func(t *testing.T, b *bench) {
				t.Helper()
				if err := b.redis.Client().Set(t.Context(), "order:secret", "not a lock", 0).Err(); err != nil {
					t.Fatal(err)
				}
			},
			"secret", codes.Unavailable, failpolicy.Backend.Reason(), true,
		},
		{"key", nil, nil, "", codes.InvalidArgument, failpolicy.Key.Reason(), false},
		{
			"overload", func(r *ruleset.Rule) { r.WaitTime, r.MaxWaiters = ruleset.WaitForever, 1 },
			func(t *testing.T, b *bench) {
				t.Helper()
				taken(t, b)
				go func() { _, _, _ = b.locks.Lock("order:secret").Acquire(t.Context()) }()
				until(t, func() bool { return b.locks.Stats().Waiters == 1 })
			},
			"secret", codes.ResourceExhausted, failpolicy.Overload.Reason(), true,
		},
	}
}

func TestRefusal_CodeDetailsAndHintsOnEveryCallKind(t *testing.T) {
	t.Parallel()
	for _, tt := range refusals() {
		for _, kind := range kinds {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				b, got := tt.provoke(t, kind)
				reasons, retries := got.details()
				if status.Code(got.err) != tt.code || !slices.Equal(reasons, []string{"interlock/" + tt.reason}) {
					t.Errorf("got %v %q, want %v and exactly %q", got.err, reasons, tt.code, tt.reason)
				}
				if (retries == 1) != tt.hint || (pushback(got) > 0) != tt.hint {
					t.Errorf("RetryInfo %d times, pushback %v; want a hint: %v", retries, pushback(got), tt.hint)
				}
				if tt.name != "debounced" && b.shop.ran.Load() != 0 {
					t.Error("the handler ran")
				}
			})
		}
	}
}

// provoke has a call refused.
func (r refusal) provoke(t *testing.T, kind string, opts ...any) (*bench, answer) {
	t.Helper()
	change := r.change
	if change == nil {
		change = func(*ruleset.Rule) {}
	}
	timeout := 10 * time.Second
	if r.name == "backend" { // which has to be waited for
		timeout = 100 * time.Millisecond
	}
	b := prepareWithin(t, timeout, &shop{}, append(opts, grpclock.WithRules(rule(kind, change)))...).checked()
	b.only = kind
	if r.before != nil {
		r.before(t, b)
	}
	return b, b.call(t.Context(), kind, r.id)
}

// pushback is the trailer's hint, 0 without one.
func pushback(a answer) time.Duration {
	values := a.trailer.Get("grpc-retry-pushback-ms")
	if len(values) != 1 {
		return 0
	}
	ms, err := strconv.Atoi(values[0])
	if err != nil {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func TestRefusal_SaysNothingOfKeyOwnerOrRedis(t *testing.T) {
	t.Parallel()
	for _, tt := range refusals() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, got := tt.provoke(t, "Pay")
			text := strings.ToLower(got.err.Error() + prototext.Format(status.Convert(got.err).Proto()) + format(got.header) + format(got.trailer))
			for _, word := range []string{"secret", "order:", "redis", "wrongtype", "operation against", "dial", b.locks.ID(), "order_id"} {
				if strings.Contains(text, word) {
					t.Errorf("the answer contains %q: %s", word, text)
				}
			}
		})
	}
}

func format(md metadata.MD) string {
	var text strings.Builder
	for k, v := range md {
		text.WriteString(k + "=" + strings.Join(v, ",") + " ")
	}
	return text.String()
}

func TestRefusal_MessageAndStatusOfTheRule(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		b := setup(t, &shop{}, grpclock.WithRules(rule(kind, func(r *ruleset.Rule) {
			r.Message = "somebody else is paying this order"
			r.Status.Busy = failpolicy.Status{GRPC: failpolicy.Code(codes.FailedPrecondition)}
		})))
		b.redis.Take("order:1", time.Minute)
		got := b.call(t.Context(), kind, "1")
		if st := status.Convert(got.err); st.Code() != codes.FailedPrecondition || st.Message() != "somebody else is paying this order" {
			t.Errorf("%s: got %v", kind, got.err)
		}
	}
}

func TestRefusal_OuterInterceptorsSeeTheReason(t *testing.T) {
	t.Parallel()
	seen := make(chan error, 1)
	b := prepare(t, &shop{}, grpclock.WithRules(rule("Pay")))
	b.server = b.newServer([]grpc.UnaryServerInterceptor{
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			got, err := handler(ctx, req)
			seen <- err
			return got, err
		},
	}, nil)
	shoppb.RegisterOrdersServer(b.server, b.shop)
	b.serve()
	b.redis.Take("order:1", time.Minute)
	b.call(t.Context(), "Pay", "1")
	err := <-seen
	var refused *aspect.RefusedError
	if !errors.Is(err, core.ErrNotAcquired) || !errors.As(err, &refused) || refused.Cause != failpolicy.Busy {
		t.Errorf("got %v, want one that matches core.ErrNotAcquired and is an aspect.RefusedError", err)
	}
	if strings.Contains(err.Error(), "order:1") {
		t.Errorf("the text %q contains the key", err)
	}
}

func TestStatus_NeverOK(t *testing.T) {
	t.Parallel()
	if got := grpclock.StatusOf(&aspect.RefusedError{Cause: failpolicy.Busy}); got.Code() != codes.Internal {
		t.Errorf("got %v for a refusal without a status, want INTERNAL", got)
	}
}

func TestRetryPolicy_OfARealClientWaitsAsThePushbackSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := make(chan time.Time, 10)
		b := prepare(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.LeaseTime = 10 * time.Second })))
		b.server = b.newServer([]grpc.UnaryServerInterceptor{
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				attempts <- time.Now()
				return handler(ctx, req)
			},
		}, nil)
		shoppb.RegisterOrdersServer(b.server, b.shop)
		b.serve(grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.02s", "backoffMultiplier": 1, "retryableStatusCodes": ["ABORTED"]}}]}`))
		b.redis.Take("order:1", 4*time.Second)
		b.call(t.Context(), "Pay", "1").check(t, "paid 1")
		// Without the trailer the attempts would be 10 to 20 ms apart.
		last := <-attempts
		for n := len(attempts); n > 0; n-- {
			next := <-attempts
			if gap := next.Sub(last); gap < 750*time.Millisecond {
				t.Errorf("an attempt came after %v, sooner than any hint", gap)
			}
			last = next
		}
		b.stop()
	})
}

func TestCaller_GoneOrOutOfTimeIsAskedNoStrategy(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.WaitTime = time.Minute
		r.OnBusy, r.OnBackend, r.OnKey, r.OnOverload = failpolicy.Proceed, failpolicy.Proceed, failpolicy.Proceed, failpolicy.Proceed
	})))
	b.redis.Take("order:1", time.Minute)
	for ctx, want := range map[context.Context]codes.Code{gone: codes.Canceled, late: codes.DeadlineExceeded} {
		_, err := b.guard.UnaryServerInterceptor()(ctx, order("1"), &grpc.UnaryServerInfo{FullMethod: path("Pay")},
			func(context.Context, any) (any, error) {
				t.Error("the handler ran")
				return reply(""), nil
			})
		if status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestCaller_GoneWhileItWaitsLeavesNoWaiter(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		b := setup(t, &shop{}, grpclock.WithRules(rule(kind, func(r *ruleset.Rule) { r.WaitTime = ruleset.WaitForever })))
		b.redis.Take("order:1", time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan answer, 1)
		go func() { done <- b.call(ctx, kind, "1") }()
		until(t, func() bool { return b.locks.Stats().Waiters == 1 })
		cancel()
		if got := <-done; status.Code(got.err) != codes.Canceled {
			t.Errorf("%s: got %v, want CANCELLED", kind, got.err)
		}
		until(t, func() bool { return b.locks.Stats().Waiters == 0 })
		if b.shop.ran.Load() != 0 {
			t.Errorf("%s: the handler ran", kind)
		}
	}
}

func TestWait_EndsBeforeTheCallersDeadline(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		synctest.Test(t, func(t *testing.T) {
			b := setup(t, &shop{}, grpclock.WithRules(rule(kind, func(r *ruleset.Rule) { r.WaitTime = time.Minute })))
			b.redis.Take("order:1", time.Hour)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if got := b.call(ctx, kind, "1"); status.Code(got.err) != codes.Aborted || ctx.Err() != nil {
				t.Errorf("%s: got %v, want ABORTED before the deadline", kind, got.err)
			}
			b.stop()
		})
	}
}
