package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/telemetry"
)

func TestDeclared_SeriesBeginAtZero(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	wrap(t, h, locks, ruleset.Rule{OnBackend: failpolicy.Proceed})

	for _, metric := range []string{"lost", "held_too_long", "leaks", "release.failures", "handoffs", "waiters", "held"} {
		h.want(t, 0, "distributed_lock."+metric, "rule", "pay", "kind", "reentrant")
	}
	for _, outcome := range []string{"renewed", "late", "failed"} {
		h.want(t, 0, "distributed_lock.renewals", "rule", "pay", "kind", "reentrant", "outcome", outcome)
	}
	for cause, strategy := range map[string]string{
		"busy": "error", "backend": "proceed", "key": "error", "overload": "error", "lost": "none",
	} {
		h.want(t, 0, "distributed_lock.failures", "rule", "pay", "kind", "reentrant", "cause", cause, "strategy", strategy)
	}
	if n := len(seriesOf(h.collect(t)["distributed_lock.failures"])); n != 5 {
		t.Errorf("%d series of failures, want none for callers that leave and for causes that the rule cannot have", n)
	}
	for _, reason := range []string{"proceed", "disabled"} {
		h.want(t, 0, "distributed_lock.unlocked", "rule", "pay", "kind", "reentrant", "reason", reason)
	}
	h.want(t, 1, "distributed_lock.rules", "state", "enabled")
	h.want(t, 0, "distributed_lock.rules", "state", "disabled")
	h.want(t, 0, "distributed_lock.rules", "state", "dry_run")
}

func TestDeclared_Causes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		rule   ruleset.Rule
		causes []string
	}{
		"does not wait": {ruleset.Rule{WaitTime: ruleset.NoWait}, []string{"backend", "busy", "key", "lost"}},
		"debounce":      {ruleset.Rule{Debounce: time.Minute}, []string{"backend", "debounced", "key", "lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			locks, _ := newLocks(t, h)
			wrap(t, h, locks, want.rule)
			var got []string
			for _, point := range h.collect(t)["distributed_lock.failures"].Data.(metricdata.Sum[int64]).DataPoints {
				cause, _ := point.Attributes.Value("distributed_lock.cause")
				got = append(got, cause.AsString())
			}
			slices.Sort(got)
			if !slices.Equal(got, want.causes) {
				t.Errorf("got %q, want %q", got, want.causes)
			}
		})
	}
}

// The counters of rules that are compiled before the program sets its meter provider begin at zero too; otherwise an alert
// would miss their first loss. The test sets the global provider, so it is not parallel.
func TestDeclared_MeterProviderSetLate(t *testing.T) { //nolint:paralleltest // see above
	before := otel.GetMeterProvider()
	t.Cleanup(func() { otel.SetMeterProvider(before) })
	tel, err := telemetry.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{reader: sdkmetric.NewManualReader()}
	h.observe(tel)
	locks, _ := newLocks(t, h)
	wrap(t, h, locks, ruleset.Rule{})
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(h.reader)))
	h.want(t, 0, "distributed_lock.lost", "rule", "pay", "kind", "reentrant")
	h.want(t, 0, "distributed_lock.failures", "rule", "pay", "kind", "reentrant", "cause", "backend", "strategy", "error")
}

// The counters of a rule in dry run begin at zero, so that an alert does not miss the first call. Other rules have no such
// series, because there may be thousands.
func TestDeclared_DryRunSeries(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		wrap(t, h, locks, ruleset.Rule{DryRun: dry})
		outcomes := []string{"acquired", "busy", "backend", "key", "overload", "lost"}
		if n := len(seriesOf(h.collect(t)["distributed_lock.dry_runs"])); n != map[bool]int{true: len(outcomes)}[dry] {
			t.Errorf("dry run %t: %d series", dry, n)
		}
		for _, outcome := range outcomes {
			if dry {
				h.want(t, 0, "distributed_lock.dry_runs", "rule", "pay", "kind", "reentrant", "outcome", outcome)
			}
		}
	}
}

func TestDeclared_Failures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		rule            ruleset.Rule
		id              string
		down            bool
		cause, strategy string
		outcome         string // of wait.duration
		unlocked        float64
	}{
		{name: "busy", rule: ruleset.Rule{WaitTime: ruleset.NoWait}, id: "42", cause: "busy", strategy: "error", outcome: "busy"},
		{name: "skipped", rule: ruleset.Rule{WaitTime: ruleset.NoWait, OnBusy: failpolicy.Skip}, id: "42", cause: "busy", strategy: "skip", outcome: "busy"},
		{name: "debounced", rule: ruleset.Rule{Debounce: time.Minute}, id: "42", cause: "debounced", strategy: "error", outcome: "debounced"},
		{name: "no key", rule: ruleset.Rule{}, id: "", cause: "key", strategy: "error", outcome: "key"},
		{name: "backend", rule: ruleset.Rule{}, id: "42", down: true, cause: "backend", strategy: "error", outcome: "backend"},
		{
			name: "proceed", rule: ruleset.Rule{OnBackend: failpolicy.Proceed}, id: "42", down: true,
			cause: "backend", strategy: "proceed", outcome: "backend", unlocked: 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				locks, server := newLocks(t, h)
				pay := wrap(t, h, locks, test.rule)
				server.Take("order:42", time.Minute)
				if test.down {
					server.Down()
				}
				err := pay(t.Context(), order{ID: test.id})
				if refused := errors.As(err, new(*aspect.RefusedError)); refused != (test.strategy == "error") {
					t.Errorf("error %v", err)
				}
				h.want(t, 1, "distributed_lock.failures", "rule", "pay", "kind", "reentrant", "cause", test.cause, "strategy", test.strategy)
				h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", test.outcome)
				if test.unlocked > 0 {
					h.want(t, test.unlocked, "distributed_lock.unlocked", "rule", "pay", "kind", "reentrant", "reason", "proceed")
				} else if n := len(seriesOf(h.collect(t)["distributed_lock.unlocked"])); n != 1 {
					t.Errorf("%d series of unlocked runs, want disabled only", n)
				}
			})
		})
	}
}

// If another kind of lock has the key, the acquisition fails with that error, and its wait counts once.
func TestDeclared_KeyOfAnotherKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, _ := newLocks(t, h)
		pay := wrap(t, h, locks, ruleset.Rule{})
		err := locks.FencedLock("order:42").Do(t.Context(), func(context.Context) error {
			return pay(t.Context(), order{ID: "42"})
		})
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("got %v", err)
		}
		h.want(t, 1, "distributed_lock.failures", "rule", "pay", "kind", "reentrant", "cause", "key", "strategy", "error")
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", "key")
	})
}

func TestDeclared_UnlockedAndStates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, reason, state string
		rule                ruleset.Rule
	}{
		{"disabled", "disabled", "disabled", ruleset.Rule{Disabled: true}},
		{"dry run", "dry_run", "dry_run", ruleset.Rule{DryRun: true}},
		{"when", "when", "enabled", ruleset.Rule{When: "in.ID == 'other'"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			locks, _ := newLocks(t, h)
			pay := wrap(t, h, locks, test.rule)
			if err := pay(t.Context(), order{ID: "42"}); err != nil {
				t.Fatal(err)
			}
			h.want(t, 1, "distributed_lock.unlocked", "rule", "pay", "kind", "reentrant", "reason", test.reason)
			h.want(t, 1, "distributed_lock.rules", "state", test.state)
		})
	}
}

func TestDeclared_DryRunDecisions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		locks, server := newLocks(t, h)
		pay := wrap(t, h, locks, ruleset.Rule{DryRun: true})
		server.Take("order:taken", time.Minute)
		if err := errors.Join(pay(t.Context(), order{ID: "free"}), pay(t.Context(), order{ID: "taken"})); err != nil {
			t.Fatal(err)
		}
		h.want(t, 1, "distributed_lock.dry_runs", "rule", "pay", "kind", "reentrant", "outcome", "acquired")
		h.want(t, 1, "distributed_lock.dry_runs", "rule", "pay", "kind", "reentrant", "outcome", "busy")
		h.want(t, 0, "distributed_lock.failures", "rule", "pay", "kind", "reentrant", "cause", "busy", "strategy", "error")
	})
}

// A rule that is compiled again is counted once. A retracted rule is not counted.
func TestDeclared_RecompiledAndRetracted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := aspect.RuleInfo{Subject: aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}}
	h.Rule(info)
	info.Disabled = true
	h.Rule(info)
	h.want(t, 0, "distributed_lock.rules", "state", "enabled")
	h.want(t, 1, "distributed_lock.rules", "state", "disabled")
	info.Retracted = true
	h.Rule(info)
	h.want(t, 0, "distributed_lock.rules", "state", "disabled")
}

// After a reload removes the debounce window, a refused call is busy again.
func TestDeclared_DebounceRemoved(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	info := aspect.RuleInfo{Subject: aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}, Debounce: time.Second}
	busy := core.AcquireResult{Acquisition: acquisition("order:42", "pay"), Outcome: core.OutcomeBusy, Err: core.ErrNotAcquired}
	h.Rule(info)
	h.AcquireEnd(t.Context(), busy)
	info.Debounce = 0
	h.Rule(info)
	h.AcquireEnd(t.Context(), busy)
	for _, outcome := range []string{"debounced", "busy"} {
		h.want(t, 1, "distributed_lock.wait.duration", "rule", "pay", "kind", "reentrant", "outcome", outcome)
	}
}

// The times of a rule are reported while it is in force. Of rules with the same labels, the shorter times are
// reported. A rule without a time has no series.
func TestDeclared_Times(t *testing.T) {
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
			t.Errorf("%s has %d series, want only the series of pay", name, n)
		}
	}
}

func TestDeclared_Warning(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Warning(&ruleset.Problem{Endpoint: ruleset.Func("pay"), Message: "no function is wrapped"})
	records := h.logs.records(t)
	if len(records) != 1 || records[0]["level"] != "WARN" || records[0]["endpoint"] != "func pay" || records[0]["problem"] != "no function is wrapped" {
		t.Errorf("got records %v", records)
	}
}
