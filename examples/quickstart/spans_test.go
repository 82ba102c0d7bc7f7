package main

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/extra/redisotel/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry"
)

// redisotel, the instrumentation of go-redis, sees the commands of locks. Its span of an acquisition is a child of
// lock.acquire.
func TestSpans_RedisBelowLock(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	rdb := redistest.New(t).Client()
	if err := redisotel.InstrumentTracing(rdb, redisotel.WithTracerProvider(provider)); err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.New(telemetry.WithTracerProvider(provider))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close() })
	locks, err := core.New(rdb, core.WithObserver(tel.Observer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	if err := locks.Lock("order:42").Do(ctx, func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	root.End()

	spans := recorder.Ended()
	named := func(name string) int {
		return slices.IndexFunc(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Name() == name })
	}
	acquire, command := named("lock.acquire"), named("evalsha")
	if acquire < 0 || command < 0 {
		t.Fatalf("no lock.acquire or no evalsha among %d spans", len(spans))
	}
	if got, want := spans[command].Parent().SpanID(), spans[acquire].SpanContext().SpanID(); got != want {
		t.Errorf("the parent of the command is %s, want lock.acquire, %s", got, want)
	}
	if spans[acquire].Parent().SpanID() != root.SpanContext().SpanID() {
		t.Error("lock.acquire is not a child of the request")
	}
}
