package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/image"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Against compares the rules with the rules in force. It reports each change as a note, a change that lets calls
// run without a lock as a warning, and a change that a reload would refuse as an error.
func Against(old *ruleset.Set, in *Inputs) []report.Finding {
	c := comparison{in: in, old: old}
	refused, unlocked := ruleset.CompareLocks(old, in.Set)
	c.unlocked = slices.DeleteFunc(unlocked, func(u ruleset.Unlocking) bool { return c.hasOptions(u.Endpoint) })
	if in.Image != nil {
		for _, m := range in.Image.Methods {
			e := ruleset.GRPC(m.FullMethod)
			others, lost := ruleset.CompareLocksAt(e, c.at(old, e), c.at(in.Set, e))
			c.unlocked = append(c.unlocked, lost...)
			if !in.Set.Settings().AllowRekey {
				refused = append(refused, others...)
			}
		}
	}
	for _, change := range ruleset.Diff(old, in.Set) {
		c.add(&change)
	}
	for _, p := range refused {
		c.found.add(report.Error, p)
	}
	return c.found.list()
}

// comparison is one run of Against.
type comparison struct {
	in       *Inputs
	old      *ruleset.Set
	found    findings
	unlocked []ruleset.Unlocking
}

// hasOptions reports whether the options of a method are known.
func (c *comparison) hasOptions(e ruleset.Endpoint) bool {
	if c.in.Image == nil || e.Transport != ruleset.TransportGRPC {
		return false
	}
	_, known := c.in.Image.Method(e.Path)
	return known
}

// unlocks returns the unlocking that a change causes, or nil.
func (c *comparison) unlocks(change *ruleset.Change) *ruleset.Unlocking {
	is := func(r *ruleset.Resolved) bool {
		return r != nil && r.Endpoint == change.Endpoint && r.Name == change.Rule
	}
	i := slices.IndexFunc(c.unlocked, func(u ruleset.Unlocking) bool {
		switch {
		case change.Field == "" && change.NewRule == nil:
			return is(u.Old) && (u.New == nil || !locks(u.New))
		case change.Field != "":
			return is(u.New) && u.Field == change.Field
		default:
			return is(u.New)
		}
	})
	if i < 0 {
		return nil
	}
	return &c.unlocked[i]
}

// add reports a change. It leaves out a field for which a reload is refused, because an error reports it.
func (c *comparison) add(change *ruleset.Change) {
	p := &ruleset.Problem{Rule: change.Rule, Endpoint: change.Endpoint, Field: change.Field, Source: change.NewSource}
	switch after := change.NewRule; {
	case change.Field == "" && after != nil:
		p.Message = "added"
	case change.Field == "":
		p.Message = fmt.Sprintf("removed (%s)", change.OldSource)
	default:
		if after != nil {
			if after.None && change.Field != "none" {
				return // a rule with None has no other values
			}
			p.Source = after.Problem(change.Field, "").Source
		}
		p.Message = fmt.Sprintf("changed from %s to %s", change.Was(), cmp.Or(change.New, "not set"))
	}
	severity := report.Note
	switch u := c.unlocks(change); {
	case change.Rekeys && !c.in.Set.Settings().AllowRekey && change.Field != "":
		return
	case change.Rekeys:
		p.Message += ": ANOTHER LOCK"
		severity = report.Warning
	case u != nil:
		p.Message += c.runs(change, u)
		severity = report.Warning
	}
	if p.Source.File == "" { // a removed rule has no line in the new file
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: c.in.Name, Line: 1}
	}
	c.found.add(severity, p)
}

// runs describes how the handler of an endpoint runs after a change takes its lock away, with advice if that
// may not be intended.
func (c *comparison) runs(change *ruleset.Change, u *ruleset.Unlocking) string {
	switch {
	case u.Field == "when":
		return ": calls for which it is false run without this lock"
	case u.New != nil && locks(u.New):
		return ": the handler runs without the lock in that case"
	}
	after := c.at(c.in.Set, change.Endpoint)
	text, advice := ": the endpoint runs unlocked", ": write none: true or disabled: true if that is meant"
	switch t := change.Endpoint.Transport; {
	case slices.ContainsFunc(after, locks):
		text, advice = ": the handler runs without this lock", ": write disabled: true if that is meant"
	case len(after) > 0: // another rule unlocks it
		return text
	case t == ruleset.TransportFunc:
		text = ": the function runs unlocked, unless the program has a rule for it"
	case t == ruleset.TransportGRPC && c.in.Image == nil:
		text += ", unless its .proto has a rule (--descriptors shows it)"
	}
	if change.Field != "" || change.NewRule != nil {
		return text
	}
	return text + advice
}

// at returns the rules of an endpoint in a set, with its options.
func (c *comparison) at(set *ruleset.Set, e ruleset.Endpoint) []*ruleset.Resolved {
	rules := set.Lookup(e)
	if c.in.Image == nil || e.Transport != ruleset.TransportGRPC || len(rules) > 0 && rules[0].None {
		return rules
	}
	m, known := c.in.Image.Method(e.Path)
	if !known {
		m = protorules.Method{FullMethod: e.Path}
	}
	if laid, err := image.Overlay(set, m); err == nil {
		return laid
	}
	return rules // Run reports the error
}
