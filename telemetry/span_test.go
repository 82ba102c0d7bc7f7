package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
)

func TestOutcomesThatAreErrors(t *testing.T) {
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

// redisError is an answer of Redis as go-redis types it.
type redisError struct{}

func (redisError) Error() string { return "OOM command not allowed" }
func (redisError) RedisError()   {}

func TestErrorTypesAreFewWords(t *testing.T) {
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

func TestHoldOutcomes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		result   core.HoldResult
		outcome  string
		isError  bool
		failures float64
	}{
		{core.HoldResult{}, "released", false, 0},
		{core.HoldResult{Left: true}, "left", false, 0},
		{core.HoldResult{Lost: true, Err: core.ErrLost}, "lost", true, 0},
		{core.HoldResult{Err: core.ErrUnavailable}, "failed", true, 1},
		{core.HoldResult{Err: core.ErrNotHeld}, "released", false, 0},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			test.result.HoldInfo = core.HoldInfo{Acquisition: acquisition("order:42", "pay"), Token: 7, Field: "client:1"}
			h.HoldEnd(h.HoldStart(t.Context(), test.result.HoldInfo), test.result)
			s := h.span(t, "lock.hold")
			if got := attrs(s); got["outcome"] != test.outcome || got["token"] != int64(7) || got["holder"] != "client:1" {
				t.Errorf("attributes %v", got)
			}
			if got := s.Status().Code == codes.Error; got != test.isError {
				t.Errorf("error %t", got)
			}
			h.want(t, test.failures, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
			h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", test.outcome)
		})
	}
}

func TestRenewalsThatAreLateOrFail(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay")}
	ctx := h.HoldStart(t.Context(), info)
	h.Renewal(ctx, core.Renewal{HoldInfo: info})
	h.Renewal(ctx, core.Renewal{HoldInfo: info, Late: 250 * time.Millisecond})
	h.Renewal(ctx, core.Renewal{HoldInfo: info, Err: core.ErrUnavailable})
	h.HoldEnd(ctx, core.HoldResult{HoldInfo: info})

	got := events(h.span(t, "lock.hold"))
	if len(got) != 2 || got["renewed_late"]["late"] != 0.25 || got["renewal_failed"]["error.type"] != "unavailable" {
		t.Errorf("events %v", got)
	}
	for _, outcome := range []string{"renewed", "late", "failed"} {
		h.want(t, 1, "distributed_lock.renewals", "rule", "pay", "kind", "reentrant", "outcome", outcome)
	}
}

func TestALeakEndsTheSpan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay")}
	h.Leak(h.HoldStart(t.Context(), info), info)
	s := h.span(t, "lock.hold")
	if attrs(s)["outcome"] != "leaked" || s.Status().Code != codes.Error {
		t.Errorf("attributes %v, status %v", attrs(s), s.Status())
	}
	h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
	if logs := h.logs.records(t); len(logs) != 1 || logs[0]["level"] != "ERROR" {
		t.Errorf("logged %v", logs)
	}
}

func TestALossToldAfterTheReleaseIsOnTheSpan(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay")}
	ctx := h.HoldStart(t.Context(), info)
	h.HoldEnd(ctx, core.HoldResult{HoldInfo: info, Lost: true, Err: core.ErrLost})
	h.Loss(ctx, core.Loss{HoldInfo: info, Cause: core.ErrLost})
	if s := h.span(t, "lock.hold"); len(s.Events()) != 1 || s.Events()[0].Name != "lost" {
		t.Errorf("events %v", s.Events())
	}
	h.want(t, 1, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
}

func TestRawKeysOnlyIfAskedFor(t *testing.T) {
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

// notBelow samples everything but what is below a span of ours.
type notBelow struct{ sdktrace.Sampler }

func (s notBelow) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if trace.SpanContextFromContext(p.ParentContext).IsValid() {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}

func TestALockThatIsNotSampledLeavesTheOuterSpanAlone(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	h := newHarness(t, telemetry.WithTracerProvider(sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(notBelow{sdktrace.AlwaysSample()}))))
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

func TestTwoTelemetriesOnOneClientKeepTheirSpansApart(t *testing.T) {
	t.Parallel()
	first, second := newHarness(t), newHarness(t)
	a := acquisition("order:42", "pay")
	ctx := second.AcquireStart(first.AcquireStart(t.Context(), a), a)
	first.AcquireEnd(ctx, acquired(a))
	second.AcquireEnd(ctx, acquired(a))
	outer, inner := first.span(t, "lock.acquire"), second.span(t, "lock.acquire")
	if inner.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Error("the second is not below the first")
	}
}
