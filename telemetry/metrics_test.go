package telemetry_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/telemetry"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// TestMetrics_MatchCollected compares [telemetry.Metrics] with the metrics that a Telemetry and a page of
// package lockz emit after every event. It fails if a metric is renamed, not described or never emitted.
func TestMetrics_MatchCollected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	newLocks(t, h)
	h.notifyAll(t)
	collected := map[string]map[string]metricdata.Metrics{telemetry.ScopeName: h.collect(t), "github.com/interlock-go/interlock/telemetry/lockz": collectFromPage(t)}
	for _, want := range telemetry.Metrics() {
		m, ok := collected[want.Scope][want.Name]
		if !ok {
			t.Errorf("%s was not collected from %s", want.Name, want.Scope)
			continue
		}
		delete(collected[want.Scope], want.Name)
		labels := labelNames(m)
		slices.Sort(want.Labels)
		if typ := typeOf(t, m); typ != want.Type || m.Unit != want.Unit || m.Description != want.Meaning || !slices.Equal(labels, want.Labels) {
			t.Errorf("%s is a %s of %q with %q, %q; described as %+v", m.Name, typ, m.Unit, labels, m.Description, want)
		}
		checkUnit(t, want)
		if got := bounds(m); !slices.Equal(got, want.Buckets) {
			t.Errorf("%s has the buckets %v, described are %v", m.Name, got, want.Buckets)
		}
	}
	for scope, left := range collected {
		for name := range left {
			t.Errorf("%s of %s is not described", name, scope)
		}
	}
}

// collectFromPage returns the metrics of a page of package lockz.
func collectFromPage(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	if _, err := lockz.New(lockz.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))); err != nil {
		t.Fatal(err)
	}
	return collectFrom(t, reader, "github.com/interlock-go/interlock/telemetry/lockz")
}

// checkUnit requires s as the unit of times, 1 for ratios, and otherwise the counted thing in the singular.
func checkUnit(t *testing.T, m telemetry.Metric) {
	t.Helper()
	want := `\{[a-z]*[^s]\}`
	switch last := m.Name[strings.LastIndexAny(m.Name, "._")+1:]; last {
	case "duration", "time", "wait", "hold", "timestamp":
		want = "s"
	case "ratio":
		want = "1"
	}
	if !regexp.MustCompile("^" + want + "$").MatchString(m.Unit) {
		t.Errorf("%s is in %q, want %s", m.Name, m.Unit, want)
	}
}

// The caller may change what Metrics returns.
func TestMetrics_ReturnsCopies(t *testing.T) {
	t.Parallel()
	first := telemetry.Metrics()
	first[0].Labels[0], first[0].Buckets[0] = "changed", -1
	if again := telemetry.Metrics(); again[0].Labels[0] == "changed" || again[0].Buckets[0] == -1 {
		t.Error("a change of a returned list affects the next call")
	}
}

func TestMetrics_DurationsInSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := acquisition("order:42", "pay")
	h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Waited: 1500 * time.Millisecond, Err: errors.New("taken")})
	data, ok := h.collect(t)["distributed_lock.wait.duration"].Data.(metricdata.Histogram[float64])
	if !ok || data.DataPoints[0].Sum != 1.5 {
		t.Errorf("1500 ms were recorded as %+v", data.DataPoints)
	}
}

// Wait and hold times have an exemplar for each sampled acquisition. Round trips have an exemplar only if
// Redis is slow, and the remaining lease has one only if little of the lease was left.
func TestMetrics_Exemplars(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trip, left time.Duration
		want       []string
	}{
		"usual":             {time.Millisecond - 1, 31 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration"}},
		"Redis is slow":     {time.Millisecond, 31 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration", "distributed_lock.acquire.duration"}},
		"the lease is used": {time.Microsecond, 30 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration", remainingMetric}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			r := acquiredResult(acquisition("order:42", "pay"))
			r.RoundTrip = tt.trip
			h.AcquireEnd(h.AcquireStart(t.Context(), r.Acquisition), r)
			info := core.HoldInfo{Acquisition: r.Acquisition, Lease: time.Minute}
			h.HoldEnd(h.HoldStart(t.Context(), info), core.HoldResult{HoldInfo: info, Remaining: tt.left})
			collected := h.collect(t)
			with := 0
			for _, m := range collected {
				if data, ok := m.Data.(metricdata.Histogram[float64]); ok && len(data.DataPoints[0].Exemplars) > 0 {
					with++
				}
			}
			if with != len(tt.want) {
				t.Errorf("%d histograms have exemplars, want %d", with, len(tt.want))
			}
			for _, name := range tt.want {
				if data, ok := collected[name].Data.(metricdata.Histogram[float64]); !ok || len(data.DataPoints[0].Exemplars) != 1 {
					t.Errorf("%s has no exemplar", name)
				}
			}
		})
	}
}

func typeOf(t *testing.T, m metricdata.Metrics) string {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return "counter"
		}
		return "updowncounter"
	case metricdata.Gauge[int64], metricdata.Gauge[float64]:
		return "gauge"
	case metricdata.Histogram[float64]:
		return "histogram"
	default:
		t.Errorf("%s is a %T", m.Name, m.Data)
		return ""
	}
}

// bounds returns the bucket boundaries of a histogram.
func bounds(m metricdata.Metrics) []float64 {
	if data, ok := m.Data.(metricdata.Histogram[float64]); ok {
		return data.DataPoints[0].Bounds
	}
	return nil
}

func labelNames(m metricdata.Metrics) []string {
	var names []string
	for _, kv := range labelValues(m) {
		names = append(names, string(kv.Key))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
