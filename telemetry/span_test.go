package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/telemetry"
)

func TestSpan_ChildrenOfTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks := newTracedLocks(t, h, core.WithPrefix("shop:"))

		ctx, request := h.request(t)
		err := locks.Lock("order:42").Do(ctx, func(ctx context.Context) error {
			_, work := h.tracer.Start(ctx, "work")
			work.End()
			return nil
		}, core.WaitTime(time.Second), core.Label("pay"))
		request.End()
		if err != nil {
			t.Fatal(err)
		}

		acquire, hold, work := h.span(t, "lock.acquire"), h.span(t, "lock.hold"), h.span(t, "work")
		parent := request.SpanContext().SpanID()
		if acquire.Parent().SpanID() != parent || hold.Parent().SpanID() != parent {
			t.Error("lock.acquire and lock.hold are not both children of the request's span")
		}
		if work.Parent().SpanID() != hold.SpanContext().SpanID() {
			t.Error("the work is not a child of lock.hold")
		}
		wantAttrs(t, acquire, map[string]any{
			"rule": "pay", "kind": "reentrant", "outcome": "acquired", "attempts": int64(1), "reentry": false,
			"key_hash": core.KeyHash("shop:order:42"), "holder": attrs(hold)["holder"],
		})
		wantAttrs(t, hold, map[string]any{
			"rule": "pay", "kind": "reentrant", "outcome": "released", "reentry": false,
			"key_hash": core.KeyHash("shop:order:42"), "holder": attrs(acquire)["holder"],
		})
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "acquired")
		h.want(t, 1, "distributed_lock.acquire.duration", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "released")
		h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
	})
}

// A job has no span around its lock. Its acquisition and its hold are in one trace, whose sampling is decided once.
func TestSpan_Job(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sampler sdktrace.Sampler
		spans   int
	}{
		"sampled":     {sdktrace.AlwaysSample(), 4},
		"not sampled": {sdktrace.ParentBased(notNamed{"lock.acquire"}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				recorder := tracetest.NewSpanRecorder()
				h := newHarness(t, telemetry.WithTracerProvider(sdktrace.NewTracerProvider(
					sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(test.sampler))))
				locks, server := newLocks(t, h)
				for range 2 { // in synctest both start at the same time
					if err := locks.Lock("job").Do(t.Context(), func(context.Context) error { return nil }); err != nil {
						t.Fatal(err)
					}
				}
				spans := recorder.Ended() // lock.acquire and lock.hold of each job
				if len(spans) != test.spans {
					t.Fatalf("%d spans, want %d", len(spans), test.spans)
				}
				for i := 0; i < len(spans); i += 2 {
					acquire, hold := spans[i], spans[i+1]
					if hold.Name() != "lock.hold" || hold.Parent().SpanID() != acquire.SpanContext().SpanID() ||
						hold.SpanContext().TraceID() != acquire.SpanContext().TraceID() {
						t.Errorf("%s is not a child of %s", hold.Name(), acquire.Name())
					}
				}
				server.Take("job", time.Hour)
				if err := locks.Lock("job").Do(t.Context(), func(context.Context) error { return nil }, core.WaitTime(0)); err == nil {
					t.Error("the lock is not taken")
				}
				if err := locks.PlainSemaphore("workers").AddPermits(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if err := locks.PlainSemaphore("workers").Acquire(t.Context(), 1); err != nil { // without a hold
					t.Fatal(err)
				}
				if n := h.Telemetry.Roots(); n != 0 {
					t.Errorf("%d acquisitions are kept", n)
				}
			})
		})
	}
}

// notNamed is a sampler that drops the spans with a name.
type notNamed struct{ name string }

func (s notNamed) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == s.name {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (notNamed) Description() string { return "notNamed" }

func TestSpan_ReentryAndNestedLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		err := locks.Lock("a").Do(t.Context(), func(ctx context.Context) error {
			return locks.Lock("a").Do(ctx, func(ctx context.Context) error {
				return locks.Lock("b").Do(ctx, func(context.Context) error {
					h.want(t, 1, "distributed_lock.held", "rule", "outer", "kind", "reentrant")
					h.want(t, 0, "distributed_lock.held", "rule", "inner", "kind", "reentrant")
					return nil
				}, core.Label("other-lock"))
			}, core.Label("inner"))
		}, core.Label("outer"))
		if err != nil {
			t.Fatal(err)
		}
		parents := make(map[string]string)
		ids := make(map[string]string)
		for _, s := range h.spans.Ended() {
			name := s.Name() + " " + attrs(s)["rule"].(string)
			ids[s.SpanContext().SpanID().String()] = name
			parents[name] = s.Parent().SpanID().String()
		}
		for child, parent := range map[string]string{
			"lock.hold inner": "lock.hold outer", "lock.acquire inner": "lock.hold outer",
			"lock.hold other-lock": "lock.hold inner", "lock.acquire other-lock": "lock.hold inner",
		} {
			if got := ids[parents[child]]; got != parent {
				t.Errorf("%s is a child of %q, want %q", child, got, parent)
			}
		}
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "inner", "kind", "reentrant", "outcome", "reentered")
		h.want(t, 0, "distributed_lock.held", "rule", "outer", "kind", "reentrant")
	})
}

// tracingHook is a hook that starts a span for every command and pipeline, like redisotel. Every span takes roundTrip,
// because a bubble has no network.
type tracingHook struct{ tracer trace.Tracer }

const roundTrip = time.Millisecond

func (tracingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h tracingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, span := h.tracer.Start(ctx, cmd.FullName())
		defer span.End()
		time.Sleep(roundTrip) // in the time of the bubble
		return next(ctx, cmd)
	}
}

func (h tracingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, span := h.tracer.Start(ctx, "pipeline")
		defer span.End()
		time.Sleep(roundTrip) // in the time of the bubble
		return next(ctx, cmds)
	}
}

// newTracedLocks creates a lock client on a Redis client with tracing.
func newTracedLocks(t *testing.T, h *harness, opts ...core.Option) *core.Client {
	t.Helper()
	rdb := redistest.New(t).Client()
	rdb.AddHook(tracingHook{h.tracer})
	locks, err := core.New(rdb, append(opts, core.WithObserver(h.Telemetry.Observer()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.WithoutCancel(t.Context())) })
	return locks
}

// The spans of Redis commands are children of the lock.acquire that sent them, even if callers share a pipeline. The spans
// of a release are children of the span in the context of the release. Time is virtual: if a machine is so slow that an
// acquire gets no answer in time, the reaper sends a separate command, whose span has no parent.
func TestSpan_CommandsBelowAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks := newTracedLocks(t, h)
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
				t.Error("a lock.acquire has no command as a child")
			}
		}
		if acquires != callers {
			t.Errorf("%d spans lock.acquire, want %d", acquires, callers)
		}
		for _, s := range below[trace.SpanID{}] {
			if s.Name() == "evalsha" || s.Name() == "pipeline" {
				t.Errorf("a span %s has no parent", s.Name())
			}
		}
	})
}

func TestSpan_StatusOfOutcomes(t *testing.T) {
	t.Parallel()
	for outcome, isError := range map[core.Outcome]bool{
		core.OutcomeAcquired: false, core.OutcomeReentered: false, core.OutcomeBusy: false, core.OutcomeOverload: false,
		core.OutcomeKey: false, core.OutcomeCanceled: false, core.OutcomeBackend: true,
	} {
		h := newHarness(t)
		a := acquisition("order:42", "pay")
		h.AcquireEnd(h.AcquireStart(t.Context(), a), core.AcquireResult{Acquisition: a, Outcome: outcome, Err: core.ErrUnavailable})
		if got := h.span(t, "lock.acquire").Status().Code == codes.Error; got != isError {
			t.Errorf("%s: error %t", outcome, got)
		}
	}
}

func TestSpan_ErrorTypes(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"timeout":     fmt.Errorf("%w: %w", core.ErrUnavailable, context.DeadlineExceeded),
		"redis_error": fmt.Errorf("%w: %w", core.ErrUnavailable, redisError{}),
		"unavailable": fmt.Errorf("%w: connection refused", core.ErrUnavailable),
		"_OTHER":      errors.New("order:42"),
	} {
		h := newHarness(t)
		a := acquisition("order:42", "pay")
		h.AcquireEnd(h.AcquireStart(t.Context(), a), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Err: err})
		s := h.span(t, "lock.acquire")
		if got := attrs(s)["error.type"]; got != want || s.Status().Description != "redis unavailable" {
			t.Errorf("%v: error.type %v, status %q", err, got, s.Status().Description)
		}
	}
}

func TestSpan_RawKeys(t *testing.T) {
	t.Parallel()
	hashed, raw := newHarness(t), newHarness(t, telemetry.WithRawKeys())
	for _, h := range []*harness{hashed, raw} {
		h.lock(t, acquisition("order:42", "pay"))
	}
	for _, name := range []string{"lock.acquire", "lock.hold"} {
		got := attrs(hashed.span(t, name))
		if got["key"] != nil || got["key_hash"] != core.KeyHash("order:42") {
			t.Errorf("hashed: %v", got)
		}
		got = attrs(raw.span(t, name))
		if got["key"] != "order:42" || got["key_hash"] != nil {
			t.Errorf("raw: %v", got)
		}
	}
}

// rootsOnly samples spans without a parent.
type rootsOnly struct{ sdktrace.Sampler }

func (s rootsOnly) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if trace.SpanContextFromContext(p.ParentContext).IsValid() {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

func TestSpan_UnsampledInnerLock(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	h := newHarness(t, telemetry.WithTracerProvider(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(rootsOnly{sdktrace.AlwaysSample()}))))
	outer := core.HoldInfo{Acquisition: acquisition("a", "outer")}
	ctx := h.HoldStart(t.Context(), outer)
	inner := core.HoldInfo{Acquisition: acquisition("b", "inner")}
	innerCtx := h.HoldStart(ctx, inner)
	h.Loss(innerCtx, core.Loss{HoldInfo: inner, Cause: core.ErrLost})
	h.HoldEnd(innerCtx, core.HoldResult{HoldInfo: inner, Lost: true})
	if n := len(spans.Ended()); n != 0 {
		t.Fatalf("%d spans ended with the inner lock", n)
	}
	h.HoldEnd(ctx, core.HoldResult{HoldInfo: outer})
	if s := spans.Ended(); len(s) != 1 || s[0].Status().Code != codes.Unset || attrs(s[0])["rule"] != "outer" {
		t.Errorf("spans %v", s)
	}
}

func TestSpan_TwoTelemetries(t *testing.T) {
	t.Parallel()
	first, second := newHarness(t), newHarness(t)
	a := acquisition("order:42", "pay")
	ctx := second.AcquireStart(first.AcquireStart(t.Context(), a), a)
	first.AcquireEnd(ctx, acquiredResult(a))
	second.AcquireEnd(ctx, acquiredResult(a))
	outer, inner := first.span(t, "lock.acquire"), second.span(t, "lock.acquire")
	if inner.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Error("the span of the second Telemetry is not a child of the span of the first")
	}
}
