// Package inspect judges a set of rules without the program that will use it: from
// the rules alone, or with what is known of the program's routes, methods and
// bodies.
package inspect

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Inputs are the rules and what is known of the program.
type Inputs struct {
	Name string         // of what is checked, for what stands on no line of it
	File *rulefile.File // nil: only the options of .proto files are checked
	Set  *ruleset.Set   // the rules of the file

	Service string // for which of the services in the file the rules are; "" if not said

	Routes *routes.Table // nil: not known
	Image  *image.Image  // nil: not known
}

// Result is what was found.
type Result struct {
	Findings []report.Finding
	Options  int // rules of methods that only their .proto files declare
}

// Run judges the rules.
func Run(in *Inputs) Result {
	i := &inspector{in: in, orders: newOrders()}
	i.http()
	i.grpc()
	for _, p := range ruleset.MixedKinds(i.methods) { // those of the file were judged when it was loaded
		i.findings.add(report.Error, p)
	}
	i.functions()
	i.orders.judge(&i.findings)
	i.file()
	i.notJudged()
	return Result{Findings: i.findings.list(), Options: i.fromOptions}
}

// inspector is one run.
type inspector struct {
	in          *Inputs
	findings    findings
	orders      *orders
	fromOptions int                 // rules that only a .proto file declares
	methods     []*ruleset.Resolved // rules of known methods that compile, with all that is known of their layers
}

// judge compiles the rules of a place, and looks at what compiles. It reports whether they
// do.
func (i *inspector) judge(s *site) bool {
	if len(s.rules) == 0 {
		return false
	}
	i.orders.add(s)
	preview := s.compile(&i.findings)
	if preview == nil {
		return false
	}
	for _, p := range preview.Oddities() {
		i.findings.add(report.Warning, p)
	}
	return true
}

// functions judges the rules of functions as far as one can: their arguments are Go
// values of which nothing is known.
func (i *inspector) functions() {
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportFunc) {
		if rules = i.whole(rules, "the program"); len(rules) > 0 {
			i.judge(&site{endpoint: rules[0].Endpoint, rules: rules, schema: func(assumed) (*keyexpr.Schema, error) {
				return keyexpr.Argument(reflect.TypeFor[any]())
			}})
		}
	}
}

// notJudged says what is left open without the routes or the methods of the program, where
// a rule could be wrong.
func (i *inspector) notJudged() {
	for _, open := range []struct {
		transport  ruleset.Transport
		told       bool
		what, flag string
	}{
		{ruleset.TransportHTTP, i.in.Routes != nil, "route", "--routes"},
		{ruleset.TransportGRPC, i.in.Image != nil, "method", "--descriptors"},
	} {
		ofIt := func(r *ruleset.Resolved) bool { return r.Endpoint.Transport == open.transport }
		if open.told || !slices.ContainsFunc(i.in.Set.Rules(), ofIt) {
			continue
		}
		var questions []string
		if i.in.Set.Settings().Unmatched != ruleset.SeverityIgnore {
			questions = append(questions, "every rule matches a "+open.what)
		}
		if i.in.Set.Settings().Uncovered != ruleset.SeverityIgnore {
			questions = append(questions, "every "+open.what+" that may change something has a rule")
		}
		if len(questions) > 0 {
			i.findings.add(report.Note, &ruleset.Problem{
				Message: fmt.Sprintf("not judged: whether %s (%s tells)", strings.Join(questions, ", and "), open.flag),
			})
		}
	}
}

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
