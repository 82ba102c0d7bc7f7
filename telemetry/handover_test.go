package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock/core"
)

// holdSpans are the ended spans of holds, by their outcomes.
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

// holdsCounted is how many samples hold.duration has, of all outcomes.
func (h *harness) holdsCounted(t *testing.T) uint64 {
	t.Helper()
	data, _ := h.collect(t)["distributed_lock.hold.duration"].Data.(metricdata.Histogram[float64])
	var n uint64
	for _, p := range data.DataPoints {
		n += p.Count
	}
	return n
}

func TestAHoldThatIsHandedOverIsCountedOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	_, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"))
	if err != nil {
		t.Fatal(err)
	}

	_, moved := hold.Handover()
	if spans := h.holdSpans(t); len(spans) != 1 || spans["moved"] == nil {
		t.Errorf("ended at the handover: %v, want one span that is moved", spans)
	}
	if n := h.holdsCounted(t); n != 0 {
		t.Errorf("%d holds were counted while the lock is held", n)
	}
	h.want(t, 1, "distributed_lock.held", "rule", "pay", "kind", "reentrant")

	if err := moved.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := h.holdSpans(t)
	if len(spans) != 2 || spans["released"] == nil {
		t.Fatalf("ended at the release: %v, want one more that is released", spans)
	}
	if spans["released"].Parent().SpanID() != spans["moved"].SpanContext().SpanID() {
		t.Error("the second span is not below the first")
	}
	h.want(t, 1, "distributed_lock.hold.duration", "rule", "pay", "kind", "reentrant", "outcome", "released")
	if n := h.holdsCounted(t); n != 1 {
		t.Errorf("%d holds were counted, want 1", n)
	}
	h.want(t, 0, "distributed_lock.held", "rule", "pay", "kind", "reentrant")
}

// The loss is on the span on which it was told, and is counted with the hold that went on.
func TestALostHoldThatIsHandedOverIsMovedAndAnError(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := core.HoldInfo{Acquisition: acquisition("order:42", "pay")}
	h.HoldEnd(h.HoldStart(t.Context(), info), core.HoldResult{HoldInfo: info, Moved: true, Lost: true})
	s := h.holdSpans(t)["moved"]
	if s == nil || s.Status().Code != codes.Error || attrs(s)["error.type"] != "lost" {
		t.Errorf("got span %v, want one that is moved and an error", s)
	}
	if n := h.holdsCounted(t); n != 0 {
		t.Errorf("%d holds were counted", n)
	}
}
