package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/dashboards/board"
)

var update = flag.Bool("update", false, "write the tables of README.md")

// The tables of the README contain the panels of the dashboard and the alerts of the rules. -update writes
// the tables.
func TestReadme_Tables(t *testing.T) {
	text := read(t, "README.md")
	want := section(section(text, "What each panel answers", panelTable()), "The alerts", alertTable(read(t, "rules.yml")))
	if text == want {
		return
	}
	if !*update {
		t.Fatal("the tables do not match the dashboard and the rules: run go test ./dashboards -run Readme -update")
	}
	if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// section replaces the table of a section, or the word in capitals that stands for it.
func section(text, heading, table string) string {
	before, rest, _ := strings.Cut(text, "## "+heading+"\n")
	place := regexp.MustCompile(`(?m)^([A-Z]{6,}|(\|.*\n)+\|.*)$`).FindStringIndex(rest)
	return before + "## " + heading + "\n" + rest[:place[0]] + table + rest[place[1]:]
}

func panelTable() string {
	lines := []string{"| question | panel | what it shows, and what to do |", "|---|---|---|"}
	for _, row := range board.Rows() {
		question := row.Question
		for i := range row.Panels {
			lines = append(lines, "| "+question+" | "+row.Panels[i].Title+" | "+row.Panels[i].Answers+" |")
			question = ""
		}
	}
	return strings.Join(lines, "\n")
}

func alertTable(rules string) string {
	lines := []string{"| alert | severity | |", "|---|---|---|"}
	label := regexp.MustCompile(`\{\{ \$labels\.(distributed_lock_)?(\w+) \}\}`)
	for _, text := range strings.Split(rules, "- alert: ")[1:] {
		alert, _, _ := strings.Cut(text, "\n")
		summary := label.ReplaceAllString(field(text, `summary: "(.*)"`), "*$2*")
		summary = strings.ReplaceAll(summary, "{{ $value }}", "*n*")
		lines = append(lines, "| ["+alert+"](RUNBOOKS.md#"+strings.ToLower(alert)+") | "+field(text, `severity: (\w+)`)+" | "+summary+" |")
	}
	return strings.Join(lines, "\n")
}

// field returns the group of the first match of an expression.
func field(text, expression string) string {
	return regexp.MustCompile(expression).FindStringSubmatch(text)[1]
}

// Prometheus accepts the configuration in the README.
func TestReadme_PrometheusConfig(t *testing.T) {
	t.Parallel()
	requirePrograms(t, "promtool")
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, "README.md"))
	dir := t.TempDir()
	for name, text := range map[string]string{"prometheus.yml": block[1], "rules.yml": read(t, "rules.yml")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
