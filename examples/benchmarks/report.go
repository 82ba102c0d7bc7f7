package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is a row of the table.
type row struct {
	title  string
	metric string
	digits int
	bar    *bar // nil: the row has no bar
}

// table prints Markdown and counts the missed bars.
type table struct {
	out     io.Writer
	columns []contender
	missed  int
}

// columns returns the contenders that take part in any of the scenarios.
func columns(of []scenario) []contender {
	all := slices.Insert(allContenders(), 1, contender{name: beforeName})
	return slices.DeleteFunc(all, func(column contender) bool {
		return !slices.ContainsFunc(of, func(s scenario) bool {
			return slices.ContainsFunc(s.contenders, func(c contender) bool { return c.name == column.name })
		})
	})
}

// hasBefore reports whether the Interlock of another build takes part.
func (t *table) hasBefore() bool {
	return slices.ContainsFunc(t.columns, func(c contender) bool { return c.name == beforeName })
}

func (t *table) header() {
	cells := []string{"measured (medians)"}
	for _, c := range t.columns {
		cells = append(cells, c.name)
	}
	cells = append(cells, "ratio", "bar", "met")
	if t.hasBefore() {
		cells = append(cells, "÷ "+beforeName)
	}
	t.line(cells)
	t.line(append([]string{"---"}, slices.Repeat([]string{"---:"}, len(cells)-1)...))
}

func (t *table) line(cells []string) {
	fmt.Fprintf(t.out, "| %s |\n", strings.Join(cells, " | "))
}

func (t *table) add(rows []row, r results) {
	for _, of := range rows {
		cells := []string{of.title}
		for _, c := range t.columns {
			cells = append(cells, of.cell(r[of.metric][c.name]))
		}
		cells = append(cells, t.verdict(of, r)...)
		if t.hasBefore() {
			ratio := pairedRatio(r[of.metric][interlockName], r[of.metric][beforeName])
			cells = append(cells, row{digits: 2}.cell([]float64{ratio}))
		}
		t.line(cells)
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
