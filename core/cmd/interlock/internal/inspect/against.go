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

// Against says what is different from the rules in force: as notes; what lets calls run without
// a lock as warnings; and what a reload would refuse as errors.
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

// unlocks is how a change lets calls run without a lock, nil if it does not.
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

// add notes a change. What the reload refuses an error says, so that the field needs no line of its
// own.
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
				return // of a rule that has no lock on purpose nothing else counts
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
	if p.Source.File == "" { // of what is gone no line is left
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: c.in.Name, Line: 1}
	}
	c.found.add(severity, p)
}

// runs says how the handler of an endpoint runs that has lost a lock, and what to write if that
// is meant.
func (c *comparison) runs(change *ruleset.Change, u *ruleset.Unlocking) string {
	switch {
	case u.Field == "when":
		return ": calls for which it is false run without this lock"
	case u.New != nil && locks(u.New):
		return ": the handler runs without the lock then"
	}
	after := c.at(c.in.Set, change.Endpoint)
	text, advice := ": the endpoint runs unlocked", ": write none: true or disabled: true if that is meant"
	switch t := change.Endpoint.Transport; {
	case slices.ContainsFunc(after, locks):
		text, advice = ": the handler runs without this lock", ": write disabled: true if that is meant"
	case len(after) > 0: // by a rule that says so
		return text
	case t == ruleset.TransportFunc:
		text = ": the function runs unlocked, unless the program has a rule for it"
	case t == ruleset.TransportGRPC && c.in.Image == nil:
		text += ", unless its .proto has a rule (--descriptors tells)"
	}
	if change.Field != "" || change.NewRule != nil {
		return text
	}
	return text + advice
}

// at are the rules that an endpoint has by a set and by its options.
func (c *comparison) at(set *ruleset.Set, e ruleset.Endpoint) []*ruleset.Resolved {
	own := set.Lookup(e)
	if c.in.Image == nil || e.Transport != ruleset.TransportGRPC || len(own) > 0 && own[0].None {
		return own
	}
	m, known := c.in.Image.Method(e.Path)
	if !known {
		m = protorules.Method{FullMethod: e.Path}
	}
	if laid, err := image.Overlay(set, m); err == nil {
		return laid
	}
	return own // Run reports it
}
