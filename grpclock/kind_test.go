package grpclock_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// wantMisconfigured looks for the answer to a call that the program itself has spoilt.
func wantMisconfigured(t *testing.T, got answer) {
	t.Helper()
	if reasons, _ := got.details(); !slices.Equal(reasons, []string{"interlock/" + failpolicy.ReasonMisconfigured}) {
		t.Errorf("got the reasons %v of %v, want that it is misconfigured", reasons, got.err)
	}
}

// A request that yields no key is not the server's mistake, whatever status the rule has for it.
func TestStatusOfARuleForNoKey_IsNotMisconfigured(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) {
		r.Status.Key = failpolicy.Status{HTTP: 500, GRPC: failpolicy.Code(codes.Internal)}
	})))
	got := b.call(t.Context(), "Pay", "")
	if reasons, _ := got.details(); !slices.Equal(reasons, []string{"interlock/" + failpolicy.Key.Reason()}) || status.Convert(got.err).Message() != failpolicy.Key.Title() {
		t.Errorf("got %v, reasons %v", got.err, reasons)
	}
}

// A reader cannot become a writer: the client learns nothing of it, and the server's own
// interceptors reach the reason.
func TestWriteInsideOfRead_IsInternal(t *testing.T) {
	t.Parallel()
	var reason error
	see := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		got, err := handle(ctx, req)
		reason = err
		return got, err
	}
	s := &shop{}
	b := prepare(t, s, grpclock.WithRules(rule("Pay", as(ruleset.Write))))
	reader, err := grpclock.New(b.locks, grpclock.WithRules(rule("Pay", as(ruleset.Read))))
	if err != nil {
		t.Fatal(err)
	}
	b.server = b.newServer([]grpc.UnaryServerInterceptor{see, reader.UnaryServerInterceptor()}, nil)
	shoppb.RegisterOrdersServer(b.server, s)
	got := b.checked().call(t.Context(), "Pay", "1")
	if st := status.Convert(got.err); st.Code() != codes.Internal || st.Message() != "The request could not be completed" || s.ran.Load() != 0 {
		t.Errorf("got %v, ran %d; want INTERNAL and no run", got.err, s.ran.Load())
	}
	wantMisconfigured(t, got)
	if !errors.Is(reason, core.ErrInvalid) {
		t.Errorf("the interceptor saw %v", reason)
	}
	b.stop()
}
