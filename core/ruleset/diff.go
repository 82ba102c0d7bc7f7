package ruleset

import (
	"cmp"
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

// Change is one difference between two sets. In JSON, what is empty is left out.
type Change struct {
	Kind     ChangeKind `json:"kind"`
	Endpoint Endpoint   `json:"endpoint,omitzero"` // zero for a setting
	Rule     string     `json:"rule,omitempty"`    // the rule's name, empty for a setting
	Field    string     `json:"field,omitempty"`   // the field or setting, of ChangeField

	// Old and New are the values in the words of a file, empty where there is none.
	// Keys that were one Key and are several Keys now are one change. OldSource and
	// NewSource are the places of the values, or of the rules.
	Old       string `json:"old,omitempty"`
	OldSource Source `json:"old_source,omitzero"`
	New       string `json:"new,omitempty"`
	NewSource Source `json:"new_source,omitzero"`

	// OldRule and NewRule are the rule before and after, nil where there is none and for a
	// setting.
	OldRule *Resolved `json:"-"`
	NewRule *Resolved `json:"-"`

	// Rekeys reports that programs with the old set and programs with the new one
	// would not exclude each other: see [CompareLocks].
	Rekeys bool `json:"rekeys,omitempty"`
}

// Diff lists what is different in next: the settings, then the rules of next in their
// order, then those of old that are gone. Values that come from defaults and profiles
// count like others; places alone do not. Rules are the same when endpoint and name
// are.
func Diff(old, next *Set) []Change {
	changes := diffValues(Change{Kind: ChangeField}, namesOf(settingFields),
		old.Settings().shown(old.base().settingAt), next.Settings().shown(next.base().settingAt))
	before, after := byIdentity(old), byIdentity(next)
	for _, r := range next.Rules() {
		if was := before[identityOf(&r.Rule)]; was != nil {
			changes = append(changes, diffFields(was, r, old, next)...)
		} else {
			changes = append(changes, Change{Kind: ChangeAdded, Endpoint: r.Endpoint, Rule: r.Name, NewSource: r.origin, NewRule: r})
		}
	}
	for _, r := range old.Rules() {
		if after[identityOf(&r.Rule)] == nil {
			changes = append(changes, Change{Kind: ChangeRemoved, Endpoint: r.Endpoint, Rule: r.Name, OldSource: r.origin, OldRule: r})
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

// diffFields compares the fields of a rule, without its name, which is the same, zeros,
// which are no values, and those that a setting switches for all rules at once.
func diffFields(old, next *Resolved, oldSet, nextSet *Set) []Change {
	was, is := oldSet.Settings(), nextSet.Settings()
	switched := map[string]bool{"disabled": was.Disabled || is.Disabled, "dry_run": was.DryRun || is.DryRun}
	ignored := func(f shownValue) bool { return f.zero || f.name == "name" || switched[f.name] }
	return diffValues(Change{Kind: ChangeField, Endpoint: next.Endpoint, Rule: next.Name, OldRule: old, NewRule: next}, Fields(),
		slices.DeleteFunc(old.shown(), ignored), slices.DeleteFunc(next.shown(), ignored))
}

// diffValues lists the values that differ, in the order of names. Each is a change like the
// one given.
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

// byField has keys under key: they are one value in two forms.
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

// text is the value as it is compared and shown.
func (f shownValue) text() string {
	if f.name == "" {
		return ""
	}
	return yamlText(f.value)
}

// markRekeys marks what takes other locks: rules that came and went, and the fields that say which
// lock is taken.
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

// String is the change on one line.
func (c Change) String() string {
	if c.Endpoint.IsZero() && c.Rule == "" {
		return fmt.Sprintf("changed setting %s: %s -> %s", c.Field, c.Was(), side(c.New, c.NewSource))
	}
	subject := (&Problem{Rule: c.Rule, Endpoint: c.Endpoint}).subject()
	var text string
	switch c.Kind {
	case ChangeAdded:
		text = fmt.Sprintf("added %s (%s)", subject, c.NewSource)
	case ChangeRemoved:
		text = fmt.Sprintf("removed %s (%s)", subject, c.OldSource)
	case ChangeField:
		text = fmt.Sprintf("changed %s: %s: %s -> %s", subject, c.Field, c.Was(), side(c.New, c.NewSource))
	}
	if c.Rekeys {
		text += ": ANOTHER LOCK: programs with the old rules and with the new ones do not exclude each other"
	}
	return text
}

// Was is the old value with its place, or "not set".
func (c Change) Was() string { return side(c.Old, c.OldSource) }

// side is one of two values with its place.
func side(value string, source Source) string {
	switch {
	case value == "":
		return "not set"
	case source.Layer == layerNone:
		return value
	}
	return fmt.Sprintf("%s (%s)", value, source)
}
