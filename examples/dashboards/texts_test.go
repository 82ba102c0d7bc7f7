package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/dashboards/board"
	"github.com/interlock-go/interlock/telemetry"
)

// notShown contains the metrics that no panel and no rule shows, each with the reason. It is empty, because
// all metrics are shown.
var notShown = map[string]string{}

// read returns the text of a file in the folder of the test.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known contains the names that a query may contain: series of metrics, their labels, and series that
// rules.yml records.
type known struct{ series, labels []string }

func names(t *testing.T) (k known) {
	t.Helper()
	for _, m := range telemetry.Metrics() {
		k.series = append(k.series, series(m)...)
		for _, label := range m.Labels {
			k.labels = append(k.labels, strings.ReplaceAll(label, ".", "_"))
		}
	}
	for _, found := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(read(t, "rules.yml"), -1) {
		k.series = append(k.series, found[1])
	}
	return k
}

// series returns the names of a metric's series in Prometheus.
func series(m telemetry.Metric) []string {
	if m.Type != "histogram" {
		return []string{m.Prometheus}
	}
	return []string{m.Prometheus + "_bucket", m.Prometheus + "_sum", m.Prometheus + "_count"}
}

// name matches metrics, labels and recorded series of this project.
var name = regexp.MustCompile(`(job_rule:)?distributed_lock_\w+(:\w+)?`)

// Each name in a query of the dashboard, a rule, a test of a rule or a runbook exists. So a renamed metric or
// label fails the test.
func TestTexts_NamesExist(t *testing.T) {
	t.Parallel()
	k := names(t)
	for _, file := range []string{"dashboard.json", "rules.yml", "promtest.yml", "RUNBOOKS.md", "README.md"} {
		for _, found := range name.FindAllString(read(t, file), -1) {
			if !slices.Contains(k.series, found) && !slices.Contains(k.labels, found) {
				t.Errorf("%s contains %s, which is not a metric, a label or a recorded series", file, found)
			}
		}
	}
}

// Each metric is in a panel or a rule, or in notShown.
func TestTexts_ShowAllMetrics(t *testing.T) {
	t.Parallel()
	shown := name.FindAllString(read(t, "dashboard.json")+read(t, "rules.yml"), -1)
	for _, m := range telemetry.Metrics() {
		is := slices.ContainsFunc(series(m), func(s string) bool { return slices.Contains(shown, s) })
		_, excused := notShown[m.Name]
		if is == excused {
			t.Errorf("%s: shown: %t, listed as not shown: %t", m.Name, is, excused)
		}
	}
}

// A quantile of a histogram is at most its largest bucket, so the alert on wait times compares with that number.
func TestRules_LargestBucket(t *testing.T) {
	t.Parallel()
	all := telemetry.Metrics()
	wait := all[slices.IndexFunc(all, func(m telemetry.Metric) bool { return m.Name == "distributed_lock.wait.duration" })]
	largest := fmt.Sprintf("job_rule:distributed_lock_wait_seconds:p99_5m >= %g\n", wait.Buckets[len(wait.Buckets)-1])
	if !strings.Contains(read(t, "rules.yml"), largest) {
		t.Errorf("rules.yml: want %q in the alert InterlockWaitNearLimit", largest)
	}
}

// dashboard.json is the output of package board.
func TestDashboard_IsGenerated(t *testing.T) {
	t.Parallel()
	text, err := board.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != read(t, "dashboard.json") {
		t.Error("dashboard.json is not the output of package board: run go generate ./dashboards/...")
	}
}

// Each alert has a severity, texts, and a runbook with its name. Each runbook belongs to an alert, and links within the runbooks
// have a target.
func TestRunbooks_ForEachAlert(t *testing.T) {
	t.Parallel()
	runbooks := read(t, "RUNBOOKS.md")
	anchors, headings := anchors(runbooks)
	var alerts []string
	for _, text := range strings.Split(read(t, "rules.yml"), "- alert: ")[1:] {
		alert, _, _ := strings.Cut(text, "\n")
		alerts = append(alerts, alert)
		for _, part := range []string{"severity: ", "summary: ", "description: ", "runbook_url: RUNBOOKS.md#" + strings.ToLower(alert) + "\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("alert %s has no %q", alert, part)
			}
		}
		if !strings.Contains(runbooks, "\n## "+alert+"\n\n**Means.**") {
			t.Errorf("alert %s has no runbook that says what it means", alert)
		}
		if !strings.Contains(read(t, "promtest.yml"), "alertname: "+alert+"\n") {
			t.Errorf("alert %s has no test", alert)
		}
	}
	for _, heading := range headings {
		if strings.HasPrefix(heading, "Interlock") && !slices.Contains(alerts, heading) {
			t.Errorf("runbook %s has no alert", heading)
		}
	}
	for _, link := range regexp.MustCompile(`\(#([^)]*)\)`).FindAllStringSubmatch(runbooks, -1) {
		if !slices.Contains(anchors, link[1]) {
			t.Errorf("a link points to #%s, which does not exist", link[1])
		}
	}
}

// anchors returns the headings of a Markdown text and their anchors in links.
func anchors(text string) (anchors, headings []string) {
	for _, found := range regexp.MustCompile(`(?m)^##? (.*)$`).FindAllStringSubmatch(text, -1) {
		headings = append(headings, found[1])
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchors = append(anchors, strings.ReplaceAll(anchor, ",", ""))
	}
	return anchors, headings
}

// Each panel that a runbook names in italics is in the dashboard.
func TestRunbooks_PanelsExist(t *testing.T) {
	t.Parallel()
	var titles []string
	for _, row := range board.Rows() {
		for i := range row.Panels {
			titles = append(titles, row.Panels[i].Title)
		}
	}
	for _, found := range regexp.MustCompile(`[^*]\*([A-Z][^*]*)\*[^*]`).FindAllStringSubmatch(read(t, "RUNBOOKS.md"), -1) {
		title := strings.ReplaceAll(found[1], "\n", " ")
		if !slices.Contains(titles, title) {
			t.Errorf("no panel is called %q", title)
		}
	}
}
