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

// table prints Markdown, and counts the bars that were missed.
type table struct {
	out    io.Writer
	missed int
}

func (t *table) header() {
	cells := []string{"measured (medians)"}
	for _, c := range everybody() {
		cells = append(cells, c.name)
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
		cells := []string{row.title}
		for _, c := range everybody() {
			cells = append(cells, row.cell(r[row.metric][c.name]))
		}
		t.line(append(cells, t.verdict(row, r)...))
	}
}

func (r row) cell(values []float64) string {
	if m := median(values); !math.IsNaN(m) {
		return strconv.FormatFloat(m, 'f', r.digits, 64)
	}
	return ""
}

// verdict fills the last three columns.
func (t *table) verdict(of row, r results) []string {
	b := of.bar
	if b == nil {
		return []string{"", "", ""}
	}
	score, against := b.score(r, of.metric)
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
