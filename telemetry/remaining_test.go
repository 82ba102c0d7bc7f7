package telemetry_test

import (
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

const remainingMetric = "distributed_lock.lease.remaining.ratio"

// What is recorded of a lease is the part that was left, 0 if it was lost, never more than 1. A
// re-entry and a hold that moved have ended no lease.
func TestRemainingLeaseIsARatio(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  core.HoldResult
		want float64 // negative: nothing is recorded
	}{
		"a quarter":                 {core.HoldResult{Remaining: 15 * time.Second}, 0.25},
		"lost":                      {core.HoldResult{Remaining: 15 * time.Second, Lost: true}, 0},
		"longer than configured":    {core.HoldResult{Remaining: 2 * time.Minute}, 1},
		"over":                      {core.HoldResult{Remaining: -time.Second}, 0},
		"released in vain":          {core.HoldResult{Remaining: 30 * time.Second, Err: core.ErrUnavailable}, 0.5},
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

// The times of a rule are there from the moment that it comes into force until it is retracted.
// Of two rules with the same labels the shorter times are shown, and none for those without.
func TestRuleTimes(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	rule := func(name, endpoint string, wait, lease time.Duration) aspect.RuleInfo {
		subject := aspect.Subject{Rule: name, Endpoint: ruleset.Func(endpoint), Kind: ruleset.Reentrant}
		return aspect.RuleInfo{Subject: subject, WaitTime: wait, LeaseTime: lease}
	}
	short := rule("pay", "b", time.Second, 10*time.Second)
	for _, r := range []aspect.RuleInfo{
		rule("pay", "a", 3*time.Second, time.Minute), short,
		rule("try", "a", 0, 0), rule("ever", "a", ruleset.WaitForever, 0),
	} {
		h.Rule(r)
	}
	pay := []string{"rule", "pay", "kind", "reentrant"}
	h.want(t, 1, "distributed_lock.rule.wait_time", pay...)
	h.want(t, 10, "distributed_lock.rule.lease_time", pay...)

	short.Retracted = true
	h.Rule(short)
	h.want(t, 3, "distributed_lock.rule.wait_time", pay...)
	h.want(t, 60, "distributed_lock.rule.lease_time", pay...)
	for _, name := range []string{"distributed_lock.rule.wait_time", "distributed_lock.rule.lease_time"} {
		if n := len(seriesOf(h.collect(t)[name])); n != 1 {
			t.Errorf("%s has %d series, want only that of pay", name, n)
		}
	}
}

// A client, its oldest waiter and its oldest hold are shown until it is closed.
func TestClientIsShownUntilItIsClosed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	h.want(t, 1, "distributed_lock.client.info", "client.id", locks.ID())
	h.want(t, 0, "distributed_lock.oldest_wait", "client.id", locks.ID())
	_, hold, err := locks.Lock("k").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if age, ok := h.value(t, "distributed_lock.longest_hold", "client.id", locks.ID()); !ok || age <= 0 {
		t.Errorf("a hold is %v s old (exists: %t)", age, ok)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	h.want(t, 0, "distributed_lock.longest_hold", "client.id", locks.ID())
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, metric := range []string{"client.info", "longest_hold"} {
		if _, exists := h.value(t, "distributed_lock."+metric, "client.id", locks.ID()); exists {
			t.Errorf("%s shows a closed client", metric)
		}
	}
}

// Every row that Metrics gives belongs to its caller.
func TestMetricsGivesCopies(t *testing.T) {
	t.Parallel()
	first := telemetry.Metrics()
	first[0].Labels[0], first[0].Buckets[0] = "changed", -1
	if again := telemetry.Metrics(); again[0].Labels[0] == "changed" || again[0].Buckets[0] == -1 {
		t.Error("a change of one list is seen in the next")
	}
}
