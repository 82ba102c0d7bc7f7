package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// Declared is one declaration of a rule with its source. A reader of a file makes one of each entry.
type Declared struct {
	Rule Rule

	// Source is the place of the declaration as a whole. The zero Source means a rule in Go.
	Source Source

	// Fields has the sources of single fields by their names (see [Fields]). A field
	// in it counts as set even when its value is zero, such as "disabled: false" over
	// a rule that is disabled in code. A part of a field may have its own source:
	// "keys[1]", "status.busy.http". Optional.
	Fields map[string]Source

	// broken lists the fields whose values could not be read. They were reported, and
	// nothing more is reported about them.
	broken fieldNames
}

// fieldNames is a set of names of fields.
type fieldNames []string

// hasAny reports whether one of the named fields is in the set.
func (l fieldNames) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l, name) })
}

// inCode returns declarations of rules in Go.
func inCode(rules []Rule) []Declared {
	declared := make([]Declared, len(rules))
	for i, r := range rules {
		declared[i] = Declared{Rule: r, Source: Source{Layer: LayerCode}}
	}
	return declared
}

// Set sets a field of the rule, or a part of one such as "status.busy.http", to a value of a
// .proto: a string, bool, int or list of strings; for an enum its word. The error says
// what to write instead, as the layer of the declaration spells it. Set accepts words of another
// field and values out of range, which [BuildSet] reports.
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

// source returns the place of a field.
func (d *Declared) source(field string) Source {
	if s, ok := d.Fields[field]; ok {
		return s
	}
	return d.Source
}

// declarations holds everything that was declared for a set. Options and the reader of a file add to it,
// and the resolver makes rules of it.
type declarations struct {
	defaults  []Declared
	profiles  []Declared // the name of each is in its source
	rules     []Declared
	settings  Settings
	settingAt map[string]Source // the places of the settings, by their names outside Go
	problems  []*Problem        // with the options themselves

	profilesUnread bool // some names of profiles could not be read
}
