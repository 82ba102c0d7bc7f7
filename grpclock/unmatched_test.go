package grpclock_test

import (
	"context"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

// unusedStream is a stream without methods.
type unusedStream struct{ grpc.ServerStream }

func TestUnmatched_Allocations(t *testing.T) {
	b := prepare(t, &shop{}, grpclock.WithRules(rule("Pay"), rule("Chat"), ruleset.Rule{Endpoint: ruleset.GRPC("/other.Service/*"), Key: "x"}))
	unary, stream := b.guard.UnaryServerInterceptor(), b.guard.StreamServerInterceptor()
	var req any = order("1")
	unaryInfo := &grpc.UnaryServerInfo{FullMethod: path("Free")}
	streamInfo := &grpc.StreamServerInfo{FullMethod: path("Track"), IsServerStream: true}
	var ss grpc.ServerStream = unusedStream{}
	handle := func(_ context.Context, req any) (any, error) { return req, nil }
	serve := func(any, grpc.ServerStream) error { return nil }
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, _ = unary(ctx, req, unaryInfo, handle)
		_ = stream(nil, ss, streamInfo, serve)
	}); n != 0 {
		t.Errorf("%v allocations for calls without a rule, want 0", n)
	}
}

func TestUnmatched_RunsUntouched(t *testing.T) {
	t.Parallel()
	b := setup(t, &shop{}, grpclock.WithRules(rule("Pay")))
	b.redis.Down()
	b.call(t.Context(), "Free", "1").check(t, "free 1")
	b.call(t.Context(), "Track", "1").check(t, "packed 1", "sent 1")
}

func TestUnmatched_ConcurrentFirstCalls(t *testing.T) {
	t.Parallel()
	b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC("*"), Key: "order:#{req.order_id}"}))
	b.serve()
	var calls sync.WaitGroup
	for _, kind := range kinds {
		for range 5 {
			calls.Go(func() { b.call(t.Context(), kind, "1", "2").check(t, answered[kind]...) })
		}
	}
	calls.Wait()
}

type decisions struct {
	mu   sync.Mutex
	list []aspect.Decision
}

func (d *decisions) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Decision: d.observeDecision}}
}

func (d *decisions) observeDecision(_ context.Context, decision aspect.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, decision)
}

func TestObserver_EveryCall(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		seen := &decisions{}
		b := setup(t, &shop{}, core.WithObserver(seen.observer()), grpclock.WithRules(rule(kind, func(r *ruleset.Rule) { r.Name = "pay-order" })))
		b.call(t.Context(), kind, "1")
		b.redis.Take("order:1", 1<<40)
		b.call(t.Context(), kind, "1")
		b.stop()
		if len(seen.list) != 2 || seen.list[0].Verdict != aspect.VerdictRan || seen.list[1].Cause != failpolicy.Busy ||
			seen.list[1].Rule != "pay-order" || seen.list[1].Endpoint != ruleset.GRPC(path(kind)) {
			t.Errorf("%s: got %+v", kind, seen.list)
		}
	}
}

func BenchmarkUnmatched(b *testing.B) {
	bench := setup(b, &shop{}, grpclock.WithRules(rule("Pay")))
	unary := bench.guard.UnaryServerInterceptor()
	var req any = order("1")
	info := &grpc.UnaryServerInfo{FullMethod: path("Free")}
	handle := func(_ context.Context, req any) (any, error) { return req, nil }
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = unary(ctx, req, info, handle)
	}
}

// BenchmarkDisabled measures a matched rule without its lock and key.
func BenchmarkDisabled(b *testing.B) {
	bench := setup(b, &shop{}, grpclock.WithRules(rule("Pay", func(r *ruleset.Rule) { r.Disabled = true })))
	unary := bench.guard.UnaryServerInterceptor()
	var req any = order("1")
	info := &grpc.UnaryServerInfo{FullMethod: path("Pay")}
	handle := func(_ context.Context, req any) (any, error) { return req, nil }
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = unary(ctx, req, info, handle)
	}
}
