package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

func TestRefusal_ReasonForOuterInterceptors(t *testing.T) {
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
		t.Errorf("got %v, want an aspect.RefusedError that matches core.ErrNotAcquired", err)
	}
	if strings.Contains(err.Error(), "order:1") {
		t.Errorf("the text %q contains the key", err)
	}
}

func TestRefusal_StatusIsNeverOK(t *testing.T) {
	t.Parallel()
	if got := grpclock.StatusOf(&aspect.RefusedError{Cause: failpolicy.Busy}); got.Code() != codes.Internal {
		t.Errorf("got %v for a refusal without a status, want INTERNAL", got)
	}
}

func TestRefusal_ClientObeysPushback(t *testing.T) {
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

func TestRefusal_CanceledCallerGetsNoStrategy(t *testing.T) {
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

func TestRefusal_WaitEndsBeforeDeadline(t *testing.T) {
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

// wantMisconfigured checks that the answer blames the program, not the request.
func wantMisconfigured(t *testing.T, got answer) {
	t.Helper()
	if reasons, _ := got.details(); !slices.Equal(reasons, []string{"interlock/" + failpolicy.ReasonMisconfigured}) {
		t.Errorf("got the reasons %v of %v, want that it is misconfigured", reasons, got.err)
	}
}

// A request that yields no key is not the server's mistake, whatever status the rule has for such requests.
func TestRefusal_StatusForNoKey(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.Status.Key = failpolicy.Status{HTTP: 500, GRPC: failpolicy.Code(codes.Internal)}
	})))
	got := b.call(t.Context(), "Pay", "")
	if reasons, _ := got.details(); !slices.Equal(reasons, []string{"interlock/" + failpolicy.Key.Reason()}) || status.Convert(got.err).Message() != failpolicy.Key.Title() {
		t.Errorf("got %v, reasons %v", got.err, reasons)
	}
}

// A reader cannot become a writer. The client does not see that reason; the interceptors of the server can
// unwrap it.
func TestRefusal_WriteInsideRead(t *testing.T) {
	t.Parallel()
	var reason error
	see := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		got, err := handle(ctx, req)
		reason = err
		return got, err
	}
	s := &shop{}
	b := prepare(t, s, grpclock.WithRules(rule("Pay", kindOf(ruleset.Write))))
	reader, err := grpclock.New(b.locks, grpclock.WithRules(rule("Pay", kindOf(ruleset.Read))))
	if err != nil {
		t.Fatal(err)
	}
	b.server = b.newServer([]grpc.UnaryServerInterceptor{see, reader.UnaryServerInterceptor()}, nil)
	shoppb.RegisterOrdersServer(b.server, s)
	got := b.checkAndServe().call(t.Context(), "Pay", "1")
	if st := status.Convert(got.err); st.Code() != codes.Internal || st.Message() != "The request could not be completed" || s.ran.Load() != 0 {
		t.Errorf("got %v, ran %d; want INTERNAL and no run", got.err, s.ran.Load())
	}
	wantMisconfigured(t, got)
	if !errors.Is(reason, core.ErrInvalid) {
		t.Errorf("the interceptor saw %v", reason)
	}
	b.stop()
}
