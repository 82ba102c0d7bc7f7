// Package inspect checks a set of rules without the program that will use it: from the rules
// alone, or with the program's routes, methods and bodies.
//
// It depends on rules and on the packages that compile them. It reads no file, writes no text and needs no
// Redis. The command check calls [Run] and [Against] and writes their findings.
package inspect

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Result holds the findings about a set.
type Result struct {
	Findings []report.Finding
	Options  int // the number of rules of methods that only their .proto files declare
}

// Run checks the rules.
func Run(in *Inputs) Result {
	i := &inspector{in: in, orders: newOrders()}
	checkHTTP(i)
	checkGRPC(i)
	for _, p := range ruleset.MixedKinds(i.methods) { // the rules of the file were checked when it was loaded
		i.findings.add(report.Error, p)
	}
	checkFunctions(i)
	i.orders.check(&i.findings)
	checkFile(in, &i.findings)
	noteUnchecked(in, &i.findings)
	return Result{Findings: i.findings.list(), Options: i.fromOptions}
}

// checkFunctions checks the rules of functions. Their arguments are Go values of unknown types.
func checkFunctions(i *inspector) {
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportFunc) {
		if rules = i.whole(rules, "the program"); len(rules) > 0 {
			i.check(&site{endpoint: rules[0].Endpoint, rules: rules, schema: func(assumed) (*keyexpr.Schema, error) {
				return keyexpr.Argument(reflect.TypeFor[any]())
			}})
		}
	}
}

// noteUnchecked adds a note that lists the checks for which the program's routes or methods are missing.
func noteUnchecked(in *Inputs, found *findings) {
	for _, open := range []struct {
		transport  ruleset.Transport
		known      bool
		noun, flag string
	}{
		{ruleset.TransportHTTP, in.Routes != nil, "route", "--routes"},
		{ruleset.TransportGRPC, in.Image != nil, "method", "--descriptors"},
	} {
		has := func(r *ruleset.Resolved) bool { return r.Endpoint.Transport == open.transport }
		if open.known || !slices.ContainsFunc(in.Set.Rules(), has) {
			continue
		}
		var questions []string
		if in.Set.Settings().Unmatched != ruleset.SeverityIgnore {
			questions = append(questions, "every rule matches a "+open.noun)
		}
		if in.Set.Settings().Uncovered != ruleset.SeverityIgnore {
			questions = append(questions, "every "+open.noun+" that may change something has a rule")
		}
		if len(questions) > 0 {
			found.add(report.Note, &ruleset.Problem{
				Message: fmt.Sprintf("not checked: whether %s (%s shows it)", strings.Join(questions, ", and "), open.flag),
			})
		}
	}
}
