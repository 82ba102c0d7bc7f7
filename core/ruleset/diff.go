package ruleset

import (
	"fmt"
	"slices"
)

// ChangeKind is what happened to a rule, a field or a setting.
type ChangeKind string

// The kinds of changes.
const (
	ChangeAdded   ChangeKind = "added"   // a rule came
	ChangeRemoved ChangeKind = "removed" // a rule went
	ChangeField   ChangeKind = "changed" // a field or a setting has another value
)

// Change is one difference between two sets.
type Change struct {
	Kind     ChangeKind
	Endpoint Endpoint // zero for a setting
	Rule     string   // the rule's name, empty for a setting
	Field    string   // the field or setting, of ChangeField

	// Old and New are the values in the words of a file, empty where there is none.
	// Keys that were one Key and are several Keys now are one change.
	Old, New string

	// OldSource and NewSource are the places of the values, or of the rules.
	OldSource, NewSource Source

	// Rekeys reports that programs with the old set and programs with the new one
	// would not exclude each other: see [Rekeyed].
	Rekeys bool
}

// Diff lists what is different in next: the settings, then the rules of next in their
// order, then those of old that are gone. Values that come from defaults and profiles
// count like others; places alone do not. Rules are the same when endpoint and name
// are.
func Diff(old, next *Set) []Change {
	changes := diffSettings(old, next)
	before, after := byIdentity(old), byIdentity(next)
	for _, r := range next.Rules() {
		if was := before[identityOf(&r.Rule)]; was != nil {
			changes = append(changes, diffFields(was, r, old, next)...)
		} else {
			changes = append(changes, Change{Kind: ChangeAdded, Endpoint: r.Endpoint, Rule: r.Name, NewSource: r.place()})
		}
	}
	for _, r := range old.Rules() {
		if after[identityOf(&r.Rule)] == nil {
			changes = append(changes, Change{Kind: ChangeRemoved, Endpoint: r.Endpoint, Rule: r.Name, OldSource: r.place()})
		}
	}
	markRekeys(changes, old, next)
	return changes
}

func byIdentity(s *Set) map[identity]*Resolved {
	rules := map[identity]*Resolved{}
	for _, r := range s.Rules() {
		rules[identityOf(&r.Rule)] = r
	}
	return rules
}

func diffSettings(old, next *Set) []Change {
	var changes []Change
	before := settingValues(old.Settings())
	for i, s := range settingValues(next.Settings()) {
		if was, is := yamlText(before[i].value), yamlText(s.value); was != is {
			changes = append(changes, Change{
				Kind: ChangeField, Field: s.name, Old: was, New: is,
				OldSource: old.settingSources()[s.name], NewSource: next.settingSources()[s.name],
			})
		}
	}
	return changes
}

// diffFields compares the fields of a rule, without those that a setting switches for
// all rules at once.
func diffFields(old, next *Resolved, oldSet, nextSet *Set) []Change {
	switched := map[string]bool{
		"disabled": oldSet.Settings().Disabled || nextSet.Settings().Disabled,
		"dry_run":  oldSet.Settings().DryRun || nextSet.Settings().DryRun,
	}
	var changes []Change
	was, is := fieldTexts(old), fieldTexts(next)
	for _, field := range Fields() {
		a, b := was[field], is[field]
		if a.text == b.text || switched[field] {
			continue
		}
		if b.form != "" {
			field = b.form
		} else if a.form != "" {
			field = a.form
		}
		changes = append(changes, Change{
			Kind: ChangeField, Endpoint: next.Endpoint, Rule: next.Name, Field: field,
			Old: a.text, New: b.text, OldSource: a.source, NewSource: b.source,
		})
	}
	return changes
}

// fieldText is a value as it is compared and shown.
type fieldText struct {
	form   string // the field as it is written: key or keys
	text   string
	source Source
}

// fieldTexts has the values of a rule by their fields, without the name, which is the
// same, and without zeros, which are no values. Keys stand under key.
func fieldTexts(r *Resolved) map[string]fieldText {
	values := map[string]fieldText{}
	for _, f := range r.shown() {
		switch {
		case f.zero, f.name == "name":
		case f.name == "keys":
			values["key"] = fieldText{f.name, yamlText(f.value), f.source}
		default:
			values[f.name] = fieldText{f.name, yamlText(f.value), f.source}
		}
	}
	return values
}

// markRekeys marks what takes other locks: fields of a rule, or rules that came and
// went.
func markRekeys(changes []Change, old, next *Set) {
	places, fields := map[Endpoint]bool{}, map[identity]string{}
	for _, r := range rekeyings(old, next) {
		for _, p := range r.problems {
			places[r.before[0].Endpoint], places[r.after[0].Endpoint] = true, true
			fields[identityOf(&Rule{Endpoint: p.Endpoint, Name: p.Rule})] = p.Field
		}
	}
	ofKey := []string{"key", "keys", "kind", "prefix"}
	for i := range changes {
		c := &changes[i]
		if c.Kind != ChangeField {
			c.Rekeys = places[c.Endpoint]
		} else if field := fields[identityOf(&Rule{Endpoint: c.Endpoint, Name: c.Rule})]; field != "" {
			c.Rekeys = c.Field == field || slices.Contains(ofKey, c.Field)
		}
	}
}

// String is the change on one line.
func (c Change) String() string {
	if c.Endpoint.IsZero() && c.Rule == "" {
		return fmt.Sprintf("changed setting %s: %s -> %s", c.Field, side(c.Old, c.OldSource), side(c.New, c.NewSource))
	}
	subject := (&Problem{Rule: c.Rule, Endpoint: c.Endpoint}).subject()
	var text string
	switch c.Kind {
	case ChangeAdded:
		text = fmt.Sprintf("added %s (%s)", subject, c.NewSource)
	case ChangeRemoved:
		text = fmt.Sprintf("removed %s (%s)", subject, c.OldSource)
	case ChangeField:
		text = fmt.Sprintf("changed %s: %s: %s -> %s", subject, c.Field, side(c.Old, c.OldSource), side(c.New, c.NewSource))
	}
	if c.Rekeys {
		text += ": ANOTHER LOCK: programs with the old rules and with the new ones do not exclude each other"
	}
	return text
}

// side is one of two values with its place.
func side(value string, source Source) string {
	switch {
	case value == "":
		return "not set"
	case source.Layer == LayerNone:
		return value
	}
	return fmt.Sprintf("%s (%s)", value, source)
}

// MarshalJSON has the fields in lower case; what is empty is left out.
func (c Change) MarshalJSON() ([]byte, error) {
	change := object{{"kind", c.Kind}}
	add := func(name string, value any, there bool) {
		if there {
			change = append(change, member{name, value})
		}
	}
	add("endpoint", c.Endpoint.String(), !c.Endpoint.IsZero())
	add("rule", c.Rule, c.Rule != "")
	add("field", c.Field, c.Field != "")
	add("old", c.Old, c.Old != "")
	add("old_source", c.OldSource, c.OldSource != Source{})
	add("new", c.New, c.New != "")
	add("new_source", c.NewSource, c.NewSource != Source{})
	add("rekeys", true, c.Rekeys)
	return change.MarshalJSON()
}
