package strictyaml

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Value is a node to be read, with what to call it.
type Value struct {
	Field string     // such as "wait_time" or "keys[1]"
	Key   *yaml.Node // nil in a list
	Node  *yaml.Node
	Flow  bool // inside of […] or {…}
}

// Item is an entry of a list.
func (v Value) Item(i int) Value {
	return Value{Field: fmt.Sprintf("%s[%d]", v.Field, i), Node: v.Node.Content[i], Flow: v.Node.Style&yaml.FlowStyle != 0}
}

// Pairs are the names and values of a mapping; prefix precedes its fields.
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

// Form is what a text may be besides one line of moderate length with something in it.
type Form struct{ Lines, Blank, Long bool }

const (
	quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle
	blocks = yaml.LiteralStyle | yaml.FoldedStyle
)

// isGiven reports a value that is missing, or that YAML made something else of than
// what stands there. want is what to write.
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

// noYAML is about what YAML can do, and a file of settings does not need.
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

// Is reports a value of another kind than the wanted one.
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

// Name reads the name of a pair; field is that of the mapping.
func (d *Doc) Name(field string, key *yaml.Node) (string, bool) {
	switch {
	case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
		d.Reportf(key, field, "%s", noYAML)
	case !d.IsPlain(Value{Field: field, Node: key}):
	case key.Tag == "!!null":
		d.Reportf(key, field, "a name is missing before the colon")
	case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
		d.Reportf(key, field, "%s, not a name: quote it if it is to be one, or belongs to a value", nodeText(key))
	default:
		return key.Value, true
	}
	return "", false
}

// startsCurly finds a text that begins with a quote of a word processor or a chat.
var startsCurly = regexp.MustCompile(`^[“”„‟«»‘’‚‛‹›]`)

// Text reads a text.
func (d *Doc) Text(v Value, form Form) (string, bool) {
	if !d.isText(v) {
		return "", false
	}
	n := v.Node
	switch {
	case n.Tag != "!!str":
		d.Reportf(n, v.Field, "%s: write it as text, in quotes: %.100q", ScalarText(n), n.Value)
	case n.Style&(quotes|blocks) == 0 && startsCurly.MatchString(n.Value):
		d.Reportf(n, v.Field, "%.1s is part of the text, and not a quote to YAML: write straight quotes", n.Value)
	case !form.Long && len(n.Value) > MaxWord:
		d.Reportf(n, v.Field, "%d bytes long: write %d at most", len(n.Value), MaxWord)
	case strings.TrimSpace(n.Value) == "" && !form.Blank:
		d.Reportf(n, v.Field, "empty: write a value, or remove the line")
	case form.Lines || d.isOneLine(v):
		return n.Value, true
	}
	return "", false
}

// isText reports a list or a mapping where text is wanted.
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

// isOneLine reports a text of several lines. Even where YAML makes one line of them,
// they are rather a quote that does not close, or an entry with too much indentation.
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

// goesOn reports whether a text does not end in its line.
func (d *Doc) goesOn(n *yaml.Node) bool {
	_, text := d.cut(n.Line, n.Column)
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

// decimal is a whole number without what YAML versions read differently: 0x1F, 017,
// 1_000, 1e3.
var decimal = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)

// Int reads a number; example is one, for messages.
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

// IsList reports what is no list of texts.
func (d *Doc) IsList(v Value) bool {
	want := v.Field + `: ["…", "…"]`
	if v.Node.Kind == yaml.ScalarNode && v.Node.Tag != "!!null" {
		want = fmt.Sprintf("%s: [%s]", v.Field, Quote(v.Node.Value))
	}
	return d.Is(v, yaml.SequenceNode, want)
}

// nodeText says what a node is.
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

// ScalarText says what a scalar is.
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
