package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/dashboards/board"
	"github.com/interlock-go/interlock/telemetry"
)

// notShown are the metrics that are in no panel and no rule, each with the reason. It is empty:
// everything is shown.
var notShown = map[string]string{}

// read is the text of a file beside the test.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// known are the names that may stand in a query: series of metrics, their labels, and what
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

// series are the names under which Prometheus keeps a metric.
func series(m telemetry.Metric) []string {
	if m.Type != "histogram" {
		return []string{m.Prometheus}
	}
	return []string{m.Prometheus + "_bucket", m.Prometheus + "_sum", m.Prometheus + "_count"}
}

// name matches metrics, labels and recorded series of this project.
var name = regexp.MustCompile(`(job_rule:)?distributed_lock_\w+(:\w+)?`)

// A name in a query of the dashboard, a rule, a test of a rule or a runbook is one that is
// emitted: who renames a metric or a label finds out here.
func TestNamesAreEmitted(t *testing.T) {
	t.Parallel()
	k := names(t)
	for _, file := range []string{"dashboard.json", "rules.yml", "promtest.yml", "RUNBOOKS.md", "README.md"} {
		for _, found := range name.FindAllString(read(t, file), -1) {
			if !slices.Contains(k.series, found) && !slices.Contains(k.labels, found) {
				t.Errorf("%s names %s, which is no metric, no label and not recorded", file, found)
			}
		}
	}
}

// Each metric is in a panel or a rule, or is listed with the reason why it is not.
func TestMetricsAreShown(t *testing.T) {
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

// The dashboard in the repository is the one that the code makes.
func TestDashboardIsGenerated(t *testing.T) {
	t.Parallel()
	text, err := board.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != read(t, "dashboard.json") {
		t.Error("dashboard.json is not what package board makes: go generate ./dashboards/...")
	}
}

// Each alert has a severity, texts, and a runbook of its name that leads somewhere; each runbook
// belongs to an alert, and links within the runbooks lead somewhere, too.
func TestAlertsHaveRunbooks(t *testing.T) {
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
			t.Errorf("a link leads to #%s, which is not there", link[1])
		}
	}
}

// anchors are the headings of a Markdown text, as links name them and as they are.
func anchors(text string) (anchors, headings []string) {
	for _, found := range regexp.MustCompile(`(?m)^##? (.*)$`).FindAllStringSubmatch(text, -1) {
		headings = append(headings, found[1])
		anchor := strings.ReplaceAll(strings.ToLower(found[1]), " ", "-")
		anchors = append(anchors, strings.ReplaceAll(anchor, ",", ""))
	}
	return anchors, headings
}

// A panel that a runbook names in italics is in the dashboard.
func TestRunbooksNamePanels(t *testing.T) {
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
