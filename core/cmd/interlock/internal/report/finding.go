// Package report writes what a check found, for people and for machines.
package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the program would not start
	Warning Severity = "warning" // it would, and may do what is not meant
	Note    Severity = "note"    // what could not be judged
)

// Finding is one thing that was found.
type Finding struct {
	Severity Severity
	Problem  *ruleset.Problem
}

// Sort orders findings by their place, those without a file last. Equal ones keep
// their order.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		p, q := a.Problem.Source, b.Problem.Source
		if noFile := cmp.Compare(btoi(p.File == ""), btoi(q.File == "")); noFile != 0 {
			return noFile
		}
		return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Count is how many findings have a severity.
func Count(findings []Finding, s Severity) int {
	n := 0
	for _, f := range findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// place is the position of a problem as its text begins, "" without a file.
func place(p *ruleset.Problem) string {
	parts := []string{p.Source.File}
	for _, n := range []int{p.Source.Line, p.Source.Column} {
		if n > 0 {
			parts = append(parts, strconv.Itoa(n))
		}
	}
	if parts[0] == "" {
		return ""
	}
	return strings.Join(parts, ":") + ": "
}

// withoutPlace is the text of a problem after its position.
func withoutPlace(p *ruleset.Problem) string { return strings.TrimPrefix(p.Error(), place(p)) }
