package telemetry_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/telemetry"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// TestMetricsAreThoseOfTheTable compares [telemetry.Metrics] with what is collected, from a
// Telemetry and from a page of package lockz, when everything has happened: a metric that is
// renamed, not described or never emitted fails it.
func TestMetricsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	newLocks(t, h)
	h.everything(t)
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

// collectFromPage gives the metrics that package lockz makes.
func collectFromPage(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	if _, err := lockz.New(lockz.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))); err != nil {
		t.Fatal(err)
	}
	return collectFrom(t, reader, "github.com/interlock-go/interlock/telemetry/lockz")
}

// TestDocumentationHasTheMetrics wants the table of metrics in doc.go to be that which
// [telemetry.Metrics] makes, and prints it if it is not.
func TestDocumentationHasTheMetrics(t *testing.T) {
	t.Parallel()
	metrics := [][]string{{"metric", "type", "unit", "labels", "meaning"}}
	for _, m := range telemetry.Metrics() {
		var labels []string
		for _, l := range m.Labels {
			labels = append(labels, strings.TrimPrefix(l, "distributed_lock."))
		}
		metrics = append(metrics, []string{m.Name, m.Type, m.Unit, cmp.Or(strings.Join(labels, " "), "none"), m.Meaning})
	}
	if want := commented(metrics); !strings.Contains(docText(t), want) {
		t.Errorf("doc.go lacks this table:\n%s", want)
	}
}

// commented is a table as it stands in a comment.
func commented(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	return "//\t" + strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", "\n//\t") + "\n"
}

func docText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSpansAreThoseOfTheDocumentation compares the attributes and events that doc.go lists with
// those of spans when everything has happened.
func TestSpansAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	h, raw := newHarness(t), newHarness(t, telemetry.WithRawKeys())
	h.everything(t)
	raw.everything(t)
	got := map[string]bool{}
	see := func(attrs []attribute.KeyValue) {
		for _, kv := range attrs {
			got[string(kv.Key)] = true
		}
	}
	for _, s := range append(h.spans.Ended(), raw.spans.Ended()...) {
		see(s.Attributes())
		for _, e := range s.Events() {
			got[e.Name] = true
			see(e.Attributes)
		}
		for _, l := range s.Links() {
			see(l.Attributes)
		}
	}
	text := docText(t)
	want := append(rowsBelow(t, text, "attribute "), rowsBelow(t, text, "event ")...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(got)); !slices.Equal(got, want) {
		t.Errorf("spans have\n%q\ndocumented are\n%q", got, want)
	}
}

// rowsBelow are the first words of the rows below the line that begins a table.
func rowsBelow(t *testing.T, text, begin string) (rows []string) {
	t.Helper()
	_, table, ok := strings.Cut(text, "//\t"+begin)
	if !ok {
		t.Fatalf("doc.go has no table that begins with %q", begin)
	}
	for line := range strings.Lines(table[strings.Index(table, "\n")+1:]) {
		row, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			return rows
		}
		rows = append(rows, strings.Fields(row)[0])
	}
	return rows
}

// everything tells h of each thing that can be told.
func (h *harness) everything(t *testing.T) {
	t.Helper()
	h.everythingOf(t, "order:42")
}

// everythingOf is everything for one key.
func (h *harness) everythingOf(t *testing.T, key string) {
	t.Helper()
	ctx := t.Context()
	a := acquisition(key, "pay")
	h.lock(t, a)
	info := core.HoldInfo{Acquisition: a, Token: 7, Lease: time.Minute}
	subject := aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}
	h.Rule(aspect.RuleInfo{Subject: subject, WaitTime: time.Second, LeaseTime: time.Minute})
	h.Reload(ruleset.Reload{File: "locks.yaml", Hash: "aaa", Time: time.Unix(1, 0)})
	refused := h.AcquireStart(ctx, a)
	h.Contention(refused, core.Contention{Acquisition: a, BlockedBy: "somebody:1"})
	h.AcquireEnd(refused, core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBackend, Contended: true, BlockedBy: "somebody:1", HandedOff: true})
	hold := h.HoldStart(ctx, info)
	h.Renewal(hold, core.Renewal{HoldInfo: info, Late: time.Second, Err: core.ErrUnavailable})
	h.Loss(hold, core.Loss{HoldInfo: info, Cause: core.ErrLost})
	h.HoldEnd(hold, core.HoldResult{HoldInfo: info, HandedOff: true, Err: core.ErrUnavailable})
	h.Failure(ctx, aspect.Failure{Subject: subject, Cause: failpolicy.Busy, Strategy: failpolicy.Skip})
	h.Unlocked(ctx, aspect.UnlockedRun{Subject: subject, Reason: aspect.UnlockedDisabled})
	h.Decision(ctx, aspect.Decision{Subject: subject, DryRun: true})
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

// checkUnit wants seconds for times, 1 for parts of a whole, and else what is counted, in the
// singular.
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

// bounds are the boundaries of the buckets of a histogram.
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

func TestDurationsAreSeconds(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := acquisition("order:42", "pay")
	h.AcquireEnd(t.Context(), core.AcquireResult{Acquisition: a, Outcome: core.OutcomeBusy, Waited: 1500 * time.Millisecond, Err: errors.New("taken")})
	data, ok := h.collect(t)["distributed_lock.wait.duration"].Data.(metricdata.Histogram[float64])
	if !ok || data.DataPoints[0].Sum != 1.5 {
		t.Errorf("1500 ms are recorded as %+v", data.DataPoints)
	}
}

// TestOutcomesAreThoseOfTheDocumentation compares the lists in doc.go with what can
// happen.
func TestOutcomesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text := docText(t)
	acquire := []string{
		string(core.OutcomeAcquired), string(core.OutcomeReentered), string(core.OutcomeBusy), "debounced",
		string(core.OutcomeOverload), string(core.OutcomeBackend), string(core.OutcomeKey), string(core.OutcomeCanceled),
	}
	hold := []string{"released", "left", "lost", "failed", "leaked"}
	flat := strings.ReplaceAll(text, "\n// ", " ")
	for what, list := range map[string]struct {
		pattern string
		want    []string
	}{
		"of lock.acquire":  {`acquire: ([a-z, ]+);`, acquire},
		"of lock.hold":     {`; hold: ([a-z, ]+)`, append(hold[:5:5], "moved")},
		"of wait.duration": {`outcomes of wait\.duration are ([a-z, ]+)`, acquire},
		"of hold.duration": {`outcomes of hold\.duration are ([a-z, ]+)`, hold},
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
