package telemetry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/redistest"
)

func TestHold_Outcomes(t *testing.T) {
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
		{core.HoldResult{HeldTooLong: true, Err: core.ErrHeldTooLong}, "held_too_long", true, 0},
		{core.HoldResult{HeldTooLong: true, Lost: true, Err: core.ErrHeldTooLong}, "held_too_long", true, 0},
		{core.HoldResult{HeldTooLong: true, Err: core.ErrUnavailable}, "failed", true, 1},
		{core.HoldResult{HeldTooLong: true, Left: true, Err: core.ErrClosed}, "left", true, 0},
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

func TestHold_Renewals(t *testing.T) {
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

func TestHold_Leak(t *testing.T) {
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

func TestHold_Lost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, server := newLocks(t, h)
		ctx, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.LeaseTime(50*time.Millisecond), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		server.Expire("order:42")
		<-ctx.Done()
		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Fatal(err)
		}
		eventually(t, func() bool { return len(h.logs.records(t)) > 0 }) // the record is written last, after the context is canceled
		h.want(t, 1, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "lost")
		s := h.span(t, "lock.hold")
		if _, ok := events(s)["lost"]; !ok || s.Status().Code != codes.Error || attrs(s)["error.type"] != "lost" {
			t.Errorf("events %v, status %v, attributes %v", events(s), s.Status(), attrs(s))
		}
		logs := h.logs.records(t)
		if len(logs) != 1 || logs[0]["msg"] != "lock lost under its holder" || logs[0]["key_hash"] != core.KeyHash("order:42") {
			t.Errorf("logged %v", logs)
		}
	})
}

func TestHold_LossAfterRelease(t *testing.T) {
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

// A hold that was held for too long is not counted as lost. Until its release it blocks other callers, and waiters are
// linked to it.
func TestHold_HeldTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		ctx, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.MaxHold(time.Minute), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		synctest.Wait()
		logs := h.logs.records(t)
		if len(logs) != 1 || logs[0]["level"] != "WARN" || logs[0]["msg"] != "lock held too long: it is not renewed any more" || logs[0]["key_hash"] != core.KeyHash("order:42") {
			t.Errorf("logged %v", logs)
		}
		h.want(t, 1, "distributed_lock.held_too_long", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
		if _, _, err := locks.Lock("order:42").Acquire(t.Context(), core.WaitTime(0)); !errors.Is(err, core.ErrNotAcquired) {
			t.Fatal(err)
		}
		waiter := h.spans.Ended()[1] // after the span of the acquisition

		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrHeldTooLong) {
			t.Fatal(err)
		}
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "held_too_long")
		h.want(t, 1, "distributed_lock.held_too_long", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
		s := h.span(t, "lock.hold")
		if _, ok := events(s)["held_too_long"]; !ok || len(s.Events()) != 1 || s.Status().Code != codes.Error || attrs(s)["error.type"] != "held_too_long" {
			t.Errorf("events %v, status %v, attributes %v", events(s), s.Status(), attrs(s))
		}
		if links := waiter.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != s.SpanContext().SpanID() {
			t.Errorf("the waiter has the links %v, want one to the hold", links)
		}
		if logs := h.logs.records(t); len(logs) != 1 {
			t.Errorf("logged %v", logs)
		}
	})
}

// If a client is closed, its holds are not lost, because their keys stay in Redis until the leases expire. So
// no metric of losses counts them. One warning names the hold.
func TestHold_LeftByClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		server := redistest.New(t)
		locks, err := core.New(server.Client(), core.WithObserver(h.Telemetry.Observer()))
		if err != nil {
			t.Fatal(err)
		}
		ctx, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}
		patience, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := locks.Close(patience); !errors.Is(err, core.ErrClosed) {
			t.Fatal(err)
		}
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrClosed) || errors.Is(cause, core.ErrLost) {
			t.Errorf("the context ended with %v", cause)
		}
		logs := h.logs.records(t)
		if len(logs) != 1 || logs[0]["level"] != "WARN" || logs[0]["msg"] != "lock left to its lease: the client was closed under its holder" ||
			logs[0]["rule"] != "pay" || logs[0]["key_hash"] != core.KeyHash("order:42") || logs[0]["holder"] != hold.Field() {
			t.Errorf("Close logged %v", logs)
		}
		h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.held", "rule", "pay", "kind", "reentrant")

		if err := hold.Release(t.Context()); !errors.Is(err, core.ErrClosed) {
			t.Fatal(err)
		}
		h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
		h.want(t, 0, "distributed_lock.release.failures", "rule", "pay", "kind", "reentrant")
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "left")
		h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
		if left, ok := h.value(t, "distributed_lock.lease.remaining.ratio", "rule", "pay", "kind", "reentrant"); ok {
			t.Errorf("%v values of the remaining lease, want none after Close", left)
		}
		s := h.span(t, "lock.hold")
		if _, lost := events(s)["lost"]; lost || s.Status().Code != codes.Unset || attrs(s)["outcome"] != "left" {
			t.Errorf("events %v, status %v, attributes %v", events(s), s.Status(), attrs(s))
		}
		if logs := h.logs.records(t); len(logs) != 1 {
			t.Errorf("logged %v", logs)
		}
	})
}

// holdSpans returns the ended spans of holds by their outcomes.
func (h *harness) holdSpans(t *testing.T) map[string]sdktrace.ReadOnlySpan {
	t.Helper()
	found := make(map[string]sdktrace.ReadOnlySpan)
	for _, s := range h.spans.Ended() {
		if s.Name() != "lock.hold" {
			continue
		}
		outcome, _ := attrs(s)["outcome"].(string)
		if found[outcome] != nil {
			t.Errorf("two holds are %q", outcome)
		}
		found[outcome] = s
	}
	return found
}

// countHolds returns how many samples hold.duration has for all outcomes.
func (h *harness) countHolds(t *testing.T) uint64 {
	t.Helper()
	data, _ := h.collect(t)["distributed_lock.hold.duration"].Data.(metricdata.Histogram[float64])
	var n uint64
	for _, p := range data.DataPoints {
		n += p.Count
	}
	return n
}

func TestHold_HandoverCountsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		_, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"))
		if err != nil {
			t.Fatal(err)
		}

		_, moved := hold.Handover()
		if spans := h.holdSpans(t); len(spans) != 1 || spans["moved"] == nil {
			t.Errorf("ended at the handover: %v, want one span with the outcome moved", spans)
		}
		if n := h.countHolds(t); n != 0 {
			t.Errorf("%d holds were counted while the lock is held", n)
		}
		h.want(t, 1, "distributed_lock.held", "rule", "pay", "kind", "reentrant")

		if err := moved.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		spans := h.holdSpans(t)
		if len(spans) != 2 || spans["released"] == nil {
			t.Fatalf("ended at the release: %v, want one more span with the outcome released", spans)
		}
		if spans["released"].Parent().SpanID() != spans["moved"].SpanContext().SpanID() {
			t.Error("the second span is not a child of the first")
		}
		h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "released")
		if n := h.countHolds(t); n != 1 {
			t.Errorf("%d holds were counted, want 1", n)
		}
		h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
	})
}

// If a hold is lost before its Handover, its span has an error. The hold that continues counts the loss.
func TestHold_HandoverOfALostHold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay")}
	h.HoldEnd(h.HoldStart(t.Context(), info), core.HoldResult{HoldInfo: info, Moved: true, Lost: true})
	s := h.holdSpans(t)["moved"]
	if s == nil || s.Status().Code != codes.Error || attrs(s)["error.type"] != "lost" {
		t.Errorf("got span %v, want the outcome moved and an error", s)
	}
	if n := h.countHolds(t); n != 0 {
		t.Errorf("%d holds were counted", n)
	}
}

const remainingMetric = "distributed_lock.lease.remaining.ratio"

// lease.remaining.ratio records the remaining part of the lease: 0 if the lock was lost, never more than 1. A
// re-entry and a moved hold record nothing, because they end no lease.
func TestHold_RemainingLease(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  core.HoldResult
		want float64 // negative: nothing is recorded
	}{
		"a quarter":                 {core.HoldResult{Remaining: 15 * time.Second}, 0.25},
		"lost":                      {core.HoldResult{Remaining: 15 * time.Second, Lost: true}, 0},
		"held for too long":         {core.HoldResult{Remaining: 15 * time.Second, HeldTooLong: true}, -1},
		"longer than configured":    {core.HoldResult{Remaining: 2 * time.Minute}, 1},
		"expired":                   {core.HoldResult{Remaining: -time.Second}, 0},
		"release not confirmed":     {core.HoldResult{Remaining: 30 * time.Second, Err: core.ErrUnavailable}, 0.5},
		"moved":                     {core.HoldResult{Remaining: 30 * time.Second, Moved: true}, -1},
		"a re-entry":                {core.HoldResult{Remaining: 30 * time.Second, HoldInfo: core.HoldInfo{Reentrant: true}}, -1},
		"of a hold without a lease": {core.HoldResult{Remaining: 30 * time.Second, HoldInfo: core.HoldInfo{Lease: -1}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			tt.end.Acquisition = acquisition("order:42", "pay")
			if tt.end.Lease == 0 {
				tt.end.Lease = time.Minute
			}
			h.HoldEnd(t.Context(), tt.end)
			data, ok := h.collect(t)[remainingMetric].Data.(metricdata.Histogram[float64])
			switch {
			case ok != (tt.want >= 0):
				t.Errorf("recorded: %t, want %t", ok, tt.want >= 0)
			case ok && math.Abs(data.DataPoints[0].Sum-tt.want) > 1e-9:
				t.Errorf("got %v, want %v", data.DataPoints[0].Sum, tt.want)
			}
		})
	}
}
