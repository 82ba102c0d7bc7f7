package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
)

// TestTenThousandKeysAddNoSeries counts the series of all metrics of a Telemetry, each of which has at least
// one, before and after everything has happened to 10,000 keys.
func TestTenThousandKeysAddNoSeries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	newLocks(t, h)
	h.everythingOf(t, "order:0")
	ours := slices.DeleteFunc(telemetry.Metrics(), func(m telemetry.Metric) bool { return m.Scope != telemetry.ScopeName })
	if got, want := len(h.collect(t)), len(ours); got != want {
		t.Fatalf("%d metrics were driven, there are %d", got, want)
	}
	before := h.countSeries(t)
	for i := range 10_000 {
		h.everythingOf(t, fmt.Sprintf("order:%d", i))
	}
	if after := h.countSeries(t); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func TestRulesAreBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, telemetry.WithMaxRules(3))
	for i := range 3 {
		h.lock(t, acquisition("k", fmt.Sprintf("rule-%d", i)))
	}
	for i := range 500 {
		h.lock(t, acquisition("k", fmt.Sprintf("user-%d", i)))
	}
	h.lock(t, acquisition("k", "rule-1"))
	h.want(t, 2, "distributed_lock.wait.duration", "rule", "rule-1", "kind", "reentrant", "outcome", "acquired")
	h.want(t, 500, "distributed_lock.wait.duration", "rule", "other", "kind", "reentrant", "outcome", "acquired")
	h.want(t, 0, "distributed_lock.held", "rule", "other", "kind", "reentrant")
	if n := len(seriesOf(h.collect(t)["distributed_lock.wait.duration"])); n != 4 {
		t.Errorf("%d series, want 4", n)
	}
}

func TestAcquisitionsWithoutALabelAreRuleNone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.lock(t, acquisition("k", ""))
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "none", "kind", "reentrant", "outcome", "acquired")
}

func TestLabelsAreUTF8(t *testing.T) {
	t.Parallel()
	h := newHarness(t, telemetry.WithRawKeys())
	h.lock(t, acquisition("order:\xff", "pay\xff"))
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay\uFFFD", "kind", "reentrant", "outcome", "acquired")
	if got := attrs(h.span(t, "lock.acquire"))["key"]; got != "order:\uFFFD" {
		t.Errorf("key %q", got)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	h := newHarness(t, noTraces())
	ctx := t.Context()
	a := acquisition("order:42", "pay")
	lock := func() {
		h.AcquireEnd(h.AcquireStart(ctx, a), acquired(a))
		info := core.HoldInfo{Acquisition: a, Acquired: a.Start}
		h.HoldEnd(h.HoldStart(ctx, info), core.HoldResult{HoldInfo: info, Held: time.Millisecond})
	}
	lock()
	if n := testing.AllocsPerRun(200, lock); n != 0 {
		t.Errorf("%v allocations per lock with metrics only", n)
	}
	busy := core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Err: errors.New("taken")}
	if n := testing.AllocsPerRun(200, func() { h.AcquireEnd(ctx, busy) }); n != 0 {
		t.Errorf("%v allocations per refusal", n)
	}
}

// lock tells h of one acquisition and its hold.
func (h *harness) lock(t testing.TB, a core.Acquisition) {
	ctx := t.Context()
	h.AcquireEnd(h.AcquireStart(ctx, a), acquired(a))
	info := core.HoldInfo{Acquisition: a, Acquired: a.Start, Field: "client:1"}
	h.HoldEnd(h.HoldStart(ctx, info), core.HoldResult{HoldInfo: info, Held: time.Millisecond})
}

func acquisition(key, label string) core.Acquisition {
	return core.Acquisition{Key: key, Keys: 1, Kind: core.KindReentrant, Label: label, Start: time.Now()}
}

func acquired(a core.Acquisition) core.AcquireResult {
	return core.AcquireResult{
		Acquisition: a, Outcome: core.OutcomeAcquired, Attempts: 1, Field: "client:1",
		Waited: time.Millisecond, RoundTrip: time.Millisecond,
	}
}

func (h *harness) countSeries(t *testing.T) int {
	t.Helper()
	n := 0
	for _, m := range h.collect(t) {
		n += len(seriesOf(m))
	}
	return n
}

// labelValues are the labels of all series of a metric.
func labelValues(m metricdata.Metrics) []attribute.KeyValue {
	var all []attribute.KeyValue
	add := func(s attribute.Set) { all = append(all, s.ToSlice()...) }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes)
		}
	}
	return all
}
