package inspect

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/overlay"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// Against says what is different from the rules in force: as notes; what takes a lock
// away as warnings; and what a reload would refuse as errors.
func Against(old *ruleset.Set, in *Inputs) []report.Finding {
	c := comparison{in: in, old: old, before: index(old), after: index(in.Set)}
	for _, change := range ruleset.Diff(old, in.Set) {
		c.add(&change)
	}
	for _, p := range ruleset.Rekeyed(old, in.Set) {
		c.found.addOnce(report.Error, p)
	}
	if in.Image != nil && !in.Set.Settings().AllowRekey {
		c.methods()
	}
	return c.found.list()
}

// comparison is one run of Against.
type comparison struct {
	in            *Inputs
	old           *ruleset.Set
	before, after map[identity]*ruleset.Resolved
	found         findings
}

// identity is what makes two rules the same one.
type identity struct {
	endpoint ruleset.Endpoint
	name     string
}

func index(set *ruleset.Set) map[identity]*ruleset.Resolved {
	rules := map[identity]*ruleset.Resolved{}
	for _, r := range set.Rules() {
		rules[identity{r.Endpoint, r.Name}] = r
	}
	return rules
}

// rules are the two that a change is about, nil where there is none.
func (c *comparison) rules(change *ruleset.Change) (before, after *ruleset.Resolved) {
	id := identity{change.Endpoint, change.Rule}
	return c.before[id], c.after[id]
}

// methods reports what only those see who know the options, too.
func (c *comparison) methods() {
	for _, m := range c.in.Image.Methods() {
		before, err := overlay.At(c.old, m)
		after, err2 := overlay.At(c.in.Set, m)
		if err != nil || err2 != nil {
			continue // Run reports it
		}
		for _, p := range ruleset.RekeyedAt(before, after) {
			c.found.addOnce(report.Error, p)
		}
	}
}

func (c *comparison) add(change *ruleset.Change) {
	p := &ruleset.Problem{Rule: change.Rule, Endpoint: change.Endpoint, Field: change.Field, Source: change.NewSource}
	before, after := c.rules(change)
	switch change.Kind {
	case ruleset.ChangeAdded:
		unlocks := !locks(after) && anyLocks(c.at(c.old, after.Endpoint)) && !anyLocks(c.at(c.in.Set, after.Endpoint))
		p.Message = "added"
		if unlocks {
			p.Message += ": the endpoint runs unlocked"
		}
		c.report(change, p, unlocks)
	case ruleset.ChangeRemoved:
		p.Message = fmt.Sprintf("removed (%s)", change.OldSource)
		advice, unlocks := c.removal(before)
		if !change.Rekeys { // then another lock takes its place
			p.Message += advice
		}
		c.report(change, p, unlocks)
	case ruleset.ChangeField:
		c.field(change, p)
	}
}

// field reports a field that changed. Of a rule that has no lock on purpose no other
// field counts.
func (c *comparison) field(change *ruleset.Change, p *ruleset.Problem) {
	before, after := c.rules(change)
	if after != nil {
		if after.None && change.Field != "none" {
			return
		}
		p.Source = after.Problem(change.Field, "").Source
	} else if c.in.File != nil {
		p.Source = c.in.File.Settings[change.Field] // none if it is gone
	}
	p.Message = fmt.Sprintf("changed from %s to %s", side(change.Old, change.OldSource), side(change.New, ruleset.Source{}))
	off := after != nil && slices.Contains([]string{"disabled", "dry_run", "none"}, change.Field) && locks(before) && !locks(after)
	switch {
	case off && anyLocks(c.at(c.in.Set, after.Endpoint)):
		p.Message += ": the handler runs without this lock"
	case off:
		p.Message += ": the endpoint runs unlocked"
	}
	c.report(change, p, off)
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
	c.found.addOnce(severity, p)
}

// removal says what it means that a rule is gone, and whether a lock is gone with it.
func (c *comparison) removal(gone *ruleset.Resolved) (advice string, unlocks bool) {
	after := c.at(c.in.Set, gone.Endpoint)
	shared := slices.ContainsFunc(after, func(r *ruleset.Resolved) bool { return locks(r) && sharesKey(gone, r) })
	switch {
	case !locks(gone), gone.Partial(), shared: // the lock that a partial rule changes is elsewhere, and remains
		return "", false
	case anyLocks(after):
		return ": the handler runs without this lock: write disabled: true if that is meant", true
	case len(after) > 0:
		return ": the endpoint runs unlocked", true // by a rule that says so
	case gone.Endpoint.Transport == ruleset.TransportHTTP || c.in.Image != nil && gone.Endpoint.Transport == ruleset.TransportGRPC:
		return ": the endpoint runs unlocked: write none: true or disabled: true if that is meant", true
	case gone.Endpoint.Transport == ruleset.TransportGRPC:
		return ": the endpoint runs unlocked, unless its .proto has a rule (--descriptors tells): write none: true or disabled: true if that is meant", true
	default:
		return ": the function runs unlocked, unless the program has a rule for it: write none: true or disabled: true if that is meant", true
	}
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
	if laid, err := overlay.At(set, m); err == nil {
		return laid
	}
	return own // Run reports it
}

// sharesKey reports whether two rules have a lock in common.
func sharesKey(a, b *ruleset.Resolved) bool {
	return slices.ContainsFunc(a.Templates(), func(key string) bool {
		return slices.ContainsFunc(b.Templates(), func(other string) bool { return a.Prefix+key == b.Prefix+other })
	})
}

func anyLocks(rules []*ruleset.Resolved) bool { return slices.ContainsFunc(rules, locks) }

// side is one of two values, with its place if there is one.
func side(value string, s ruleset.Source) string {
	switch {
	case value == "":
		return "not set"
	case s == ruleset.Source{}:
		return value
	default:
		return fmt.Sprintf("%s (%s)", value, s)
	}
}
