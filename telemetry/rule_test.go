package telemetry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/telemetry"
)

func TestRules_Limit(t *testing.T) {
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

// By default an SDK merges the series of an instrument beyond 2,000. 300 rules stay below that limit, and a
// warning is logged.
func TestRules_MoreThanSDKDefault(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 300 {
		h.Rule(aspect.RuleInfo{Subject: aspect.Subject{Rule: fmt.Sprintf("rule-%d", i), Kind: ruleset.Reentrant}, WaitTime: time.Second})
	}
	for name, m := range h.collect(t) {
		if strings.Contains(fmt.Sprint(m.Data), "otel.metric.overflow") {
			t.Errorf("%s overflows", name)
		}
	}
	h.want(t, 0, "distributed_lock.failures", "rule", "rule-299", "kind", "reentrant", "cause", "backend", "strategy", "error")
	if records := h.logs.records(t); len(records) != 1 || !strings.Contains(fmt.Sprint(records[0]["msg"]), "many lock rules") {
		t.Errorf("logged %v, want a warning of many rules", records)
	}
}

func TestRules_NoLabel(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.lock(t, acquisition("k", ""))
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "none", "kind", "reentrant", "outcome", "acquired")
}

func TestRules_InvalidUTF8(t *testing.T) {
	t.Parallel()
	h := newHarness(t, telemetry.WithRawKeys())
	h.lock(t, acquisition("order:\xff", "pay\xff"))
	h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay\uFFFD", "kind", "reentrant", "outcome", "acquired")
	if got := attrs(h.span(t, "lock.acquire"))["key"]; got != "order:\uFFFD" {
		t.Errorf("key %q", got)
	}
}

func TestRules_LookupAllocations(t *testing.T) {
	h := newHarness(t, noTraces())
	ctx := t.Context()
	a := acquisition("order:42", "pay")
	lock := func() {
		h.AcquireEnd(h.AcquireStart(ctx, a), acquiredResult(a))
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

// TestRules_KeysAddNoSeries causes every event for 10,000 keys. The number of series of all metrics must not
// change, and each metric must have at least one series.
func TestRules_KeysAddNoSeries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	newLocks(t, h)
	h.notifyAllOf(t, "order:0")
	ours := slices.DeleteFunc(telemetry.Metrics(), func(m telemetry.Metric) bool { return m.Scope != telemetry.ScopeName })
	if got, want := len(h.collect(t)), len(ours); got != want {
		t.Fatalf("%d metrics were collected, want %d", got, want)
	}
	before := h.countSeries(t)
	for i := range 10_000 {
		h.notifyAllOf(t, fmt.Sprintf("order:%d", i))
	}
	if after := h.countSeries(t); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func TestRules_LabelsWithoutKeys(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, server := newLocks(t, h)
	pay := wrap(t, h, locks, ruleset.Rule{WaitTime: ruleset.NoWait})
	server.Take("order:secret-1", time.Minute)
	for _, id := range []string{"secret-1", "secret-2", ""} {
		_ = pay(t.Context(), order{ID: id}) // two of them are refused on purpose
	}
	for name, m := range h.collect(t) {
		for _, kv := range labelValues(m) {
			if strings.Contains(kv.Value.AsString(), "secret") {
				t.Errorf("%s has the label %s=%s", name, kv.Key, kv.Value.AsString())
			}
		}
	}
}
