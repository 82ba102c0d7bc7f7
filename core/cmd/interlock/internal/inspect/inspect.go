// Package inspect checks a set of rules without running the program that uses them. It needs only the rules. Given the
// program's routes or gRPC descriptors, it checks the rules against them, too.
//
// It reads no file, writes no text and needs no Redis. The command check calls [Run] and [Against] and writes their
// findings.
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

// Result is the result of [Run].
type Result struct {
	Findings   []report.Finding
	ProtoRules int // the number of rules in .proto files, for methods without a rule in the file
}

// Run checks the rules of in.Set. If in.Image is known, it checks the rules of the .proto files, too.
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
	return Result{Findings: i.findings.list(), ProtoRules: i.protoRules}
}

// checkFunctions checks the rules of functions. The types of their arguments are not known.
func checkFunctions(i *inspector) {
	for _, rules := range byEndpoint(i.in.Set, ruleset.TransportFunc) {
		if rules = i.withKey(rules, "the program"); len(rules) > 0 {
			i.check(&site{endpoint: rules[0].Endpoint, rules: rules, schema: func(unknownNames) (*keyexpr.Schema, error) {
				return keyexpr.Argument(reflect.TypeFor[any]())
			}})
		}
	}
}

// noteUnchecked adds a note for each transport whose routes or methods are not known. The note lists the checks that Run
// skipped.
func noteUnchecked(in *Inputs, found *findings) {
	for _, gap := range []struct {
		transport  ruleset.Transport
		known      bool
		noun, flag string
	}{
		{ruleset.TransportHTTP, in.Routes != nil, "route", "--routes"},
		{ruleset.TransportGRPC, in.Image != nil, "method", "--descriptors"},
	} {
		has := func(r *ruleset.Resolved) bool { return r.Endpoint.Transport == gap.transport }
		if gap.known || !slices.ContainsFunc(in.Set.Rules(), has) {
			continue
		}
		var skipped []string
		if in.Set.Settings().Unmatched != ruleset.SeverityIgnore {
			skipped = append(skipped, "every rule matches a "+gap.noun)
		}
		if in.Set.Settings().Uncovered != ruleset.SeverityIgnore {
			skipped = append(skipped, "every "+gap.noun+" that may modify data has a rule")
		}
		if len(skipped) > 0 {
			found.add(report.Note, &ruleset.Problem{
				Message: fmt.Sprintf("not checked: whether %s (pass %s)", strings.Join(skipped, ", and "), gap.flag),
			})
		}
	}
}
