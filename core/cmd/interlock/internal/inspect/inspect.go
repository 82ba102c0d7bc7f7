// Package inspect judges a set of rules without the program that will use it: from
// the rules alone, or with what is known of the program's routes, methods and
// bodies.
package inspect

import (
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Inputs are the rules and what is known of the program.
type Inputs struct {
	Name string         // of what is checked, for what stands on no line of it
	File *rulefile.File // nil: only the options of .proto files are checked
	Set  *ruleset.Set   // the rules of the file

	Service string // for which of the services in the file the rules are; "" if not said

	Routes *routes.Table // nil: not known
	Image  *image.Image  // nil: not known

	// Body is the type of the JSON body of a route; nil where it is not known.
	Body func(routes.Route) *shape.Type
}

// Result is what was found, in the order of the places.
type Result struct {
	Findings []report.Finding
	Options  int // rules of methods that only their .proto files declare
}

// Run judges the rules.
func Run(in *Inputs) Result {
	i := &inspector{in: in, used: map[*ruleset.Resolved]bool{}, orders: orders{}}
	i.http()
	i.grpc()
	i.mixedKinds()
	i.functions()
	i.unmatched()
	i.file()
	findings := i.findings.list()
	report.Sort(findings)
	return Result{Findings: findings, Options: i.fromOptions}
}

// inspector is one run.
type inspector struct {
	in          *Inputs
	findings    findings
	orders      orders
	used        map[*ruleset.Resolved]bool // rules of the set that some endpoint has
	fromOptions int                        // rules that only a .proto file declares
	methods     []*ruleset.Resolved        // rules of known methods that compile, with all that is known of their layers
}

// judge compiles the rules of a place, and looks at what compiles. It reports whether they
// do.
func (i *inspector) judge(s *site) bool {
	if len(s.rules) == 0 {
		return false
	}
	i.orders.add(s, &i.findings)
	preview := s.compile(&i.findings)
	if preview == nil || s.endpoint.Transport == ruleset.TransportFunc {
		return preview != nil
	}
	for n, r := range s.rules { // a semaphore is mostly meant for all requests
		if name, constant := preview.Constant(n); constant && !r.Disabled && r.Kind != ruleset.Semaphore {
			i.findings.addOnce(report.Warning, r.Problem(keyField(r),
				quoted(name)+" is one lock for all requests of the endpoint: put a part such as #{"+s.example+"} into it, unless that is meant"))
		}
	}
	return true
}

// unmatched reports rules that no known endpoint has.
func (i *inspector) unmatched() {
	severity, judged := severityOf(i.in.Set.Settings().Unmatched)
	if !judged {
		return
	}
	for _, r := range i.in.Set.Rules() {
		switch {
		case i.used[r]:
		case r.Endpoint.Transport == ruleset.TransportHTTP && i.in.Routes != nil:
			i.findings.addOnce(severity, r.Problem("endpoint", i.noRoute(r.Endpoint)))
		case r.Endpoint.Transport == ruleset.TransportGRPC && i.in.Image != nil:
			i.findings.addOnce(severity, r.Problem("endpoint", i.noMethod(r.Endpoint)))
		}
	}
}

// uncovered reports an endpoint without a rule.
func (i *inspector) uncovered(e ruleset.Endpoint, what string) {
	if severity, judged := severityOf(i.in.Set.Settings().Uncovered); judged {
		i.findings.addOnce(severity, &ruleset.Problem{
			Endpoint: e, Source: ruleset.Source{Layer: ruleset.LayerYAML, File: i.in.Name},
			Message: "missing, and the " + what + " may change something: add a rule, or say `none: true` if it needs no lock",
		})
	}
}

// severityOf is what a setting makes of a finding; false for nothing.
func severityOf(s ruleset.Severity) (severity report.Severity, judged bool) {
	switch s {
	case ruleset.SeverityIgnore:
		return "", false
	case ruleset.SeverityWarn:
		return report.Warning, true
	default:
		return report.Error, true
	}
}
