package inspect

import (
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// findings collects what was found, each thing once.
type findings struct {
	aspect.Report

	notes aspect.Report // as its warnings
}

// add adds a problem.
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

// list is what was found, the worst first.
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
