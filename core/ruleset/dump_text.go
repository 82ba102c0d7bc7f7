package ruleset

import (
	"bytes"
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
	if d.NoSources || s.Layer == LayerNone {
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
		if f.source.Layer == LayerNone || d.NoSources && f.zero {
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
