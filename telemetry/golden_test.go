package telemetry_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/telemetry"
)

// TestMetricsAreThoseOfTheDocumentation compares the table in doc.go with what is
// collected when everything has happened: names, types, labels and units.
func TestMetricsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	locks, _ := newLocks(t, h)
	defer h.Watch(locks)()
	h.everything(t)

	got := make([]string, 0, 15)
	for name, m := range h.collect(t) {
		got = append(got, fmt.Sprintf("%s %s %s", name, typeOf(t, m), strings.Join(labelNames(m), " ")))
		checkUnit(t, m)
	}
	slices.Sort(got)
	if want := documented(t); !slices.Equal(got, want) {
		t.Errorf("collected:\n%s\ndocumented:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSpansAreThoseOfTheDocumentation looks for every attribute and event in doc.go.
func TestSpansAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t)
	h.everything(t)
	for _, s := range h.spans.Ended() {
		for _, kv := range s.Attributes() {
			wantRow(t, string(text), string(kv.Key))
		}
		for event := range events(s) {
			wantRow(t, string(text), event)
		}
	}
}

func wantRow(t *testing.T, text, name string) {
	t.Helper()
	if !strings.Contains(text, "//\t"+name+" ") {
		t.Errorf("doc.go has no row for %s", name)
	}
}

// everything tells h of each thing that can be told.
func (h *harness) everything(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	a := acquisition("order:42", "pay")
	h.lock(t, a)
	info := core.HoldInfo{Acquisition: a, Token: 7}
	subject := aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}
	h.ObserveRule(aspect.RuleInfo{Subject: subject})
	h.ObserveReload(ruleset.Reload{File: "locks.yaml", Hash: "aaa", Time: time.Unix(1, 0)})
	refused := h.ObserveAcquireStart(ctx, a)
	h.ObserveContention(refused, core.Contention{Acquisition: a, BlockedBy: "somebody:1"})
	h.ObserveAcquireEnd(refused, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Contended: true, BlockedBy: "somebody:1", HandedOff: true})
	hold := h.ObserveHoldStart(ctx, info)
	h.ObserveRenewal(hold, core.Renewal{HoldInfo: info, Late: time.Second, Err: core.ErrUnavailable})
	h.ObserveLoss(hold, core.Loss{HoldInfo: info, Cause: core.ErrLost})
	h.ObserveHoldEnd(hold, core.HoldResult{HoldInfo: info, HandedOff: true, Err: core.ErrUnavailable})
	h.ObserveFailure(ctx, aspect.Failure{Subject: subject, Cause: failpolicy.Busy, Strategy: failpolicy.Skip})
	h.ObserveUnlocked(ctx, aspect.UnlockedRun{Subject: subject, Reason: aspect.UnlockedDisabled})
	h.ObserveDecision(ctx, aspect.Decision{Subject: subject, DryRun: true})
}

// documented reads the table of metrics: name, type, labels.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "labels                      meaning\n")
	if !ok {
		t.Fatal("doc.go has no table of metrics")
	}
	var rows []string
	for line := range strings.Lines(table) {
		columns := splitColumns(strings.TrimPrefix(line, "//\t"))
		if len(columns) < 4 {
			break
		}
		labels := strings.Fields(columns[2])
		slices.Sort(labels)
		rows = append(rows, fmt.Sprintf("%s %s %s", columns[0], columns[1], strings.Join(labels, " ")))
	}
	slices.Sort(rows)
	return rows
}

// splitColumns cuts at two or more spaces.
func splitColumns(line string) []string {
	return regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
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
		if got := data.DataPoints[0].Bounds; !slices.Equal(got, telemetry.Buckets()) {
			t.Errorf("%s has the buckets %v", m.Name, got)
		}
		return "histogram"
	default:
		t.Errorf("%s is a %T", m.Name, m.Data)
		return ""
	}
}

func labelNames(m metricdata.Metrics) []string {
	var names []string
	for _, kv := range labelValues(m) {
		names = append(names, short(kv.Key))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func checkUnit(t *testing.T, m metricdata.Metrics) {
	t.Helper()
	seconds := strings.HasSuffix(m.Name, ".duration") || m.Name == "distributed_lock.oldest_wait" || m.Name == "distributed_lock.reload"
	switch {
	case m.Description == "":
		t.Errorf("%s has no description", m.Name)
	case seconds && m.Unit != "s":
		t.Errorf("%s is in %q, want s", m.Name, m.Unit)
	case !seconds && (!strings.HasPrefix(m.Unit, "{") || strings.HasSuffix(m.Unit, "s}")):
		t.Errorf("%s is in %q, want {what it counts}", m.Name, m.Unit)
	}
}

func TestDurationsAreSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := acquisition("order:42", "pay")
	h.ObserveAcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Waited: 1500 * time.Millisecond, Err: errors.New("taken")})
	data, ok := h.collect(t)["distributed_lock.wait.duration"].Data.(metricdata.Histogram[float64])
	if !ok || data.DataPoints[0].Sum != 1.5 {
		t.Errorf("1500 ms are recorded as %+v", data.DataPoints)
	}
}

// TestOutcomesAreThoseOfTheDocumentation compares the lists in doc.go with what can
// happen.
func TestOutcomesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	acquire := []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy), "debounced",
		string(core.OutcomeOverload), string(core.OutcomeBackend), string(core.OutcomeKey), string(core.OutcomeCanceled),
	}
	hold := []string{"released", "left", "lost", "failed", "leaked"}
	flat := strings.ReplaceAll(string(text), "\n// ", " ")
	for what, list := range map[string]struct {
		pattern string
		want    []string
	}{
		"of lock.acquire":  {`acquire: ([a-z, ]+);`, acquire},
		"of lock.hold":     {`; hold: ([a-z, ]+)`, append(hold[:5:5], "moved")},
		"of wait.duration": {`outcomes of wait\.duration are ([a-z, ]+)`, acquire},
		"of hold.duration": {`those of hold\.duration ([a-z, ]+)`, hold},
	} {
		found := regexp.MustCompile(list.pattern).FindStringSubmatch(flat)
		if found == nil {
			t.Errorf("doc.go has no outcomes %s", what)
			continue
		}
		got := strings.Split(strings.ReplaceAll(strings.TrimSpace(found[1]), " and ", ", "), ", ")
		slices.Sort(got)
		if slices.Sort(list.want); !slices.Equal(got, list.want) {
			t.Errorf("outcomes %s: documented %q, want %q", what, got, list.want)
		}
	}
}
