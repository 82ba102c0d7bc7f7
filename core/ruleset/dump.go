package ruleset

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// Dump shows the rules in force: every field that has a value, in the notation of a rule file,
// with the place from which the value comes. Its output depends only on its fields.
type Dump struct {
	// Settings are the settings of the file. WriteText shows those that differ from the defaults.
	// For the zero value it shows none.
	Settings Settings

	// SettingSources are the places of settings, by their names outside Go. Optional.
	SettingSources map[string]Source

	// Rules are shown in this order. They may come from [Set.Rules], [Set.Overlay] or
	// [Resolve].
	Rules []*Resolved

	// NoSources leaves out the places and the fields that were set to their zero value, such as
	// disabled: false. Use it to compare rules that were declared in different ways.
	NoSources bool
}

// shownValue is a field of a rule that has a value, or a setting.
type shownValue struct {
	name   string
	value  any // see object
	source Source
	zero   bool // the value equals the value without a declaration, such as disabled: false
}

// ruleValues lists the values of a rule in the order of [Fields], always with the name. A rule
// with None has no value but its endpoint.
func ruleValues(r *Resolved) []shownValue {
	var fields []shownValue
	for _, f := range ruleFields {
		source := causeOf(r, f.name)
		switch {
		case f.name == "name":
		case source.Layer == layerNone, r.None && f.name != "endpoint" && f.name != "none":
			continue
		}
		fields = append(fields, shownValue{f.name, f.show(&r.Rule), source, f.isZero(&r.Rule)})
	}
	return fields
}

// causeOf returns the source of the value of a field. For times that are not declared, it is the source
// of the debounce.
func causeOf(r *Resolved, name string) Source {
	if r.Debounce > 0 && (name == "wait_time" || name == "lease_time") && !r.declared(name) {
		return r.Source("debounce")
	}
	return r.Source(name)
}

// settingValues lists the settings in the order of their fields. A zero value stands for the
// default.
func settingValues(s Settings, sources map[string]Source) []shownValue {
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

// WriteText writes a YAML document for people: the settings that are not the defaults, then a
// block for each rule with one line for each field that has a value. A comment after the value
// shows its place. Values from profiles appear in the rules; WriteText does not write the
// profiles themselves.
func (d Dump) WriteText(w io.Writer) error {
	var text bytes.Buffer
	d.writeSettings(&text)
	if len(d.Rules) == 0 {
		text.WriteString("rules: []\n")
	} else {
		text.WriteString("rules:\n")
	}
	for i, r := range d.Rules {
		if i > 0 {
			text.WriteByte('\n')
		}
		d.writeRule(&text, r)
	}
	_, err := w.Write(text.Bytes())
	return err
}

func (d Dump) writeSettings(text *bytes.Buffer) {
	var lines []dumpLine
	for _, s := range settingValues(d.Settings, d.SettingSources) {
		if !s.zero {
			lines = append(lines, dumpLine{s.name + ":", yamlText(s.value), d.comment(s.source)})
		}
	}
	writeLines(text, lines, "", "")
}

// comment returns the comment after a value.
func (d Dump) comment(s Source) string {
	if d.NoSources || s.Layer == layerNone {
		return ""
	}
	text := s.String()
	if !strictyaml.IsPrintable(text) {
		text = strconv.Quote(text)
	}
	return "# " + text
}

// dumpLine is a setting, a field, or an item of one.
type dumpLine struct {
	name, value string
	comment     string
}

func (d Dump) writeRule(text *bytes.Buffer, r *Resolved) {
	writeLines(text, d.lines(r), "  - ", "    ")
	if r.Partial() {
		text.WriteString("    # its key is declared elsewhere: in the .proto or in the program\n")
	}
}

// maxColumn is the length of the longest value that moves the comments of the other lines to the
// right.
const maxColumn = 60

// writeLines writes lines in columns. The first line begins with first, and the others with indent.
func writeLines(text *bytes.Buffer, lines []dumpLine, first, indent string) {
	var cells bytes.Buffer
	table := tabwriter.NewWriter(&cells, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		gap := "\t"
		if utf8.RuneCountInString(l.value) > maxColumn {
			gap = "  "
		}
		fmt.Fprintf(table, "%s%s\t%s%s%s\n", first, l.name, l.value, gap, l.comment)
		first = indent
	}
	table.Flush() //nolint:errcheck // writing to a buffer does not fail
	for line := range strings.Lines(cells.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// lines returns the lines of a rule: one for each field, and for each item of a list.
func (d Dump) lines(r *Resolved) []dumpLine {
	var lines []dumpLine
	for _, f := range ruleValues(r) {
		if f.source.Layer == layerNone || d.NoSources && f.zero {
			continue // a name that is derived from the endpoint, or a zero value
		}
		comment := d.comment(f.source)
		if list, ok := f.value.([]string); ok {
			lines = append(lines, dumpLine{f.name + ":", "", comment})
			for _, item := range list {
				lines = append(lines, dumpLine{value: "- " + yamlString(item)})
			}
			continue
		}
		if f.name == "endpoint" {
			lines = append(lines, dumpLine{string(r.Endpoint.Transport) + ":", yamlString(r.Endpoint.Label()), comment})
			continue
		}
		lines = append(lines, dumpLine{f.name + ":", yamlText(f.value), comment})
	}
	return lines
}

// MarshalJSON returns an object with all "settings", and "rules", a list with
// one object for each rule. Their members are settings and fields by their names
// outside Go: {"value": "10s", "source": {"layer": "yaml", "file": "locks.yaml",
// "line": 7, "column": 5}}. A member has no source if it is not known. Fields without a value are left
// out, except the name. "partial": true marks a rule whose key is declared elsewhere, see
// [Resolved.Partial]. With NoSources a member is the value alone.
func (d Dump) MarshalJSON() ([]byte, error) {
	rules := make([]object, len(d.Rules))
	for i, r := range d.Rules {
		rules[i] = d.ruleObject(r)
	}
	return object{{"settings", d.settingsObject()}, {"rules", rules}}.MarshalJSON()
}

func (d Dump) settingsObject() object {
	all := object{}
	for _, s := range settingValues(d.Settings, d.SettingSources) {
		all = append(all, member{s.name, d.field(s)})
	}
	return all
}

func (d Dump) ruleObject(r *Resolved) object {
	rule := object{}
	for _, f := range ruleValues(r) {
		if d.NoSources && f.zero {
			continue
		}
		rule = append(rule, member{f.name, d.field(f)})
	}
	if r.Partial() {
		rule = append(rule, member{"partial", true})
	}
	return rule
}

func (d Dump) field(f shownValue) any {
	if d.NoSources {
		return f.value
	}
	field := object{{"value", f.value}}
	if f.source.Layer != layerNone {
		field = append(field, member{"source", f.source})
	}
	return field
}
