package ruleset

import (
	"maps"
	"slices"
)

// Resolved is a rule with every layer applied. Every field is set, except those that may
// stay empty, such as Fallback, When and Debounce. Do not change it.
type Resolved struct {
	Rule
	sources map[string]Source // the sources of fields, and of parts such as "keys[1]"
	origin  Source            // the source of the highest declaration: the place of the rule as a whole
	lowest  Layer             // the layer of the lowest declaration
	broken  fieldNames        // see Declared
	partial bool
}

// Partial reports whether the rule has no key yet: it is an entry of a file for
// a gRPC method or a function, and its key comes from a lower layer, which
// [Set.Overlay] adds.
func (r *Resolved) Partial() bool { return r.partial }

// Source returns the source of the value of a field. field is a name from [Fields]. The source of a field
// that no layer sets is the zero Source.
func (r *Resolved) Source(field string) Source { return r.sources[field] }

// declared reports whether the rule itself sets the field. A value from a default or a profile does
// not count.
func (r *Resolved) declared(field string) bool { return r.Source(field).Layer >= LayerCode }

// Problem returns a problem with a field of the rule or a part of a field, for packages that compile
// rules. The source of the problem is the source of the value or, if the value has none, of the
// rule.
func (r *Resolved) Problem(field, message string) *Problem {
	return &Problem{Rule: r.Name, Endpoint: r.Endpoint, Field: field, Source: r.placeOf(field), Message: message}
}

// placeOf returns the place of a problem with a field.
func (r *Resolved) placeOf(field string) Source {
	source, ok := r.sources[field]
	if !ok {
		base, _ := cutField(field)
		source = r.sources[base]
	}
	if source.Layer < LayerCode && source.File == "" && (source.Layer == layerNone || r.origin.File != "") {
		source = r.origin
	}
	return source
}

// Spelled spells the name of a field, or a value for which Go has a constant, as the place that declares
// the field does. Packages that compile rules use it in messages. "kind" and "fair" are kind and fair in a
// file, kind and KIND_FAIR in a .proto, Kind and ruleset.Fair in Go.
func (r *Resolved) Spelled(field, word string) string { return r.placeOf(field).spell(word) }

// overlay lays the fields that d sets over the rule.
func (r *Resolved) overlay(d *Declared) {
	sources := map[string]Source{}
	for _, f := range ruleFields {
		if !d.sets(f) {
			continue
		}
		f.lay(&r.Rule, &d.Rule)
		sources[f.name] = d.source(f.name)
		if other := fieldNamed(f.instead); other != nil && !d.sets(other) {
			other.lay(&r.Rule, &Rule{})
			delete(r.sources, other.name)
		}
	}
	r.Keys = slices.Clone(r.Keys)
	r.broken = slices.Concat(r.broken, d.broken)
	if r.sources == nil {
		r.sources = map[string]Source{}
	}
	maps.DeleteFunc(r.sources, func(name string, _ Source) bool { // the parts of the previous value
		base, _ := cutField(name)
		_, again := sources[base]
		return again
	})
	maps.Copy(r.sources, sources)
	for name, source := range d.Fields {
		if _, part := cutField(name); part != "" {
			r.sources[name] = source
		}
	}
}

// lock identifies a lock. Two calls exclude each other if they take the same one.
type lock struct {
	kind    Kind
	key     string // with its prefix
	permits int    // the number of permits of a semaphore
}

// locks returns the locks that the rule takes.
func (r *Resolved) locks() []lock {
	if r.lockless() != "" {
		return nil
	}
	list := make([]lock, len(r.Templates()))
	for i, key := range r.lockKeys() {
		if list[i] = (lock{kind: r.Kind, key: key}); r.Kind.Traits().Permits {
			list[i].permits = r.Permits
		}
	}
	return list
}

// lockKeys returns the templates with the prefix of the rule.
func (r *Resolved) lockKeys() []string {
	keys := slices.Clone(r.Templates())
	for i := range keys {
		keys[i] = r.Prefix + keys[i]
	}
	return keys
}

// lockless returns the field that keeps the rule from taking a lock, or "" if the rule takes one.
func (r *Resolved) lockless() string {
	switch {
	case r.None:
		return "none"
	case r.Disabled:
		return "disabled"
	case r.DryRun:
		return "dry_run"
	default:
		return ""
	}
}

// mayBePartial reports whether the rule has no key and a lower layer may add one.
func (r *Resolved) mayBePartial() bool {
	return r.Endpoint.mayHaveLower() && !r.None && r.origin.Layer == LayerYAML && !r.declared("key") && !r.declared("keys")
}
