package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// Declared is one declaration of a rule with its source: what a file reader makes
// of an entry.
type Declared struct {
	Rule Rule

	// Source is the place of the declaration as a whole. The zero Source is that of a rule in Go.
	Source Source

	// Fields are the sources of single fields by their names (see [Fields]). A field
	// listed here counts as set even when its value is zero: "disabled: false" over
	// a rule that is disabled in code. Parts of a field may have a source of their
	// own: "keys[1]", "status.busy.http". Optional.
	Fields map[string]Source

	// broken are the fields that are set to something unreadable. That was reported;
	// nothing more is said about them.
	broken fieldList
}

func inCode(rules []Rule) []Declared {
	declared := make([]Declared, len(rules))
	for i, r := range rules {
		declared[i] = Declared{Rule: r, Source: Source{Layer: LayerCode}}
	}
	return declared
}

// Set sets a field of the rule, or a part of one such as "status.busy.http", to a value as a
// .proto has it: a string, bool, int or list of strings; of an enum the word. The error says
// what to write instead, as the layer of the declaration spells it. Words of another field and
// values out of range are no errors here, but of [BuildSet].
func (d *Declared) Set(field string, value any) error {
	base, part := cutField(field)
	f := fieldNamed(base)
	if f == nil {
		if near := failpolicy.Nearest(base, Fields()); near != "" {
			return fmt.Errorf("a rule has no %s: write %s", base, near)
		}
		return fmt.Errorf("a rule has no %s: there are %s", base, strings.Join(Fields(), ", "))
	}
	return f.set(&d.Rule, part, d.Source.Layer, value)
}

// sets reports whether the declaration sets the field.
func (d *Declared) sets(f *field[Rule]) bool {
	_, listed := d.Fields[f.name]
	return listed || !f.isZero(&d.Rule)
}

func (d *Declared) source(field string) Source {
	if s, ok := d.Fields[field]; ok {
		return s
	}
	return d.Source
}

// Resolved is a rule with every layer applied: no field is "not set" any more,
// except those for which nothing is a value (Fallback, When, Debounce and so on).
// Do not change it.
type Resolved struct {
	Rule
	sources map[string]Source // of fields, and of parts of them such as "keys[1]"
	origin  Source            // of the highest declaration: the place of the rule as a whole
	lowest  Layer             // of the lowest declaration
	broken  fieldList         // see Declared
	partial bool
}

// Partial reports whether the rule has no key of its own: a declaration in a file for
// a gRPC method or a function whose key is to come from a lower layer, which
// [Set.Overlay] adds.
func (r *Resolved) Partial() bool { return r.partial }

// Source tells where a field's value comes from; layerNone for a field that
// no layer sets. field is a name from [Fields].
func (r *Resolved) Source(field string) Source { return r.sources[field] }

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

// overlay lays the declared fields over the rule.
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
	maps.DeleteFunc(r.sources, func(name string, _ Source) bool { // the parts of what was there
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

// Layer is where a value was declared. Higher layers are laid over lower ones.
type Layer uint8

// The layers, lowest first.
const (
	layerNone    Layer = iota // not set at all
	LayerDefault              // built in, or the program's own defaults
	LayerProfile
	LayerCode
	LayerProto
	LayerYAML
)

// String is the layer's word.
func (l Layer) String() string {
	switch l {
	case LayerDefault:
		return "default"
	case LayerProfile:
		return "profile"
	case LayerCode:
		return "code"
	case LayerProto:
		return "proto"
	case LayerYAML:
		return "yaml"
	default:
		return "not set"
	}
}

// MarshalText is [Layer.String].
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Source is where one value of a rule comes from.
type Source struct {
	Layer   Layer  `json:"layer"`
	Profile string `json:"profile,omitempty"` // the profile's name, of LayerProfile
	File    string `json:"file,omitempty"`    // empty for code and what is built in
	Line    int    `json:"line,omitempty"`    // from 1; 0 when unknown
	Column  int    `json:"column,omitempty"`  // from 1; 0 when unknown
}

// String is the source as in an error or a dump: "locks.yaml:14:3", "code",
// "profile quick", "profile reports, locks.yaml:4:5".
func (s Source) String() string {
	name := s.Layer.String()
	if s.Layer == LayerProfile {
		name += " " + s.Profile
	}
	switch {
	case s.File == "":
		return name
	case s.Layer == LayerProfile, s.Layer == LayerDefault:
		return name + ", " + s.position()
	default:
		return s.position()
	}
}

// inFile reports whether the place has the words of a file, and not Go's.
func (s Source) inFile() bool { return s.Layer > LayerCode || s.File != "" }

// position is the place in the file, "" without one.
func (s Source) position() string {
	if s.File == "" {
		return ""
	}
	place := s.File
	if s.Line > 0 {
		place += ":" + strconv.Itoa(s.Line)
	}
	if s.Column > 0 {
		place += ":" + strconv.Itoa(s.Column)
	}
	return place
}
