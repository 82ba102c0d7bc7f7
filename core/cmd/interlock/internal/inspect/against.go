package inspect

import (
	"fmt"

	"github.com/interlock-go/interlock/core/cmd/interlock/internal/overlay"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Against says what is different from the rules in force, as notes, and which
// differences a reload would refuse, as errors.
func Against(old *ruleset.Set, in *Inputs) []report.Finding {
	var found findings
	for _, c := range ruleset.Diff(old, in.Set) {
		switch allowed := in.Set.Settings().AllowRekey; {
		case !c.Rekeys:
			found.addOnce(report.Note, changed(in.File, &c))
		case allowed || c.Kind != ruleset.ChangeField: // else the error below says it all
			found.addOnce(report.Warning, changed(in.File, &c))
		}
	}
	for _, p := range ruleset.Rekeyed(old, in.Set) {
		found.addOnce(report.Error, p)
	}
	if in.Image == nil || in.Set.Settings().AllowRekey {
		return found.list()
	}
	for _, m := range in.Image.Methods() {
		before, err := overlay.At(old, m)
		after, err2 := overlay.At(in.Set, m)
		if err != nil || err2 != nil {
			continue // Run reports it
		}
		for _, p := range ruleset.RekeyedAt(before, after) {
			found.addOnce(report.Error, p)
		}
	}
	return found.list()
}

// changed is a change as a problem.
func changed(file string, c *ruleset.Change) *ruleset.Problem {
	p := &ruleset.Problem{Rule: c.Rule, Endpoint: c.Endpoint, Field: c.Field, Source: c.NewSource}
	switch c.Kind {
	case ruleset.ChangeAdded:
		p.Message = "added"
	case ruleset.ChangeRemoved:
		p.Message, p.Source = "removed", c.OldSource
	case ruleset.ChangeField:
		p.Message = fmt.Sprintf("changed from %s to %s", side(c.Old, c.OldSource), side(c.New, ruleset.Source{}))
	}
	if c.Rekeys {
		p.Message += ": ANOTHER LOCK"
	}
	if p.Source.File == "" {
		p.Source = ruleset.Source{Layer: ruleset.LayerYAML, File: file}
	}
	return p
}

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
