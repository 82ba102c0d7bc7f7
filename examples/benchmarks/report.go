package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is one line of the table.
type row struct {
	title  string
	metric string
	digits int
	bar    *bar // nil: shown only
}

// bar is what Interlock has to reach.
type bar struct {
	text  string
	score func(values map[string][]float64) (score float64, against string)
	met   func(score float64) bool
}

func own(values map[string][]float64) (float64, string) { return median(values[interlockName]), "" }

func atMost(limit float64) *bar {
	return &bar{text: "≤ " + number(limit), score: own, met: func(s float64) bool { return s <= limit }}
}

func atLeast(limit float64) *bar {
	return &bar{text: "≥ " + number(limit), score: own, met: func(s float64) bool { return s >= limit }}
}

func ratioAtMost(reference string, limit float64) *bar {
	b := atMost(limit)
	b.text, b.score = b.text+" ×", ratioTo(reference)
	return b
}

func ratioAtLeast(reference string, limit float64) *bar {
	b := atLeast(limit)
	b.text, b.score = b.text+" ×", ratioTo(reference)
	return b
}

func ratioTo(reference string) func(map[string][]float64) (float64, string) {
	return func(values map[string][]float64) (float64, string) {
		return pairedRatio(values[interlockName], values[reference]), reference
	}
}

// ratioToFastestPeer compares with the peer whose median is highest.
func ratioToFastestPeer(limit float64) *bar {
	b := ratioAtLeast("", limit)
	b.score = func(values map[string][]float64) (float64, string) {
		fastest := ""
		for _, p := range peers() {
			if fastest == "" || median(values[p.name]) > median(values[fastest]) {
				fastest = p.name
			}
		}
		return ratioTo(fastest)(values)
	}
	return b
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// table prints Markdown, and counts the bars that were missed.
type table struct {
	out    io.Writer
	missed int
}

func (t *table) header() {
	cells := []string{"measured (medians)", interlockName, "floor"}
	for _, p := range peers() {
		cells = append(cells, p.name)
	}
	cells = append(cells, "ratio", "bar", "met")
	t.line(cells)
	t.line(append([]string{"---"}, slices.Repeat([]string{"---:"}, len(cells)-1)...))
}

func (t *table) line(cells []string) {
	fmt.Fprintf(t.out, "| %s |\n", strings.Join(cells, " | "))
}

func (t *table) add(rows []row, r results) {
	for _, row := range rows {
		values := r[row.metric]
		floor := values[plainFloor().name]
		if floor == nil {
			floor = values[pipelinedFloor().name]
		}
		cells := []string{row.title, row.cell(values[interlockName]), row.cell(floor)}
		for _, p := range peers() {
			cells = append(cells, row.cell(values[p.name]))
		}
		t.line(append(cells, t.verdict(row.bar, values)...))
	}
}

func (r row) cell(values []float64) string {
	if m := median(values); !math.IsNaN(m) {
		return strconv.FormatFloat(m, 'f', r.digits, 64)
	}
	return ""
}

// verdict fills the last three columns.
func (t *table) verdict(b *bar, values map[string][]float64) []string {
	if b == nil {
		return []string{"", "", ""}
	}
	score, against := b.score(values)
	ratio := ""
	if against != "" {
		ratio = fmt.Sprintf("%.2f × %s", score, against)
	}
	if b.met(score) {
		return []string{ratio, b.text, "yes"}
	}
	t.missed++
	return []string{ratio, b.text, "**no**"}
}
