package ruleset

import "io"

// Dump shows rules as they are in force: every field that has a value, in the words
// of a rule file, with the place that the value comes from. What it writes depends on
// nothing but its fields.
type Dump struct {
	// Settings are shown where they differ from the defaults. The zero value shows
	// none.
	Settings Settings

	// SettingSources are the places of settings, by their names outside Go. Optional.
	SettingSources map[string]Source

	// Rules are shown in this order. They may come from [Set.Rules], [Set.Overlay] or
	// [Resolve].
	Rules []*Resolved

	// NoSources leaves the places out, and what was set to nothing, such as disabled:
	// false. For comparing what rules say that were declared in different ways.
	NoSources bool
}

// Dump is the dump of the whole set.
func (s *Set) Dump() Dump {
	return Dump{Settings: s.Settings(), SettingSources: s.base().settingAt, Rules: s.Rules()}
}

// WriteText writes [Dump.WriteText] of the set.
func (s *Set) WriteText(w io.Writer) error { return s.Dump().WriteText(w) }

// WriteJSON writes [Dump.WriteJSON] of the set.
func (s *Set) WriteJSON(w io.Writer) error { return s.Dump().WriteJSON(w) }

// shownValue is a field of a rule that has a value, or a setting.
type shownValue struct {
	name   string
	value  any // see field.show
	source Source
	zero   bool // what it would be if nobody set it, such as disabled: false
}

// shown lists what the rule says, in the order of [Fields], and its name in any case.
// Of a rule that says None nothing else counts.
func (r *Resolved) shown() []shownValue {
	var fields []shownValue
	for _, f := range ruleFields {
		source := r.cause(f.name)
		switch {
		case f.name == "name":
		case source.Layer == LayerNone, r.None && f.name != "endpoint" && f.name != "none":
			continue
		}
		fields = append(fields, shownValue{f.name, f.show(&r.Rule), source, f.isZero(&r.Rule)})
	}
	return fields
}

// cause is where the value of a field comes from. Debounce decides about the times
// that are not declared.
func (r *Resolved) cause(name string) Source {
	if r.Debounce > 0 && (name == "wait_time" || name == "lease_time") && !r.declared(name) {
		return r.Source("debounce")
	}
	return r.Source(name)
}

// shown lists the settings in the order of their declaration. A zero stands for the default.
func (s Settings) shown(sources map[string]Source) []shownValue {
	var list []shownValue
	plain := defaultSettings()
	for _, f := range settingFields {
		if f.isZero(&s) {
			f.lay(&s, &plain)
		}
		value := f.show(&s)
		list = append(list, shownValue{f.name, value, sources[f.name], value == f.show(&plain)})
	}
	return list
}

// word is a text that needs no quotes in a file.
type word string
