package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
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

type order struct{ ID string }

// wrap puts a rule named "pay" around a function that does nothing.
func wrap(t *testing.T, h *harness, locks *core.Client, rule ruleset.Rule) func(context.Context, order) error {
	t.Helper()
	a, err := aspect.New(locks)
	if err != nil {
		t.Fatal(err)
	}
	rule.Name = "pay"
	if rule.Key == "" {
		rule.Key = "order:#{in.ID}"
	}
	f, err := aspect.Wrap(a, rule, func(context.Context, order) (int, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, o order) error {
		_, err := f(ctx, o)
		return err
	}
}

func TestKnownRulesExistAtZero(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	wrap(t, h, locks, ruleset.Rule{OnBackend: failpolicy.Proceed})

	for _, metric := range []string{"lost", "leaks", "release.failures", "handoffs", "waiters", "held"} {
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
		t.Errorf("%d series of failures: causes that the rule cannot have, and callers that leave, have none", n)
	}
	for _, reason := range []string{"proceed", "disabled"} {
		h.want(t, 0, "distributed_lock.unlocked", "rule", "pay", "kind", "reentrant", "reason", reason)
	}
	h.want(t, 1, "distributed_lock.rules", "state", "enabled")
	h.want(t, 0, "distributed_lock.rules", "state", "disabled")
	h.want(t, 0, "distributed_lock.rules", "state", "dry_run")
}

func TestObserveRule_CausesThatItCanHave(t *testing.T) {
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

// Rules that are compiled before the program sets its meter provider begin at zero, too: an alert
// would miss their first loss. It sets the global provider, and is not parallel.
func TestMeterProvider_SetLate(t *testing.T) { //nolint:paralleltest // see above
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

// By default an SDK folds the series of an instrument beyond 2,000.
func TestObserveRule_300RulesFit(t *testing.T) {
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

// A rule in dry run counts from zero too: an alert on it must not miss the first call. Others, of
// which there may be thousands, have no such series.
func TestKnownDryRunsExistAtZero(t *testing.T) {
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

func TestFailuresByCauseAndStrategy(t *testing.T) {
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
	}
}

// A key that another kind of lock has is found out in the acquisition, whose wait counts once.
func TestFailures_KeyOfAnotherKind(t *testing.T) {
	t.Parallel()
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
}

func TestUnlockedAndStates(t *testing.T) {
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

func TestDryRunCountsWhatWouldHaveHappened(t *testing.T) {
	t.Parallel()
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
}

// A rule that is compiled again replaces itself, and one that is retracted is not counted.
func TestRules_CompiledAgainAndRetracted(t *testing.T) {
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

func TestLabelsAreOnlyOfFixedLists(t *testing.T) {
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
