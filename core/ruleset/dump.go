package ruleset

import (
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

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
	value  any // see fileValue
	source Source
	zero   bool // what it would be if nobody set it, such as disabled: false
}

// shown lists what the rule says, in the order of [Fields], and its name in any case.
// Of a rule that says None nothing else counts.
func (r *Resolved) shown() []shownValue {
	var fields []shownValue
	v := valueOf(&r.Rule)
	for i, name := range Fields()[:len(r.sources)] {
		source := r.cause(i, name)
		switch {
		case name == "name":
		case source.Layer == LayerNone, r.None && name != "endpoint" && name != "none":
			continue
		}
		fields = append(fields, shownValue{name, fileValue(v.Field(i)), source, v.Field(i).IsZero()})
	}
	return fields
}

// cause is where the value of a field comes from. Debounce decides about the times
// that are not declared.
func (r *Resolved) cause(i int, name string) Source {
	if r.Debounce > 0 && (name == "wait_time" || name == "lease_time") && !r.declared(name) {
		return r.Source("debounce")
	}
	return r.sources[i]
}

// shown lists the settings in the order of their declaration. A zero stands for the default.
func (s Settings) shown(sources map[string]Source) []shownValue {
	var list []shownValue
	plain := reflect.ValueOf(defaultSettings())
	for field, own := range reflect.ValueOf(s).Fields() {
		normal := plain.FieldByIndex(field.Index)
		if own.IsZero() {
			own = normal
		}
		name := field.Tag.Get("rule")
		list = append(list, shownValue{name, fileValue(own), sources[name], own.Equal(normal)})
	}
	return list
}

// word is a text that needs no quotes in a file.
type word string

// fileValue is a value of a field as a file says it: a string, word, bool, int,
// list of strings or object.
func fileValue(value reflect.Value) any {
	switch v := value.Interface().(type) {
	case Endpoint:
		return v.String()
	case time.Duration:
		return word(durationWord(v))
	case failpolicy.Statuses, failpolicy.Status:
		return parts(value)
	case failpolicy.Code:
		return word(v.String())
	case []string, bool, int:
		return v
	}
	return value.String()
}

// parts has the fields of a struct that are set.
func parts(value reflect.Value) object {
	list := object{}
	for field, part := range value.Fields() {
		if !part.IsZero() {
			list = append(list, member{strings.ToLower(field.Name), fileValue(part)})
		}
	}
	return list
}
