package inspect

import (
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Inputs holds the rules and everything that is known about the program.
type Inputs struct {
	Name string         // the name of the checked file, for problems without a line
	File *rulefile.File // nil without a file, if only options in .proto files are checked
	Set  *ruleset.Set   // the rules of the file

	Service string // the name of the program in the services lists of the file; "" if not given

	Routes *routes.Table // the routes of the program; nil if they are not known
	Image  *image.Image  // the gRPC descriptors; nil if they are not known
}

// inspector checks the rules of endpoints and collects the findings.
type inspector struct {
	in         *Inputs
	findings   findings
	orders     *orders
	protoRules int                 // see [Result]
	methods    []*ruleset.Resolved // the rules of the methods in the descriptors, if they compile
}

// check compiles the rules of s and reports whether they compile. If they do, check adds warnings about them.
func (i *inspector) check(s *site) bool {
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

// withKey returns the rules that have a key. For each other rule it adds a note, which says where the key has to be
// declared.
func (i *inspector) withKey(rules []*ruleset.Resolved, where string) []*ruleset.Resolved {
	var complete []*ruleset.Resolved
	for _, r := range rules {
		if !r.Partial() {
			complete = append(complete, r)
			continue
		}
		i.findings.add(report.Note, r.Problem("key", "not checked: the rule has no key here, so it has to be in "+where))
	}
	return complete
}

// byEndpoint groups the rules of transport t by endpoint, in the order of the set. It leaves out rules with None.
func byEndpoint(set *ruleset.Set, t ruleset.Transport) [][]*ruleset.Resolved {
	var groups [][]*ruleset.Resolved
	index := map[ruleset.Endpoint]int{}
	for _, r := range set.Rules() {
		if r.Endpoint.Transport != t || r.None {
			continue
		}
		n, known := index[r.Endpoint]
		if !known {
			n = len(groups)
			index[r.Endpoint] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], r)
	}
	return groups
}
