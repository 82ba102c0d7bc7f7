package inspect

import (
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// findings collects problems and drops duplicates.
type findings struct {
	aspect.Report

	notes aspect.Report // contains the notes as warnings
}

// add adds a problem with the severity s.
func (f *findings) add(s report.Severity, p *ruleset.Problem) {
	switch s {
	case report.Error:
		f.Add(p.Endpoint, p)
	case report.Warning:
		f.Warn(p.Endpoint, p)
	case report.Note:
		f.notes.Warn(p.Endpoint, p)
	}
}

// list returns the findings in the order errors, warnings, notes.
func (f *findings) list() []report.Finding {
	var list []report.Finding
	for _, group := range []struct {
		severity report.Severity
		problems []*ruleset.Problem
	}{{report.Error, f.Errors()}, {report.Warning, f.Warnings()}, {report.Note, f.notes.Warnings()}} {
		for _, p := range group.problems {
			list = append(list, report.Finding{Severity: group.severity, Problem: p})
		}
	}
	return list
}
