package inspect

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// findings collects what was found, each thing once.
type findings struct {
	order []*finding
	seen  map[string]*finding
}

// finding is one problem, and the endpoints that have it.
type finding struct {
	report.Finding

	endpoints []ruleset.Endpoint
}

// addAt notes a problem that a rule has at an endpoint. A rule with a wildcard may
// have it at many.
func (f *findings) addAt(e ruleset.Endpoint, s report.Severity, p *ruleset.Problem) {
	text := string(s) + p.Error()
	known := f.seen[text]
	if known == nil {
		known = &finding{Finding: report.Finding{Severity: s, Problem: p}}
		if f.seen == nil {
			f.seen = map[string]*finding{}
		}
		f.seen[text] = known
		f.order = append(f.order, known)
	}
	known.endpoints = append(known.endpoints, e)
}

// addOnce notes a problem that has nothing to do with where it was found.
func (f *findings) addOnce(s report.Severity, p *ruleset.Problem) { f.addAt(p.Endpoint, s, p) }

// list is what was found, in that order.
func (f *findings) list() []report.Finding {
	list := make([]report.Finding, len(f.order))
	for i, known := range f.order {
		problem := *known.Problem
		if at := known.endpoints[0]; at != problem.Endpoint && !strings.Contains(problem.Message, at.Label()) {
			problem.Message = known.where() + ": " + problem.Message
		}
		list[i] = report.Finding{Severity: known.Severity, Problem: &problem}
	}
	return list
}

// where names the endpoints that have the problem.
func (f *finding) where() string {
	first := f.endpoints[0].Label()
	if more := len(f.endpoints) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}
