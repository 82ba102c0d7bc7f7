// Package report writes what a check found, for people and for machines.
package report

import (
	"cmp"
	"slices"

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
		return cmp.Or(cmp.Compare(cmp.Or(p.File, last), cmp.Or(q.File, last)), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
	})
}

// last is behind the names of all files.
const last = "\xff"

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
