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

// Against says what is different from the rules in force: as notes; what takes a lock
// away as warnings; and what a reload would refuse as errors.
func Against(old *ruleset.Set, in *Inputs) []report.Finding {
	c := comparison{in: in, old: old, unlocks: map[identity]bool{}}
	c.unlock()
	for _, change := range ruleset.Diff(old, in.Set) {
		c.add(&change)
	}
	for _, p := range ruleset.Rekeyed(old, in.Set) {
		c.found.add(report.Error, p)
	}
	if in.Image != nil && !in.Set.Settings().AllowRekey {
		c.methods()
	}
	return c.found.list()
}

// comparison is one run of Against.
type comparison struct {
	in    *Inputs
	old   *ruleset.Set
	found findings

	unlocks map[identity]bool // the rules that had the locks which are taken away, or that take them away
}

// identity is what a rule has in both sets, and laid over others.
type identity struct {
	endpoint ruleset.Endpoint
	name     string
}

func identityOf(r *ruleset.Resolved) identity { return identity{r.Endpoint, r.Name} }

// unlock finds the locks that are taken away: of methods whose options are known, by them.
func (c *comparison) unlock() {
	for _, u := range ruleset.Unlocked(c.old, c.in.Set) {
		if c.in.Image != nil && u.Endpoint.Transport == ruleset.TransportGRPC {
			if _, known := c.in.Image.Method(u.Endpoint.Path); known {
				continue
			}
		}
		c.note(u)
	}
	if c.in.Image == nil {
		return
	}
	for _, m := range c.in.Image.Methods() {
		e := ruleset.GRPC(m.FullMethod)
		for _, u := range ruleset.UnlockedAt(c.at(c.old, e), c.at(c.in.Set, e)) {
			c.note(u)
		}
	}
}

func (c *comparison) note(u ruleset.Unlocking) {
	for _, r := range []*ruleset.Resolved{u.Old, u.New} {
		if r != nil {
			c.unlocks[identityOf(r)] = true
		}
	}
}

// methods reports what only those see who know the options, too.
func (c *comparison) methods() {
	for _, m := range c.in.Image.Methods() {
		before, err := image.Overlay(c.old, m)
		after, err2 := image.Overlay(c.in.Set, m)
		if err != nil || err2 != nil {
			continue // Run reports it
		}
		for _, p := range ruleset.RekeyedAt(before, after) {
			c.found.add(report.Error, p)
		}
	}
}

func (c *comparison) add(change *ruleset.Change) {
	p := &ruleset.Problem{Rule: change.Rule, Endpoint: change.Endpoint, Field: change.Field, Source: change.NewSource}
	before, after := change.OldRule, change.NewRule
	unlocks := c.unlocks[identity{change.Endpoint, change.Rule}]
	switch change.Kind {
	case ruleset.ChangeAdded:
		p.Message = "added"
		unlocks = unlocks && !locks(after)
	case ruleset.ChangeRemoved:
		p.Message = fmt.Sprintf("removed (%s)", change.OldSource)
		unlocks = unlocks && locks(before)
	case ruleset.ChangeField:
		if after != nil {
			if after.None && change.Field != "none" {
				return // of a rule that has no lock on purpose nothing else counts
			}
			p.Source = after.Problem(change.Field, "").Source
		}
		p.Message = fmt.Sprintf("changed from %s to %s", change.Was(), cmp.Or(change.New, "not set"))
		unlocks = unlocks && slices.Contains([]string{"disabled", "dry_run", "none"}, change.Field) && !locks(after)
	}
	if unlocks && !change.Rekeys { // else another lock takes its place
		p.Message += c.runs(change)
	}
	c.report(change, p, unlocks)
}

// report notes a change. What the reload refuses an error says, so that the field
// needs no line of its own.
func (c *comparison) report(change *ruleset.Change, p *ruleset.Problem, unlocks bool) {
	severity := report.Note
	switch allowed := c.in.Set.Settings().AllowRekey; {
	case change.Rekeys && !allowed && change.Kind == ruleset.ChangeField:
		return
	case change.Rekeys:
		p.Message += ": ANOTHER LOCK"
		severity = report.Warning
	case unlocks:
		severity = report.Warning
	}
	if p.Source.File == "" { // of what is gone no line is left
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: c.in.Name, Line: 1}
	}
	c.found.add(severity, p)
}

// runs says how the handler of an endpoint runs that has lost a lock, and what to write if that
// is meant.
func (c *comparison) runs(change *ruleset.Change) string {
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
	if change.Kind != ruleset.ChangeRemoved {
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
