package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// Declared is one declaration of a rule with its source. A file reader creates one for each entry.
type Declared struct {
	Rule Rule

	// Source is the place of the declaration as a whole. The zero Source means a rule in Go.
	Source Source

	// Fields holds the sources of single fields by their names (see [Fields]). A field in it counts
	// as set even when its value is zero, such as "disabled: false" over a rule that is disabled in
	// code. A part of a field may have its own source: "keys[1]", "status.busy.http". Optional.
	Fields map[string]Source

	// broken lists the fields whose values could not be read. They are reported once; no later check
	// reports them again.
	broken fieldNames
}

// fieldNames is a set of names of fields.
type fieldNames []string

// hasAny reports whether one of the named fields is in the set.
func (l fieldNames) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(l, name) })
}

// inCode returns the declarations of rules written in Go.
func inCode(rules []Rule) []Declared {
	declared := make([]Declared, len(rules))
	for i, r := range rules {
		declared[i] = Declared{Rule: r, Source: Source{Layer: LayerCode}}
	}
	return declared
}

// Set sets a field of the rule, or a part of a field such as "status.busy.http", to a value from
// a .proto: a string, bool, int, list of strings or, for an enum, its word. The error advises
// what to write instead, in the notation of the declaration's layer. Set accepts words of another
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

// declarations holds everything that was declared for a set. Options and the file reader add to it, and
// the resolver builds rules from it.
type declarations struct {
	defaults  []Declared
	profiles  []Declared // the source contains the name of the profile
	rules     []Declared
	settings  Settings
	settingAt map[string]Source // the places of the settings, by their names outside Go
	problems  []*Problem        // including problems with the options themselves

	profilesUnread bool // some names of profiles could not be read
}
