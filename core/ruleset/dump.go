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
	return Dump{Settings: s.Settings(), SettingSources: s.settingSources(), Rules: s.Rules()}
}

// settingSources are the places of the settings that are known.
func (s *Set) settingSources() map[string]Source { return s.base().switches.Fields }

// WriteText writes [Dump.WriteText] of the set.
func (s *Set) WriteText(w io.Writer) error { return s.Dump().WriteText(w) }

// WriteJSON writes [Dump.WriteJSON] of the set.
func (s *Set) WriteJSON(w io.Writer) error { return s.Dump().WriteJSON(w) }

// shownField is a field of a rule that has a value.
type shownField struct {
	name   string
	value  any // see fileValue
	source Source
	zero   bool // set to what it would be if nobody set it, such as disabled: false
}

// shown lists what the rule says, in the order of [Fields], and its name in any case.
// Of a rule that says None nothing else counts.
func (r *Resolved) shown() []shownField {
	var fields []shownField
	v := valueOf(&r.Rule)
	for i, name := range Fields()[:len(r.sources)] {
		source := r.cause(i, name)
		switch {
		case name == "name":
		case source.Layer == LayerNone, r.None && name != "endpoint" && name != "none":
			continue
		}
		fields = append(fields, shownField{name, fileValue(v.Field(i).Interface()), source, v.Field(i).IsZero()})
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

// settingValue is a setting of a file.
type settingValue struct {
	name    string
	value   any
	changed bool // from the default
}

// settingValues lists the settings in the order of their declaration. Zeros are the
// defaults.
func settingValues(s Settings) []settingValue {
	var values []settingValue
	v, plain := reflect.ValueOf(s), reflect.ValueOf((*Set)(nil).Settings())
	for i := range v.NumField() {
		own := v.Field(i)
		if own.IsZero() {
			own = plain.Field(i)
		}
		values = append(values, settingValue{
			name:    v.Type().Field(i).Tag.Get("rule"),
			value:   fileValue(own.Interface()),
			changed: !own.Equal(plain.Field(i)),
		})
	}
	return values
}

// word is a text that needs no quotes in a file.
type word string

// fileValue is a value of a field as a file says it: a string, word, bool, int,
// list of strings or object.
func fileValue(value any) any {
	switch v := value.(type) {
	case Endpoint:
		return v.String()
	case time.Duration:
		return word(durationWord(v))
	case failpolicy.Statuses:
		return statusesValue(v)
	case []string, bool, int:
		return v
	}
	return reflect.ValueOf(value).String()
}

// durationWord is a time, or the word for what is no time.
func durationWord(d time.Duration) string {
	if name := sentinelName(d); name != "" {
		return fileWord(name)
	}
	return shortTime(d)
}

// statusesValue has the statuses that are set.
func statusesValue(s failpolicy.Statuses) object {
	causes := object{}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		status, ok := reflect.TypeAssert[failpolicy.Status](v.Field(i))
		if !ok || status == (failpolicy.Status{}) {
			continue
		}
		causes = append(causes, member{strings.ToLower(v.Type().Field(i).Name), statusValue(status)})
	}
	return causes
}

func statusValue(s failpolicy.Status) object {
	var pair object
	if s.HTTP != 0 {
		pair = append(pair, member{"http", s.HTTP})
	}
	if s.GRPC != failpolicy.OK {
		pair = append(pair, member{"grpc", word(s.GRPC.String())})
	}
	return pair
}
