package wiring_test

import (
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/wiring"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/telemetry"
	"github.com/interlock-go/interlock/telemetry/lockz"
)

// README.md shows the functions of this package.
func TestReadme_ShowsTheCode(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, block := range strings.Split(string(readme), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "func ") {
			continue // the package comment of telemetry contains this block
		}
		shown++
		if !strings.Contains(code.String(), block) {
			t.Errorf("README.md shows a function that is not in the code:\n%s", block)
		}
	}
	if shown != 4 {
		t.Errorf("%d functions are shown, want 4", shown)
	}
}

// Prometheus scrapes the names, types and labels of [telemetry.Metrics] from a program with telemetry and
// a live page.
func TestPrometheus_ScrapedMetrics(t *testing.T) {
	t.Parallel()
	meters, scrape, err := wiring.Prometheus("shop")
	if err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.New(telemetry.WithMeterProvider(meters), telemetry.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		t.Fatal(err)
	}
	page, err := lockz.New(lockz.WithMeterProvider(meters))
	if err != nil {
		t.Fatal(err)
	}
	locks, err := core.New(redistest.New(t).Client(), core.WithObserver(tel.Observer(), page.Observer()))
	if err != nil {
		t.Fatal(err)
	}
	everything(t, tel, locks)

	answer := httptest.NewRecorder()
	scrape.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]dto.MetricType{
		"histogram": dto.MetricType_HISTOGRAM, "counter": dto.MetricType_COUNTER,
		"updowncounter": dto.MetricType_GAUGE, "gauge": dto.MetricType_GAUGE,
	}
	for _, m := range telemetry.Metrics() {
		family := families[m.Prometheus]
		if family == nil {
			t.Errorf("%s was not scraped; scraped: %q", m.Prometheus, slices.Sorted(maps.Keys(families)))
			continue
		}
		delete(families, m.Prometheus)
		if family.GetType() != types[m.Type] {
			t.Errorf("%s is a %s, want %s", m.Prometheus, family.GetType(), m.Type)
		}
		var want []string
		for _, label := range m.Labels {
			want = append(want, strings.ReplaceAll(label, ".", "_"))
		}
		slices.Sort(want)
		if got := labels(family); !slices.Equal(got, want) {
			t.Errorf("%s has the labels %q, want %q", m.Prometheus, got, want)
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "distributed_lock") {
			t.Errorf("%s is not described", name)
		}
	}
}

// labels returns the label names of the first series, except the labels that every metric has.
func labels(family *dto.MetricFamily) (names []string) {
	for _, l := range family.GetMetric()[0].GetLabel() {
		if !strings.HasPrefix(l.GetName(), "otel_scope_") {
			names = append(names, l.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// everything creates a series of each metric, by a lock and by calls of observers.
func everything(t *testing.T, tel *telemetry.Telemetry, locks *core.Client) {
	t.Helper()
	rules := tel.Observer().Rules.(*aspect.Observer)
	subject := aspect.Subject{Rule: "pay", Endpoint: ruleset.Func("pay"), Kind: ruleset.Reentrant}
	rules.Rule(aspect.RuleInfo{Subject: subject, WaitTime: time.Second, LeaseTime: time.Minute})
	rules.Reload(ruleset.Reload{File: "locks.yaml", Hash: "abc", Time: time.Unix(1, 0), Err: errors.New("refused")})
	set, err := ruleset.NewSet([]ruleset.Rule{{Endpoint: ruleset.Func("pay"), Key: "order"}})
	if err != nil {
		t.Fatal(err)
	}
	rules.Reload(ruleset.Reload{File: "locks.yaml", Hash: "abc", Time: time.Unix(1, 0), Set: set})
	rules.Failure(t.Context(), aspect.Failure{Subject: subject, Cause: failpolicy.Busy})
	rules.Decision(t.Context(), aspect.Decision{Subject: subject, DryRun: true})
	_, hold, err := locks.Lock("order:42").Acquire(t.Context(), core.Label("pay"), core.LeaseTime(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
