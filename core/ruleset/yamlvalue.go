package ruleset

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// isGiven reports a value that is missing, or that YAML made something else of than
// what stands there. Without anchors, aliases and tags every value has exactly one
// place and one type.
func (f *fileReader) isGiven(v value) bool {
	if !f.isPlain(v) || f.isCurly(v) || f.isSwallowed(v) {
		return false
	}
	n := v.node
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag != "!!null":
		return true
	case n.Value != "":
		f.reportf(n, v.field, "%s is no value: write one, or remove the line", n.Value)
	case v.key != nil:
		f.reportf(v.key, v.field, "empty: write a value, or remove the line")
	default:
		f.reportf(n, v.field, "empty: write a value, or remove the line")
	}
	return false
}

const insteadOfAlias = "write the values out, or give them a name under profiles:"

// isPlain reports what YAML can do and a rule file does not need.
func (f *fileReader) isPlain(v value) bool {
	n := v.node
	switch {
	case n.Kind == yaml.AliasNode:
		f.reportf(n, v.field, "the alias *%s is not read here, because a value is to have one place: %s", n.Value, insteadOfAlias)
	case n.Anchor != "":
		f.reportf(n, v.field, "the anchor &%s is not read here: remove it; values for several rules get a name under profiles:", n.Anchor)
	case strings.HasPrefix(n.Tag, "!!") && n.Style&yaml.TaggedStyle != 0:
		f.reportf(n, v.field, "the tag %s is not read here: remove it; text is text in quotes", n.Tag)
	case n.Style&yaml.TaggedStyle != 0 || n.Tag == "!":
		f.reportf(n, v.field, "a value that begins with ! needs quotes, and tags of YAML are not read here%s", f.corrected(v))
	default:
		return true
	}
	return false
}

// is reports a value of another kind than the wanted one.
func (f *fileReader) is(v value, kind yaml.Kind, want string) bool {
	if !f.isGiven(v) {
		return false
	}
	if v.node.Kind == kind {
		return true
	}
	f.reportf(v.node, v.field, "%s: write %s", nodeText(v.node), want)
	return false
}

// isText reports a list or a mapping where text is wanted.
func (f *fileReader) isText(v value) bool {
	n := v.node
	switch {
	case !f.isGiven(v):
		return false
	case n.Kind == yaml.ScalarNode:
		return true
	case n.Kind == yaml.SequenceNode && v.field == "key":
		f.reportf(n, v.field, "a list: write keys for several templates")
	case n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0:
		f.reportf(n, v.field, "YAML takes {…} for a mapping: write text, in quotes%s", f.corrected(v))
	default:
		f.reportf(n, v.field, "a %s: write text", kindName(n))
	}
	return false
}

// maxWord is the length of a text that is no template, expression or document. Names
// and endpoints are repeated in every problem of their rule.
const maxWord = 1000

// string reads a text.
func (f *fileReader) string(v value, form textForm) (string, bool) {
	if !f.isText(v) {
		return "", false
	}
	n := v.node
	switch {
	case n.Tag != "!!str":
		f.reportf(n, v.field, "%s: write it as text, in quotes: %.100q", scalarText(n), n.Value)
	case !form.long && len(n.Value) > maxWord:
		f.reportf(n, v.field, "%d bytes long: write %d at most", len(n.Value), maxWord)
	case isBlank(n.Value) && !form.blank:
		f.reportf(n, v.field, "empty: write a value, or remove the line")
	case form.lines || f.isOneLine(v):
		return n.Value, true
	}
	return "", false
}

// isOneLine reports a text of several lines. Even where YAML makes one line of them,
// they are rather a quote that does not close, or an entry with too much indentation.
func (f *fileReader) isOneLine(v value) bool {
	n := v.node
	isBlock := n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	control := strings.ContainsFunc(n.Value, unicode.IsControl)
	last, _ := f.source.endOf(n)
	switch {
	case !isBlock && last > n.Line:
		f.reportf(n, v.field, "goes on until line %d: write one line; check its quotes and the indentation of the next", last)
	case isBlock && strings.HasSuffix(n.Value, "\n") && strings.Count(n.Value, "\n") == 1:
		f.reportf(n, v.field, "the text ends with a line break, which %s adds: write it behind the colon, in quotes: %s",
			f.source.blockIndicator(n), quoteYAML(strings.TrimSpace(n.Value)))
	case control:
		f.reportf(n, v.field, "%.100q has line breaks or control characters: write one line without them", n.Value)
	default:
		return true
	}
	return false
}

// bool reads true or false. YAML before 1.2 had more words for them.
func (f *fileReader) bool(v value) (value, ok bool) {
	if !f.is(v, yaml.ScalarNode, "true or false") {
		return false, false
	}
	n := v.node
	word := strings.ToLower(strings.TrimSpace(n.Value))
	switch {
	case n.Tag == "!!bool":
		return word == "true", true
	case word == "true" || word == "false":
		f.reportf(n, v.field, "%s: write %s without quotes", scalarText(n), word)
	case slices.Contains([]string{"yes", "y", "on", "1"}, word):
		f.reportf(n, v.field, "%s: write true", scalarText(n))
	case slices.Contains([]string{"no", "n", "off", "0"}, word):
		f.reportf(n, v.field, "%s: write false", scalarText(n))
	default:
		f.reportf(n, v.field, "%s: write true or false", scalarText(n))
	}
	return false, false
}

// decimal is a whole number without what YAML versions read differently: 0x1F, 017,
// 1_000, 1e3.
var decimal = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)

// int reads a number; example is one, for messages.
func (f *fileReader) int(v value, example string) (int, bool) {
	if !f.is(v, yaml.ScalarNode, "a decimal number such as "+example) {
		return 0, false
	}
	n := v.node
	isNumber := decimal.MatchString(n.Value)
	i, err := strconv.Atoi(n.Value)
	switch {
	case isNumber && n.Tag == "!!str":
		f.reportf(n, v.field, "%s: write %s without quotes", scalarText(n), n.Value)
	case isNumber && err != nil:
		f.reportf(n, v.field, "%s is too large: write a number such as %s", n.Value, example)
	case !isNumber:
		f.reportf(n, v.field, "%s: write a decimal number such as %s", numberText(n), example)
	default:
		return i, true
	}
	return 0, false
}

// numberText says what a scalar is where a whole number is wanted.
func numberText(n *yaml.Node) string {
	if n.Tag == "!!int" || n.Tag == "!!float" {
		return n.Value + " is no plain decimal number"
	}
	return scalarText(n)
}

// strings reads a list of texts.
func (f *fileReader) strings(v value, form textForm) ([]string, bool) {
	want := v.field + `: ["…", "…"]`
	if v.node.Kind == yaml.ScalarNode {
		want = fmt.Sprintf("%s: [%s]", v.field, quoteYAML(v.node.Value))
	}
	if !f.is(v, yaml.SequenceNode, want) || !f.isShort(v) {
		return nil, false
	}
	list, all := make([]string, len(v.node.Content)), true
	for i, n := range v.node.Content {
		item := value{field: fmt.Sprintf("%s[%d]", v.field, i), node: n, flow: v.node.Style&yaml.FlowStyle != 0}
		text, ok := f.string(item, form)
		list[i], all = text, all && ok
		f.notePart(item)
	}
	return list, all
}

// maxServices is how many programs a rule names.
const maxServices = 1000

// isShort reports a list that is longer than any of a rule.
func (f *fileReader) isShort(v value) bool {
	n := len(v.node.Content)
	switch {
	case v.field == "keys" && n > maxTemplates:
		f.reportf(v.node, v.field, templateCount, n, maxTemplates)
	case n > maxServices:
		f.reportf(v.node, v.field, "%d programs: write %d at most", n, maxServices)
	default:
		return true
	}
	return false
}

// nodeText says what a node is.
func nodeText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return scalarText(n)
	}
	return "a " + kindName(n)
}

func kindName(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "list"
	}
	return "mapping"
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
	case "!!merge":
		return n.Value + " is YAML's merge key"
	default:
		return fmt.Sprintf("%.100q is text", n.Value)
	}
}
