package inspect

import (
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/routes"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/rulefile"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Inputs holds the rules and the known facts about the program.
type Inputs struct {
	Name string         // the name of the checked file, for problems without a line
	File *rulefile.File // nil: only the options of .proto files are checked
	Set  *ruleset.Set   // the rules of the file

	Service string // the name of the program in the services lists of the file; "" if not given

	Routes *routes.Table // nil: not known
	Image  *image.Image  // nil: not known
}

// inspector checks the rules of endpoints and collects the findings.
type inspector struct {
	in          *Inputs
	findings    findings
	orders      *orders
	fromOptions int                 // the number of rules that only a .proto file declares
	methods     []*ruleset.Resolved // rules of known methods that compile, with all known layers
}

// check compiles the rules of a site and checks them if they compile. It reports whether they
// compile.
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

// whole returns the rules that have a key. It adds a note for each of the others, whose key has to
// be declared in where.
func (i *inspector) whole(rules []*ruleset.Resolved, where string) []*ruleset.Resolved {
	var whole []*ruleset.Resolved
	for _, r := range rules {
		if !r.Partial() {
			whole = append(whole, r)
			continue
		}
		i.findings.add(report.Note, r.Problem("key", "not checked: the rule has no key here, so it has to be in "+where))
	}
	return whole
}

// byEndpoint groups the rules of a transport that take a lock, in order.
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
