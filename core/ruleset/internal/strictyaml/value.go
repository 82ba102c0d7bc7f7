package strictyaml

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxProblems is the number of problems that a Doc reports at most. A file with more is probably not a
// file of settings.
const MaxProblems = 1000

// Doc is a document that is being read. It is not safe for concurrent use.
type Doc struct {
	// Root is the node of the whole document. It is null for a document without content.
	Root *yaml.Node

	lines    lines
	notify   func(Problem)
	problems int          // the number of problems reported
	reported map[int]bool // the lines with a problem
	comments map[int]int  // the columns of the comments that begin with #{, by line
}

// Parse parses a text of one document. It calls report with every problem: with the problems of the text at
// once, and with the problems of a value when the value is read. Parse returns nil if the text is not YAML. It
// ignores a byte order mark, which some editors write.
func Parse(text []byte, report func(Problem)) *Doc {
	text = bytes.TrimLeft(text, "\ufeff")
	d := &Doc{notify: report, reported: map[int]bool{}}
	if p := textProblem(text); p.Message != "" {
		d.report(p)
		return nil
	}
	d.lines = linesOf(text)
	document, p := parse(text, d.lines)
	if p.Message != "" {
		d.report(p)
		return nil
	}
	d.comments = findComments(d.lines)
	d.Root = document.Content[0]
	return d
}

// report reports a problem. It shortens the quotation of a very long value. The last of
// [MaxProblems] adds that further problems are not reported.
func (d *Doc) report(p Problem) {
	d.reported[p.Line] = true
	if d.IsFull() {
		return
	}
	if d.problems++; d.IsFull() {
		p.Field, p.Message = "", "more problems follow: correct those above first"
	}
	p.Message = Clip(p.Message)
	d.notify(p)
}

// IsFull reports whether [MaxProblems] problems were reported. Further problems are dropped.
func (d *Doc) IsFull() bool { return d.problems == MaxProblems }

// Reportf reports a problem with a node.
func (d *Doc) Reportf(n *yaml.Node, field, format string, args ...any) {
	d.report(Problem{n.Line, n.Column, field, fmt.Sprintf(format, args...)})
}

// ReportComments reports the comments that begin with #{ and are not part of a value that was read. A
// line that has another problem is left out. Call it after everything was read.
func (d *Doc) ReportComments() {
	for _, line := range slices.Sorted(maps.Keys(d.comments)) {
		if !d.reported[line] {
			d.report(Problem{line, d.comments[line], "", commentOrText})
		}
	}
}

const (
	isComment     = "YAML takes #{…} after a space for a comment: quote the whole value"
	commentOrText = "YAML takes #{ for a comment: write # { if it is one; if not, quote the whole value"
)

// Value is a node to be read, with its name.
type Value struct {
	Field string     // such as "wait_time" or "keys[1]"
	Key   *yaml.Node // nil in a list
	Node  *yaml.Node
	Flow  bool // inside of […] or {…}
}

// Item returns entry i of a list.
func (v Value) Item(i int) Value {
	return Value{Field: fmt.Sprintf("%s[%d]", v.Field, i), Node: v.Node.Content[i], Flow: v.Node.Style&yaml.FlowStyle != 0}
}

// Pairs iterates over the names and values of a mapping. The Field of each value is prefix
// followed by its name.
func Pairs(n *yaml.Node, prefix string) func(func(Value) bool) {
	return func(yield func(Value) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if !yield(Value{Field: prefix + key.Value, Key: key, Node: n.Content[i+1], Flow: n.Style&yaml.FlowStyle != 0}) {
				return
			}
		}
	}
}

// Form lists what a text may be. Its zero value permits one line that is not blank, of [MaxWord] bytes at
// most.
type Form struct{ Lines, Blank, Long bool }

const (
	quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	blocks = yaml.LiteralStyle | yaml.FoldedStyle
)

// isGiven reports a missing value, and a text that YAML reads differently from its author's intention.
// The message asks the author to write want.
func (d *Doc) isGiven(v Value, want string) bool {
	if !d.IsPlain(v) || d.isSwallowed(v) {
		return false
	}
	n := v.Node
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!null":
		return true
	case n.Value != "":
		d.Reportf(n, v.Field, "%s is not a value: write %s, or remove the line", n.Value, want)
	case d.comments[n.Line+1] > 0:
		d.report(Problem{n.Line + 1, d.comments[n.Line+1], v.Field, isComment})
		delete(d.comments, n.Line+1)
	default:
		d.Reportf(cmp.Or(v.Key, n), v.Field, "empty: write %s, or remove the line", want)
	}
	return false
}

// isSwallowed reports a value that YAML reads, wholly or from some point on, as a comment: key: order
// #{path.id}.
func (d *Doc) isSwallowed(v Value) bool {
	n := v.Node
	column := d.comments[n.Line]
	if n.Kind != yaml.ScalarNode || column <= n.Column {
		return false
	}
	_, rest := d.lines.cut(n.Line, n.Column)
	before := strings.TrimSpace(string([]rune(rest)[:min(column-n.Column, utf8.RuneCountInString(rest))]))
	switch before {
	case n.Value:
		d.report(Problem{n.Line, column, v.Field, isComment + d.corrected(v)})
	case quotedText.FindString(before):
		d.report(Problem{n.Line, column, v.Field, isComment})
	default:
		return false // the comment follows another value
	}
	delete(d.comments, n.Line)
	return true
}

// corrected returns a colon and the line of v with the value in quotes. It returns "" if the line
// does not show which part of it is the value.
func (d *Doc) corrected(v Value) string {
	if v.Flow || v.Key != nil && v.Key.Line != v.Node.Line {
		return ""
	}
	return quoteValue(d.lines.line(v.Node.Line))
}

// noYAML is the message for the parts of YAML that a file of settings does not need.
const noYAML = "aliases, anchors, merge keys and tags are not read here: write the value out, in quotes if it begins with *, & or !; values for several rules get a name under profiles:"

// IsPlain reports anchors, aliases and tags.
func (d *Doc) IsPlain(v Value) bool {
	n := v.Node
	if n.Kind != yaml.AliasNode && n.Anchor == "" && n.Style&yaml.TaggedStyle == 0 && n.Tag != "!" {
		return true
	}
	d.Reportf(n, v.Field, "%s", noYAML)
	return false
}

// Is reports a value whose node is not of the given kind. The message asks the author to write
// want.
func (d *Doc) Is(v Value, kind yaml.Kind, want string) bool {
	if !d.isGiven(v, want) {
		return false
	}
	if v.Node.Kind == kind {
		return true
	}
	d.Reportf(v.Node, v.Field, "%s: write %s", nodeText(v.Node), want)
	return false
}

// Name reads the name of a pair. field is the field of its mapping.
func (d *Doc) Name(field string, key *yaml.Node) (string, bool) {
	switch {
	case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
		d.Reportf(key, field, "%s", noYAML)
	case !d.IsPlain(Value{Field: field, Node: key}):
	case key.Tag == "!!null":
		d.Reportf(key, field, "a name is missing before the colon")
	case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
		d.Reportf(key, field, "%s, not a name: quote it if it is a name, or part of a value", nodeText(key))
	default:
		return key.Value, true
	}
	return "", false
}

// startsCurly matches a text that begins with a quote of a word processor or a chat.
var startsCurly = regexp.MustCompile(`^[“”„‟«»‘’‚‛‹›]`)

// Text reads a text of the given form.
func (d *Doc) Text(v Value, form Form) (string, bool) {
	if !d.isText(v) {
		return "", false
	}
	n := v.Node
	switch {
	case n.Tag != "!!str":
		d.Reportf(n, v.Field, "%s: write it as text, in quotes: %.100q", ScalarText(n), n.Value)
	case n.Style&(quotes|blocks) == 0 && startsCurly.MatchString(n.Value):
		d.Reportf(n, v.Field, "%.1s is not a quote in YAML, but part of the text: write straight quotes", n.Value)
	case !form.Long && len(n.Value) > MaxWord:
		d.Reportf(n, v.Field, "%d bytes long: write %d at most", len(n.Value), MaxWord)
	case strings.TrimSpace(n.Value) == "" && !form.Blank:
		d.Reportf(n, v.Field, "empty: write a value, or remove the line")
	case form.Lines || d.isOneLine(v):
		return n.Value, true
	}
	return "", false
}

// isText reports a list or a mapping in place of a text.
func (d *Doc) isText(v Value) bool {
	n := v.Node
	switch {
	case !d.isGiven(v, "text"):
		return false
	case n.Kind == yaml.ScalarNode:
		return true
	case n.Kind == yaml.SequenceNode && v.Field == "key":
		d.Reportf(n, v.Field, "a list: write keys for several templates")
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		d.Reportf(n, v.Field, "YAML takes {…} for a mapping: write text, in quotes")
	default:
		d.Reportf(n, v.Field, "%s: write text", nodeText(n))
	}
	return false
}

// isOneLine reports a text of several lines. YAML joins some of them into one line, but their author
// has more likely forgotten a quote or indented the next entry too far.
func (d *Doc) isOneLine(v Value) bool {
	n := v.Node
	isBlock := n.Style&blocks != 0
	switch {
	case !isBlock && d.goesOn(n):
		d.Reportf(n, v.Field, "goes on in the next line: write one line; check its quotes and the indentation of the next")
	case strings.ContainsFunc(n.Value, unicode.IsControl):
		d.Reportf(n, v.Field, "%.100q has line breaks or control characters: write one line without them, behind the colon, in quotes", n.Value)
	default:
		return true
	}
	return false
}

// goesOn reports whether a text continues after its first line.
func (d *Doc) goesOn(n *yaml.Node) bool {
	_, text := d.lines.cut(n.Line, n.Column)
	if n.Style&quotes != 0 {
		return text != "" && quotedText.FindStringIndex(text) == nil
	}
	return text != "" && !strings.HasPrefix(text, n.Value)
}

// Bool reads true or false.
func (d *Doc) Bool(v Value) (value, ok bool) {
	if !d.Is(v, yaml.ScalarNode, "true or false") {
		return false, false
	}
	if v.Node.Tag != "!!bool" {
		d.Reportf(v.Node, v.Field, "%s: write true or false, without quotes", ScalarText(v.Node))
		return false, false
	}
	return strings.EqualFold(v.Node.Value, "true"), true
}

// decimal matches a whole number. It leaves out the forms that versions of YAML read differently: 0x1F,
// 017, 1_000, 1e3.
var decimal = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)

// Int reads a whole number. Messages show example.
func (d *Doc) Int(v Value, example string) (int, bool) {
	if !d.Is(v, yaml.ScalarNode, "a decimal number such as "+example) {
		return 0, false
	}
	n := v.Node
	i, err := strconv.Atoi(n.Value)
	if isNumber := n.Tag == "!!int" || n.Tag == "!!float"; !isNumber || err != nil || !decimal.MatchString(n.Value) {
		d.Reportf(n, v.Field, "%s: write a plain decimal number without quotes, such as %s", ScalarText(n), example)
		return 0, false
	}
	return i, true
}

// Texts reads a list of texts. A list with more than limit texts is reported: tooMany is the format of its
// length and of limit.
func (d *Doc) Texts(v Value, form Form, limit int, tooMany string) ([]string, bool) {
	if !d.isList(v) {
		return nil, false
	}
	if n := len(v.Node.Content); n > limit {
		d.Reportf(v.Node, v.Field, tooMany, n, limit)
		return nil, false
	}
	list, all := make([]string, len(v.Node.Content)), true
	for i := range list {
		text, ok := d.Text(v.Item(i), form)
		list[i], all = text, all && ok
	}
	return list, all
}

// isList reports a value that is not a list.
func (d *Doc) isList(v Value) bool {
	want := v.Field + `: ["…", "…"]`
	if v.Node.Kind == yaml.ScalarNode && v.Node.Tag != "!!null" {
		want = fmt.Sprintf("%s: [%s]", v.Field, Quote(v.Node.Value))
	}
	return d.Is(v, yaml.SequenceNode, want)
}

// nodeText describes a node in a message.
func nodeText(n *yaml.Node) string {
	switch n.Kind {
	case yaml.ScalarNode:
		return ScalarText(n)
	case yaml.SequenceNode:
		return "a list"
	default:
		return "a mapping"
	}
}

// ScalarText describes a scalar in a message.
func ScalarText(n *yaml.Node) string {
	switch n.Tag {
	case "!!int", "!!float":
		return n.Value + " is a number"
	case "!!bool":
		return n.Value + " is a bool"
	case "!!timestamp":
		return n.Value + " is a date"
	case "!!null":
		return "null"
	case "!!merge":
		return n.Value + " is YAML's merge key"
	default:
		return fmt.Sprintf("%.100q is text", n.Value)
	}
}
