package readmetest_test

import (
	"fmt"
	"go/constant"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/telemetry"
)

// facts runs testdata/facts, which prints facts about the code. It returns the lines that begin with a word,
// without that word.
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
	known := facts(t, "strategy")
	for _, s := range column(rows(t, start, "When the lock is not acquired"), 0) {
		if !slices.Contains(known, s) {
			t.Errorf("%s is not a strategy", s)
		}
	}
}

// TestReadme_Causes compares the tables in failpolicy's package comment with the code.
func TestReadme_Causes(t *testing.T) {
	t.Parallel()
	table := alignedTable(t, "failpolicy/doc.go", "cause")
	got := make([]string, 0, len(table))
	for _, row := range table {
		got = append(got, strings.Join([]string{row[0], row[2], row[3], row[4]}, " "))
	}
	sameLines(t, got, facts(t, "cause"))
	sameLines(t, column(alignedTable(t, "failpolicy/strategy.go", "strategy"), 0), facts(t, "strategy"))
	sameLines(t, column(alignedTable(t, "failpolicy/doc.go", "choice"), 0), facts(t, "loss"))
}

// TestReadme_Errors compares the table in core's package comment with the sentinel errors of core.
func TestReadme_Errors(t *testing.T) {
	t.Parallel()
	var want []string
	for _, name := range load(t).lookup(t, "core").Scope().Names() {
		if strings.HasPrefix(name, "Err") && name != "ErrorText" {
			want = append(want, name)
		}
	}
	sameLines(t, slices.Sorted(slices.Values(column(alignedTable(t, "core/doc.go", "error"), 0))), want)
}

// TestReadme_Kinds requires that one page lists all kinds and the other one the usual kinds.
func TestReadme_Kinds(t *testing.T) {
	t.Parallel()
	want := slices.Sorted(slices.Values(facts(t, "kind")))
	kinds := func(page string) (got []string) {
		for _, row := range rows(t, page, "Kinds of lock") {
			if kind, _, is := strings.Cut(row[0], "`"); is && kind == "" {
				got = append(got, strings.Split(row[0], "`")[1])
			}
		}
		slices.Sort(got)
		return got
	}
	sameLines(t, kinds(choosing), want)
	for _, kind := range kinds(start) {
		if !slices.Contains(want, kind) {
			t.Errorf("%s is not a kind", kind)
		}
	}
}

// alignedTable returns the rows of a table in a package comment. The table is a block whose first line begins with
// a word and whose columns are at least two spaces apart.
func alignedTable(t *testing.T, file, first string) [][]string {
	t.Helper()
	_, text, found := strings.Cut(read(t, file), "//\t"+first+" ")
	if !found {
		t.Fatalf("%s has no table that begins with %s", file, first)
	}
	text, _, _ = strings.Cut(text, "\n//\n")
	text, _, _ = strings.Cut(text, "\ntype ")
	var table [][]string
	for _, line := range strings.Split(text, "\n")[1:] {
		if strings.HasPrefix(line, "//\t ") {
			continue // the continuation of the previous row
		}
		row := gaps.Split(strings.TrimPrefix(line, "//\t"), -1)
		if len(row) < 2 {
			t.Errorf("%s: the columns are not two spaces apart: %s", file, line)
		}
		table = append(table, row)
	}
	return table
}

var gaps = regexp.MustCompile(` {2,}`)

func TestReadme_Profiles(t *testing.T) {
	t.Parallel()
	table := rows(t, choosing, "Which wait time, which lease time")
	got := make([]string, 0, len(table))
	for _, row := range table {
		got = append(got, plain(fmt.Sprintf("%s %s %s", row[0], duration(row[1]), duration(row[2]))))
	}
	sameLines(t, got, facts(t, "profile"))
}

// duration converts "3 s" to 3s.
func duration(cell string) string { return strings.ReplaceAll(cell, " ", "") }

// TestReadme_Constants compares the rows for constants with their values.
func TestReadme_Constants(t *testing.T) {
	t.Parallel()
	pkgs := load(t)
	for _, row := range append(rows(t, operating, "Defaults"), rows(t, operating, "Limits")...) {
		m := qualified.FindStringSubmatch(row[3])
		if m == nil {
			continue
		}
		object, ok := pkgs.lookup(t, m[1]).Scope().Lookup(m[2]).(*types.Const)
		if !ok {
			t.Errorf("%s: %s is not a constant", row[0], m[0])
			continue
		}
		want, _ := constant.Int64Val(object.Val())
		if got, err := value(row[1]); err != nil || got != want {
			t.Errorf("%s: got %q (%d, %v), want %d (%s)", row[0], row[1], got, err, want, m[0])
		}
	}
}

var quantity = regexp.MustCompile(`^(?:.* to )?(\d+)(?: (\w+))?$`)

// value parses a number with its unit. For a range it returns the upper end.
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
	for _, row := range rows(t, operating, "Defaults") {
		got[row[0]] = plain(row[1])
	}
	for _, fact := range facts(t, "default") {
		what, want, _ := strings.Cut(fact, ": ")
		if got[what] != want {
			t.Errorf("default of %q: got %q, want %q", what, got[what], want)
		}
	}
}

var shortMetric = regexp.MustCompile("`((?:\\w+\\.)?\\w+)`")

// TestReadme_MetricsOfTheRunbook checks that the names in the second column of the table for incidents exist.
func TestReadme_MetricsOfTheRunbook(t *testing.T) {
	t.Parallel()
	names := map[string]bool{
		"rule": true, "reason": true, "error.type": true, "lost": true, "held_too_long": true, "lock.acquire": true, "lock.hold": true,
		"c.Errors": true, "PTTL": true,
	}
	for _, m := range telemetry.Metrics() {
		names[strings.TrimPrefix(m.Prometheus, "distributed_lock_")] = true
	}
	for _, row := range rows(t, operating, "At three in the morning") {
		for _, m := range shortMetric.FindAllStringSubmatch(row[1], -1) {
			if !names[m[1]] {
				t.Errorf("%s: %s does not exist; existing names: %q", row[0], m[1], slices.Sorted(maps.Keys(names)))
			}
		}
	}
}

// TestReadme_MetricsExist checks that every metric that is named in the form of Prometheus exists.
func TestReadme_MetricsExist(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		for _, name := range prometheusName.FindAllString(read(t, page), -1) {
			if !slices.ContainsFunc(telemetry.Metrics(), func(m telemetry.Metric) bool { return m.Prometheus == name }) {
				t.Errorf("%s: the metric %s does not exist", page, name)
			}
		}
	}
}

var prometheusName = regexp.MustCompile(`\bdistributed_lock_\w*\w`)

var (
	goTemplate     = regexp.MustCompile(`"((?:[^"\\]|\\.)*#\{(?:[^"\\]|\\.)*)"`)
	inlineTemplate = regexp.MustCompile("`([^`]*:#\\{[^`]*)`")
)

// TestReadme_TemplatesCompile compiles the key templates of the text and of the Go blocks.
func TestReadme_TemplatesCompile(t *testing.T) {
	t.Parallel()
	var templates []string
	for _, page := range pages {
		for _, m := range inlineTemplate.FindAllStringSubmatch(fencedBlock.ReplaceAllString(read(t, page), ""), -1) {
			templates = append(templates, m[1])
		}
	}
	for _, row := range alignedTable(t, "keyexpr/doc.go", "template") {
		templates = append(templates, row[0])
	}
	for _, b := range all(t, "go") {
		if b.file == migrating {
			continue // whose keys have separate tests
		}
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
		t.Errorf("the text:\n%s\nthe code:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
