package ruleset

import (
	"maps"
	"slices"
)

// Declared is one declaration of a rule with its source: what a file reader makes
// of an entry. For rules written in Go, [Code] does.
type Declared struct {
	Rule Rule

	// Source is the place of the declaration as a whole.
	Source Source

	// Fields are the sources of single fields by their names (see [Fields]). A field
	// listed here counts as set even when its value is zero: "disabled: false" over
	// a rule that is disabled in code. Parts of a field may have a source of their
	// own: "keys[1]", "status.busy.http". Optional.
	Fields map[string]Source

	// broken are the fields that are set to something unreadable. That was reported;
	// nothing more is said about them.
	broken fieldSet
}

// Code declares a rule in Go.
func Code(r Rule) Declared { return Declared{Rule: r, Source: Source{Layer: LayerCode}} }

func inCode(rules []Rule) []Declared {
	declared := make([]Declared, len(rules))
	for i, r := range rules {
		declared[i] = Code(r)
	}
	return declared
}

// set is the set of fields that the declaration sets.
func (d *Declared) set() fieldSet {
	set := setFields(&d.Rule)
	for name := range d.Fields {
		if i := fieldIndex(name); i >= 0 {
			set = set.with(i)
		}
	}
	return set
}

func (d *Declared) source(i int) Source {
	if s, ok := d.Fields[ruleFields.names[i]]; ok {
		return s
	}
	return d.Source
}

// Resolved is a rule with every layer applied: no field is "not set" any more,
// except those for which nothing is a value (Fallback, When, Debounce and so on).
// Do not change it.
type Resolved struct {
	Rule
	sources []Source
	parts   map[string]Source // of parts of fields, such as "keys[1]"
	origin  Source            // of the highest declaration: the place of the rule as a whole
	lowest  Layer             // of the lowest declaration
	broken  fieldSet          // see Declared
	partial bool
}

// Partial reports whether the rule has no key of its own: a declaration in a file for
// a gRPC method or a function whose key is to come from a lower layer, which
// [Set.Overlay] adds.
func (r *Resolved) Partial() bool { return r.partial }

// Source tells where a field's value comes from; [LayerNone] for a field that
// nobody set. field is a name from [Fields].
func (r *Resolved) Source(field string) Source {
	if i := fieldIndex(field); i >= 0 && i < len(r.sources) {
		return r.sources[i]
	}
	return Source{}
}

// declared reports whether the rule itself sets the field, as opposed to a
// default or its profile.
func (r *Resolved) declared(field string) bool { return r.Source(field).Layer >= LayerCode }

// Problem makes a problem of this rule with a field or a part of one, for those who
// compile it. Its source is that of the value; of the rule where the value has none.
func (r *Resolved) Problem(field, message string) *Problem {
	return &Problem{Rule: r.Name, Endpoint: r.Endpoint, Field: field, Source: r.placeOf(field), Message: message}
}

// placeOf is where a problem with a field is.
func (r *Resolved) placeOf(field string) Source {
	source, ok := r.parts[field]
	if !ok {
		base, _ := cutField(field)
		source = r.Source(base)
	}
	if source.Layer < LayerCode && source.File == "" && (source.Layer == LayerNone || r.origin.File != "") {
		source = r.origin
	}
	return source
}

// overlay lays the declared fields over the rule. Key and Keys are one thing in two
// forms: setting one takes the other away.
func (r *Resolved) overlay(d *Declared) {
	if r.sources == nil {
		r.sources = make([]Source, len(ruleFields.names))
	}
	set := d.set()
	r.broken |= d.broken
	r.overlayParts(d, set)
	if key, keys := fieldIndex("key"), fieldIndex("keys"); set.has(key) != set.has(keys) {
		r.clear(key)
		r.clear(keys)
	}
	from, to := valueOf(&d.Rule), valueOf(&r.Rule)
	for i := range from.NumField() {
		if set.has(i) {
			to.Field(i).Set(from.Field(i))
			r.sources[i] = d.source(i)
		}
	}
	r.Keys = slices.Clone(r.Keys)
}

// overlayParts replaces the sources of the parts of the fields in set.
func (r *Resolved) overlayParts(d *Declared, set fieldSet) {
	maps.DeleteFunc(r.parts, func(name string, _ Source) bool {
		base, _ := cutField(name)
		return set.has(fieldIndex(base))
	})
	for name, source := range d.Fields {
		if _, part := cutField(name); part == "" {
			continue
		}
		if r.parts == nil {
			r.parts = map[string]Source{}
		}
		r.parts[name] = source
	}
}

// clear makes a field "not set".
func (r *Resolved) clear(i int) {
	valueOf(&r.Rule).Field(i).SetZero()
	r.sources[i] = Source{}
}
