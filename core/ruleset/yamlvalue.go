package ruleset

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// isPlain reports problems of any node: what YAML can do and a rule file does not
// need. Without anchors and tags every value has exactly one place and one type.
func (f *fileReader) isPlain(v value) bool {
	n := v.node
	switch {
	case n.Kind == yaml.AliasNode:
		f.reportf(n, v.field, "the alias *%s is not read here, so that every value has one place: write the value out, or give it a name under profiles:", n.Value)
	case n.Anchor != "":
		f.reportf(n, v.field, "the anchor &%s is not read here: remove it; values for several rules have a name under profiles:", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		f.reportf(n, v.field, "the tag %s is not read here: remove it, or quote the value if the ! belongs to it", n.Tag)
	default:
		return true
	}
	return false
}

// isGiven reports a value that is not plain, or not there.
func (f *fileReader) isGiven(v value) bool {
	if !f.isPlain(v) {
		return false
	}
	if n := v.node; n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
		return true
	} else if n.Value == "" && v.key != nil {
		f.reportf(v.key, v.field, "empty: write a value, or remove the line")
	} else if n.Value == "" {
		f.reportf(n, v.field, "empty: write a value, or remove the line")
	} else {
		f.reportf(n, v.field, "%s is no value: write one, or remove the line", n.Value)
	}
	return false
}

// is reports a node of another kind than the wanted one.
func (f *fileReader) is(v value, kind yaml.Kind, want string) bool {
	if !f.isGiven(v) {
		return false
	}
	if v.node.Kind != kind {
		f.reportf(v.node, v.field, "%s: write %s", nodeText(v.node), want)
		return false
	}
	return true
}

// scalar reads the text of a single value, whatever it looks like.
func (f *fileReader) scalar(v value, want string) (string, bool) {
	if !f.is(v, yaml.ScalarNode, want) {
		return "", false
	}
	return v.node.Value, true
}

// string reads a text.
func (f *fileReader) string(v value, lines bool) (string, bool) {
	if !f.is(v, yaml.ScalarNode, "text") {
		return "", false
	}
	switch n := v.node; {
	case n.Tag != "!!str":
		f.reportf(n, v.field, "%s: write text, in quotes: %q", scalarText(n), n.Value)
	case !lines && strings.ContainsFunc(n.Value, unicode.IsControl):
		f.reportf(n, v.field, "%q has a line break or another control character: write it on one line", n.Value)
	default:
		return n.Value, true
	}
	return "", false
}

func (f *fileReader) bool(v value) (value, ok bool) {
	text, ok := f.scalar(v, "true or false")
	switch n := v.node; {
	case !ok:
	case n.Tag == "!!bool":
		return strings.EqualFold(text, "true"), true
	default:
		f.reportf(n, v.field, "%s: write true or false", scalarText(n))
	}
	return false, false
}

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

func (f *fileReader) int(v value) (int, bool) {
	text, ok := f.scalar(v, "a number such as 10")
	if !ok {
		return 0, false
	}
	if v.node.Tag == "!!int" && decimal.MatchString(text) {
		if i, err := strconv.Atoi(text); err == nil {
			return i, true
		}
		f.reportf(v.node, v.field, "%s is too large", text)
		return 0, false
	}
	f.reportf(v.node, v.field, "%s: write a decimal number such as 10", scalarText(v.node))
	return 0, false
}

// strings reads a list of texts.
func (f *fileReader) strings(v value, want string) ([]string, bool) {
	if !f.is(v, yaml.SequenceNode, want) {
		return nil, false
	}
	list, all := make([]string, len(v.node.Content)), true
	for i, n := range v.node.Content {
		item := value{field: fmt.Sprintf("%s[%d]", v.field, i), node: n, flow: v.node.Style&yaml.FlowStyle != 0}
		text, ok := f.string(item, false)
		list[i], all = text, all && ok
	}
	return list, all
}

// nodeText says what a node is.
func nodeText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return scalarText(n)
	}
	return "a " + kindName(n)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "list"
	case yaml.MappingNode:
		return "mapping"
	default:
		return "value"
	}
}

// scalarText says what a scalar is.
func scalarText(n *yaml.Node) string {
	switch n.Tag {
	case "!!int", "!!float":
		return n.Value + " is a number"
	case "!!bool":
		return n.Value + " is a bool"
	case "!!timestamp":
		return n.Value + " is a date"
	case "!!null":
		return "null"
	default:
		return fmt.Sprintf("%q is text", n.Value)
	}
}

func templateHint(*yaml.Node) string { return "" }
