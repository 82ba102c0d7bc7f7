package ruleset

import (
	"cmp"
	"fmt"
	"slices"
)

// Change is one difference between two sets: a rule that was added or removed, or a field or setting whose
// value changed.
type Change struct {
	Endpoint Endpoint // zero for a setting
	Rule     string   // the rule's name, empty for a setting
	Field    string   // the field or setting, empty for a rule that was added or removed

	// Old and New are the values in the notation of a file, or empty without a value. A change from
	// Key to Keys is one change. OldSource and NewSource are the places of the values, or of the
	// rules.
	Old, New             string
	OldSource, NewSource Source

	// OldRule and NewRule are the rule before and after the change. OldRule is nil for an added
	// rule, NewRule for a removed one, and both for a setting.
	OldRule, NewRule *Resolved

	// Rekeys reports that programs with the old set and programs with the new one
	// would not exclude each other: see [CompareLocks].
	Rekeys bool
}

// Diff lists the differences of next: the settings, then the rules of next in their order, then
// the removed rules of old. Values from defaults and profiles count like others. Only values are
// compared, not their places. Two rules with the same endpoint and name are the same rule.
func Diff(old, next *Set) []Change {
	changes := diffValues(Change{}, namesOf(settingFields),
		settingValues(old.Settings(), old.base().settingAt), settingValues(next.Settings(), next.base().settingAt))
	before, after := byIdentity(old), byIdentity(next)
	for _, r := range next.Rules() {
		if was := before[identityOf(&r.Rule)]; was != nil {
			changes = append(changes, diffFields(was, r, old, next)...)
		} else {
			changes = append(changes, Change{Endpoint: r.Endpoint, Rule: r.Name, NewSource: r.origin, NewRule: r})
		}
	}
	for _, r := range old.Rules() {
		if after[identityOf(&r.Rule)] == nil {
			changes = append(changes, Change{Endpoint: r.Endpoint, Rule: r.Name, OldSource: r.origin, OldRule: r})
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

// diffFields compares the fields of a rule. It leaves out the name, zero values and the fields
// that a setting switches for all rules at once.
func diffFields(old, next *Resolved, oldSet, nextSet *Set) []Change {
	was, is := oldSet.Settings(), nextSet.Settings()
	switched := map[string]bool{"disabled": was.Disabled || is.Disabled, "dry_run": was.DryRun || is.DryRun}
	ignored := func(f shownValue) bool { return f.zero || f.name == "name" || switched[f.name] }
	return diffValues(Change{Endpoint: next.Endpoint, Rule: next.Name, OldRule: old, NewRule: next}, Fields(),
		slices.DeleteFunc(ruleValues(old), ignored), slices.DeleteFunc(ruleValues(next), ignored))
}

// diffValues lists the values that differ, in the order of names. Each result is a copy of change
// with the two values.
func diffValues(change Change, names []string, old, next []shownValue) []Change {
	var changes []Change
	before, after := byField(old), byField(next)
	for _, name := range names {
		was, is := before[name], after[name]
		if was.text() == is.text() {
			continue
		}
		change.Field = cmp.Or(is.name, was.name)
		change.Old, change.OldSource = was.text(), was.source
		change.New, change.NewSource = is.text(), is.source
		changes = append(changes, change)
	}
	return changes
}

// byField returns the values by field. The values of key and keys share the entry key, because they
// are one value in two forms.
func byField(list []shownValue) map[string]shownValue {
	values := map[string]shownValue{}
	for _, f := range list {
		if f.name == "keys" {
			values["key"] = f
		} else {
			values[f.name] = f
		}
	}
	return values
}

// text returns the value as a change compares and shows it.
func (f shownValue) text() string {
	if f.name == "" {
		return ""
	}
	return yamlText(f.value)
}

// markRekeys marks the changes after which a call takes another lock: added and removed rules, and fields that
// decide which lock a call takes.
func markRekeys(changes []Change, old, next *Set) {
	places := map[Endpoint]bool{}
	refused, _ := compareLocks(old, next)
	for _, p := range refused {
		places[p.Endpoint] = true
	}
	ofLock := []string{"", "key", "keys", "kind", "prefix", "permits", "when", "disabled", "dry_run", "none"}
	for i := range changes {
		c := &changes[i]
		c.Rekeys = places[c.Endpoint] && slices.Contains(ofLock, c.Field)
	}
}

// String returns the change on one line.
func (c Change) String() string {
	if c.Endpoint.IsZero() && c.Rule == "" {
		return fmt.Sprintf("changed setting %s: %s -> %s", c.Field, c.Was(), side(c.New, c.NewSource))
	}
	subject := (&Problem{Rule: c.Rule, Endpoint: c.Endpoint}).subject()
	var text string
	switch {
	case c.OldRule == nil:
		text = fmt.Sprintf("added %s (%s)", subject, c.NewSource)
	case c.NewRule == nil:
		text = fmt.Sprintf("removed %s (%s)", subject, c.OldSource)
	default:
		text = fmt.Sprintf("changed %s: %s: %s -> %s", subject, c.Field, c.Was(), side(c.New, c.NewSource))
	}
	if c.Rekeys {
		text += ": ANOTHER LOCK: programs with the old rules and with the new ones do not exclude each other"
	}
	return text
}

// Was returns the old value with its place, or "not set".
func (c Change) Was() string { return side(c.Old, c.OldSource) }

// side returns one of two values with its place.
func side(value string, source Source) string {
	switch {
	case value == "":
		return "not set"
	case source.Layer == layerNone:
		return value
	}
	return fmt.Sprintf("%s (%s)", value, source)
}
