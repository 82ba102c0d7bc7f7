package telemetry_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

// tracing is a hook that makes a span of every command and pipeline, as redisotel does.
type tracing struct{ tracer trace.Tracer }

func (tracing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h tracing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, span := h.tracer.Start(ctx, cmd.FullName())
		defer span.End()
		return next(ctx, cmd)
	}
}

func (h tracing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, span := h.tracer.Start(ctx, "pipeline")
		defer span.End()
		return next(ctx, cmds)
	}
}

// tracedLocks are locks on a client with tracing.
func tracedLocks(t *testing.T, h *harness) *core.Client {
	t.Helper()
	rdb := redistest.New(t).Client()
	rdb.AddHook(tracing{h.tracer})
	locks, err := core.New(rdb, core.WithObserver(h.Telemetry.Observer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	return locks
}

// Spans of the Redis client are below lock.acquire, each below its own, also when callers
// share a pipeline; those of a release are below the span in the context of the release.
func TestEndToEndSpansOfCommandsAreBelowLockAcquire(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks := tracedLocks(t, h)
	const callers = 16
	ctx, request := h.request(t)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			err := locks.Lock(string(rune('a'+i))).Do(ctx, func(context.Context) error { return nil }, core.WaitTime(20*time.Second))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	request.End()

	below := make(map[trace.SpanID][]sdktrace.ReadOnlySpan)
	for _, s := range h.spans.Ended() {
		below[s.Parent().SpanID()] = append(below[s.Parent().SpanID()], s)
	}
	acquires := 0
	for _, s := range below[request.SpanContext().SpanID()] {
		if s.Name() != "lock.acquire" {
			continue
		}
		acquires++
		if len(below[s.SpanContext().SpanID()]) == 0 {
			t.Error("no command is below a lock.acquire")
		}
	}
	if acquires != callers {
		t.Errorf("%d spans lock.acquire, want %d", acquires, callers)
	}
	for _, s := range below[trace.SpanID{}] {
		if s.Name() == "evalsha" || s.Name() == "pipeline" {
			t.Errorf("a span %s is below nothing", s.Name())
		}
	}
}
