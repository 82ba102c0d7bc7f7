package ruleset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
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
		case source.Layer == layerNone, r.None && f.name != "endpoint" && f.name != "none":
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

// WriteText writes a YAML document for people: the settings that are not the
// defaults, then a block for each rule with one line for each field that has a value.
// Where the value comes from stands in a comment behind it. Values of profiles stand in
// the rules; the profiles themselves are not written.
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
	for _, s := range d.Settings.shown(d.SettingSources) {
		if !s.zero {
			lines = append(lines, dumpLine{s.name + ":", yamlText(s.value), d.comment(s.source)})
		}
	}
	writeLines(text, lines, "", "")
}

// comment is what stands behind a value.
func (d Dump) comment(s Source) string {
	if d.NoSources || s.Layer == layerNone {
		return ""
	}
	text := s.String()
	if !isPrintable(text) {
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

// maxColumn is how long a value can be without moving the comments of the others.
const maxColumn = 60

// writeLines writes lines in columns, the first one behind first, and the others behind indent.
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
	table.Flush() //nolint:errcheck // a buffer takes everything
	for line := range strings.Lines(cells.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// lines are the fields of a rule. One item of a list has a line of its own.
func (d Dump) lines(r *Resolved) []dumpLine {
	var lines []dumpLine
	for _, f := range r.shown() {
		if f.source.Layer == layerNone || d.NoSources && f.zero {
			continue // a name that is its endpoint's, or no value
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

// yamlText spells a value of field.show on one line.
func yamlText(value any) string {
	switch v := value.(type) {
	case string:
		return yamlString(v)
	case []string:
		return "[" + list(v) + "]"
	case object:
		members := make([]string, len(v))
		for i, m := range v {
			members[i] = m.name + ": " + yamlText(m.value)
		}
		return "{" + strings.Join(members, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

// plainScalar matches texts that are themselves without quotes in YAML, in lists and
// objects too.
var plainScalar = regexp.MustCompile(`^[A-Za-z/][\w./@+-]*([ :][\w./@+*-]+)*$`)

// yamlString quotes a text where YAML would read something else.
func yamlString(s string) string {
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plainScalar.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	return strictyaml.Quote(s)
}

// isPrintable reports whether a terminal shows the text as it is.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
}

// MarshalJSON gives an object with "settings", all of them, and "rules", a list with
// one object for each rule. Their members are settings and fields by their names
// outside Go: {"value": "10s", "source": {"layer": "yaml", "file": "locks.yaml",
// "line": 7, "column": 5}}. There is no source where it is not known. Fields that nobody set are left out, but not the name.
// "partial": true marks a rule whose key is declared elsewhere, see
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
	for _, s := range d.Settings.shown(d.SettingSources) {
		all = append(all, member{s.name, d.field(s)})
	}
	return all
}

func (d Dump) ruleObject(r *Resolved) object {
	rule := object{}
	for _, f := range r.shown() {
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

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON leaves <, > and & as they are.
func (o object) MarshalJSON() ([]byte, error) {
	text := bytes.NewBufferString("{")
	enc := json.NewEncoder(text)
	enc.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := enc.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
