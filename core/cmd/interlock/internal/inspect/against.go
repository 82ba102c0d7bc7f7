package inspect

import (
	"cmp"
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
	c := comparison{in: in, old: old, lost: map[identity][]ruleset.Unlocking{}, takers: map[identity]bool{}}
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

	lost   map[identity][]ruleset.Unlocking // the locks that are taken away, by the rules that had them
	takers map[identity]bool                // the rules that take them away
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
	if u.Old != nil {
		c.lost[identityOf(u.Old)] = append(c.lost[identityOf(u.Old)], u)
	}
	if u.New != nil {
		c.takers[identityOf(u.New)] = true
	}
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
			c.found.add(report.Error, p)
		}
	}
}

func (c *comparison) add(change *ruleset.Change) {
	p := &ruleset.Problem{Rule: change.Rule, Endpoint: change.Endpoint, Field: change.Field, Source: change.NewSource}
	switch change.Kind {
	case ruleset.ChangeAdded:
		after := change.NewRule
		unlocks := c.takers[identityOf(after)]
		p.Message = "added"
		if unlocks {
			p.Message += c.runs(after.Endpoint)
		}
		c.report(change, p, unlocks)
	case ruleset.ChangeRemoved:
		p.Message = fmt.Sprintf("removed (%s)", change.OldSource)
		advice, unlocks := c.removal(change.OldRule)
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
	before, after := change.OldRule, change.NewRule
	if after != nil {
		if after.None && change.Field != "none" {
			return
		}
		p.Source = after.Problem(change.Field, "").Source
	}
	p.Message = fmt.Sprintf("changed from %s to %s", change.Was(), cmp.Or(change.New, "not set"))
	off := after != nil && slices.Contains([]string{"disabled", "dry_run", "none"}, change.Field) && !locks(after) && c.loses(before)
	if off {
		p.Message += c.runs(after.Endpoint)
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
	c.found.add(severity, p)
}

// runs says how the handler of an endpoint runs that has lost a lock.
func (c *comparison) runs(e ruleset.Endpoint) string {
	if anyLocks(c.at(c.in.Set, e)) {
		return ": the handler runs without this lock"
	}
	return ": the endpoint runs unlocked"
}

// loses reports whether the calls of an old rule take its lock no more. Calls for which a rule
// nearer to them says so are that rule's.
func (c *comparison) loses(before *ruleset.Resolved) bool {
	after := c.at(c.in.Set, before.Endpoint)
	return slices.ContainsFunc(c.lost[identityOf(before)], func(u ruleset.Unlocking) bool {
		here := func(r *ruleset.Resolved) bool { return identityOf(r) == identityOf(u.New) }
		return u.New == nil || slices.ContainsFunc(after, here)
	})
}

// removal says what it means that a rule is gone, and whether a lock is gone with it.
func (c *comparison) removal(gone *ruleset.Resolved) (advice string, unlocks bool) {
	after := c.at(c.in.Set, gone.Endpoint)
	switch {
	case !c.loses(gone):
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

func anyLocks(rules []*ruleset.Resolved) bool { return slices.ContainsFunc(rules, locks) }
