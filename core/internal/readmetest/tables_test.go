package readmetest_test

import (
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// facts runs testdata/facts, which prints what the code says, and gives the lines
// that begin with a word, without it.
func facts(t *testing.T, word string) []string {
	t.Helper()
	var found []string
	for line := range strings.Lines(goTool(t, "", "run", "./core/internal/readmetest/testdata/facts")) {
		if fact, ok := strings.CutPrefix(strings.TrimSpace(line), word+" "); ok {
			found = append(found, fact)
		}
	}
	return found
}

func TestReadme_Strategies(t *testing.T) {
	t.Parallel()
	sameLines(t, column(rows(t, "Strategies"), 0), facts(t, "strategy"))
}

func TestReadme_CausesAndStatuses(t *testing.T) {
	t.Parallel()
	table := rows(t, "Causes and statuses")
	got := make([]string, 0, len(table))
	for _, row := range table {
		http := strings.Replace(row[2], "nothing is sent", "0", 1)
		got = append(got, plain(strings.Join([]string{row[0], http, row[3], word(row[4])}, " ")))
	}
	sameLines(t, got, facts(t, "cause"))
}

// word is the first word of a cell: "no" or a field.
func word(cell string) string { return strings.TrimRight(strings.Fields(cell)[0], ";,") }

func TestReadme_Profiles(t *testing.T) {
	t.Parallel()
	table := rows(t, "Which wait time, which lease time")
	got := make([]string, 0, len(table))
	for _, row := range table {
		got = append(got, plain(fmt.Sprintf("%s %s %s", row[0], duration(row[1]), duration(row[2]))))
	}
	sameLines(t, got, facts(t, "profile"))
}

// duration writes "3 s" as 3s.
func duration(cell string) string { return strings.ReplaceAll(cell, " ", "") }

// TestReadme_Constants compares the rows that name a constant with its value.
func TestReadme_Constants(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, row := range append(rows(t, "Defaults"), rows(t, "Limits")...) {
		m := qualified.FindStringSubmatch(row[3])
		if m == nil {
			continue
		}
		object, ok := pkgs.named(t, m[1]).Scope().Lookup(m[2]).(*types.Const)
		if !ok {
			t.Errorf("%s: %s is no constant", row[0], m[0])
			continue
		}
		want, _ := constant.Int64Val(object.Val())
		if got, err := value(row[1]); err != nil || got != want {
			t.Errorf("%s: got %q (%d, %v), want %d (%s)", row[0], row[1], got, err, want, m[0])
		}
	}
}

var quantity = regexp.MustCompile(`^(?:.* to )?(\d+)(?: (\w+))?$`)

// value reads a number with its unit; of a range the upper end.
func value(cell string) (int64, error) {
	if cell == "watchdog" {
		return watchdog, nil
	}
	m := quantity.FindStringSubmatch(strings.ReplaceAll(cell, ",", ""))
	if m == nil {
		return 0, fmt.Errorf("want a number and a unit")
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	unit, ok := map[string]int64{
		"": 1, "bytes": 1, "MiB": 1 << 20,
		"ms": int64(time.Millisecond), "s": int64(time.Second), "years": int64(365 * 24 * time.Hour),
	}[m[2]]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q", m[2])
	}
	return n * unit, err
}

// watchdog is the value of ruleset.Watchdog.
const watchdog = -1<<63 + 3

func TestReadme_Defaults(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, row := range rows(t, "Defaults") {
		got[row[0]] = plain(row[1])
	}
	for _, fact := range facts(t, "default") {
		what, want, _ := strings.Cut(fact, ": ")
		if got[what] != want {
			t.Errorf("default of %q: got %q, want %q", what, got[what], want)
		}
	}
}

var metricRow = regexp.MustCompile(`^//\t(distributed_lock\.\S+) +(histogram|counter|updowncounter|gauge) +(?:s|1|\{\w+\}) +(.*?)  `)

// TestReadme_Metrics compares with telemetry's package comment, which has a test of
// its own.
func TestReadme_Metrics(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "telemetry", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(doc)) {
		if m := metricRow.FindStringSubmatch(line); m != nil {
			want = append(want, strings.Join(m[1:], " "))
		}
	}
	table := rows(t, "Metrics")
	got := make([]string, 0, len(table))
	for _, row := range table {
		got = append(got, plain(strings.Join(row[:3], " ")))
	}
	sameLines(t, got, want)
}

// TestReadme_Spans looks for what the table of spans names in telemetry's package
// comment, which has a test of its own.
func TestReadme_Spans(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "telemetry", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows(t, "Spans") {
		for _, m := range shortMetric.FindAllStringSubmatch(strings.Join(row, " "), -1) {
			if !strings.Contains(string(doc), "//\t"+m[1]+" ") && !strings.Contains(string(doc), "//\tdistributed_lock."+m[1]+" ") {
				t.Errorf("telemetry's package comment has no row for %s", m[1])
			}
		}
	}
}

var shortMetric = regexp.MustCompile("`((?:\\w+\\.)?\\w+)`")

// TestReadme_MetricsOfTroubleshootingExist looks up what the table for the night
// names; its second column is where to look.
func TestReadme_MetricsOfTroubleshootingExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{
		"rule": true, "reason": true, "blocked_by": true, "error.type": true, "lock.acquire": true, "lock.hold": true,
		"c.Errors": true,
	}
	for _, row := range rows(t, "Metrics") {
		names[strings.TrimPrefix(plain(row[0]), "distributed_lock.")] = true
	}
	for _, row := range rows(t, "At three in the morning") {
		for _, m := range shortMetric.FindAllStringSubmatch(row[1], -1) {
			if !names[m[1]] && m[1] != "PTTL" {
				t.Errorf("%s: there is no %s; there are %q", row[0], m[1], slices.Sorted(maps.Keys(names)))
			}
		}
	}
}

var (
	goTemplate     = regexp.MustCompile(`"((?:[^"\\]|\\.)*#\{(?:[^"\\]|\\.)*)"`)
	inlineTemplate = regexp.MustCompile("`([^`]*:#\\{[^`]*)`")
)

// TestReadme_TemplatesCompile compiles the key templates of the text and of the Go
// blocks.
func TestReadme_TemplatesCompile(t *testing.T) {
	t.Parallel()
	var templates []string
	for _, text := range readme(t) {
		for _, m := range inlineTemplate.FindAllStringSubmatch(text, -1) {
			templates = append(templates, m[1])
		}
	}
	for _, b := range blocks(t) {
		for _, m := range goTemplate.FindAllStringSubmatch(b.code, -1) {
			templates = append(templates, m[1])
		}
	}
	problems := goTool(t, strings.Join(templates, "\n")+"\n", "run", "./core/internal/readmetest/testdata/facts", "templates")
	if problems != "" || len(templates) < 10 {
		t.Errorf("%d templates:\n%s", len(templates), problems)
	}
}

func column(table [][]string, i int) []string {
	list := make([]string, 0, len(table))
	for _, row := range table {
		list = append(list, plain(row[i]))
	}
	return list
}

func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("README.md:\n%s\nthe code:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
