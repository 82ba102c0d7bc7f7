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

// Against compares the rules in.Set with the rules old, which are in force. It returns a finding for each change. A change
// is an error if a reload would refuse it, a warning if it gives calls another lock or lets them run without a lock, and
// otherwise a note.
func Against(old *ruleset.Set, in *Inputs) []report.Finding {
	c := comparison{in: in, old: old}
	refused, unlocked := ruleset.CompareLocks(old, in.Set)
	c.unlocked = slices.DeleteFunc(unlocked, func(u ruleset.Unlocking) bool { return c.hasOptions(u.Endpoint) })
	if in.Image != nil {
		for _, m := range in.Image.Methods {
			e := ruleset.GRPC(m.FullMethod)
			others, lost := ruleset.CompareLocksAt(e, c.rulesAt(old, e), c.rulesAt(in.Set, e))
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

// comparison is the state of one call of Against.
type comparison struct {
	in       *Inputs
	old      *ruleset.Set
	found    findings
	unlocked []ruleset.Unlocking
}

// hasOptions reports whether the .proto options of the method e are known.
func (c *comparison) hasOptions(e ruleset.Endpoint) bool {
	if c.in.Image == nil || e.Transport != ruleset.TransportGRPC {
		return false
	}
	_, known := c.in.Image.Method(e.Path)
	return known
}

// unlocks returns the unlocking that a change causes, nil if it causes none.
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

// add adds a finding for a change. It leaves out a field whose change a reload would refuse, because an error reports that
// change.
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
		p.Message += c.describeUnlocking(change, u)
		severity = report.Warning
	}
	if p.Source.File == "" { // a removed rule has no line in the new file
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: c.in.Name, Line: 1}
	}
	c.found.add(severity, p)
}

// describeUnlocking describes how a handler runs after a change removes its lock. It adds advice if that may not be
// intended.
func (c *comparison) describeUnlocking(change *ruleset.Change, u *ruleset.Unlocking) string {
	switch {
	case u.Field == "when":
		return ": calls for which it is false run without this lock"
	case u.New != nil && locks(u.New):
		return ": the handler runs without the lock in that case"
	}
	after := c.rulesAt(c.in.Set, change.Endpoint)
	text, advice := ": the endpoint runs unlocked", ": write none: true or disabled: true if that is meant"
	switch t := change.Endpoint.Transport; {
	case slices.ContainsFunc(after, locks):
		text, advice = ": the handler runs without this lock", ": write disabled: true if that is meant"
	case len(after) > 0: // another rule unlocks it
		return text
	case t == ruleset.TransportFunc:
		text = ": the function runs unlocked, unless the program has a rule for it"
	case t == ruleset.TransportGRPC && c.in.Image == nil:
		text += ", unless its .proto has a rule (pass --descriptors)"
	}
	if change.Field != "" || change.NewRule != nil {
		return text
	}
	return text + advice
}

// rulesAt returns the rules of the endpoint e in set, merged with its .proto options if they are known.
func (c *comparison) rulesAt(set *ruleset.Set, e ruleset.Endpoint) []*ruleset.Resolved {
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
