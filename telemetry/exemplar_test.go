package telemetry_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
)

// A sampled acquisition leads to its trace from its wait and hold times in any case, and from its
// round trip and the lease that was left where somebody would ask.
func TestExemplarsAreThoseThatSomebodyAsksFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trip, left time.Duration
		want       []string
	}{
		"as it should be":   {time.Millisecond - 1, 31 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration"}},
		"Redis is slow":     {time.Millisecond, 31 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration", "distributed_lock.acquire.duration"}},
		"the lease is used": {time.Microsecond, 30 * time.Second, []string{"distributed_lock.wait.duration", "distributed_lock.hold.duration", remainingMetric}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			r := acquired(acquisition("order:42", "pay"))
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
