package strictyaml

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// comment is one that begins with #{, as no comment of a careful author does. There is
// one in a line at most.
type comment struct {
	line, column int
	behind       *yaml.Node // the name or the value in whose line it stands, nil if it stands alone
	reported     bool
}

// maxComments is how many of them are looked for: nobody reads more problems.
const maxComments = 1000

// findComments finds the comments that begin with #{ at a node and in it; next is the
// line in which the document goes on. The parser says which comments there are, and
// beside which node, but not where. Those behind a directive or the end of the document are
// beside none, and are not found.
func (d *Doc) findComments(n *yaml.Node, next int) {
	last := max(next-1, n.Line)
	d.locate(n.HeadComment, n.Line, -1, nil)
	if n.Kind == yaml.ScalarNode {
		d.locate(n.LineComment, n.Line, 1, n)
	} else {
		d.locate(n.LineComment, last, -1, n)
	}
	d.locate(n.FootComment, last, -1, nil)
	for i, child := range n.Content {
		after := i + 1
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			after++
		}
		end := next
		if after < len(n.Content) {
			end = n.Content[after].Line
		}
		d.findComments(child, end)
	}
	if isEmpty(n) || n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
		d.findInstead(n, last)
	}
}

// insteadOfValue is a comment where there is nothing else.
var insteadOfValue = regexp.MustCompile(`^([^#]*[\s\[{])?#\{`)

// findInstead finds the comments that stand in the place of an empty node. The parser
// forgets some of them.
func (d *Doc) findInstead(n *yaml.Node, last int) {
	for line := n.Line; line <= min(last, len(d.lines)); line++ {
		start := insteadOfValue.FindString(d.line(line))
		if start == "" || len(d.comments) == maxComments {
			continue
		}
		if d.comments[line] == nil {
			d.comments[line] = &comment{line: line, column: utf8.RuneCountInString(start) - 1}
		}
		d.comments[line].behind = n
	}
}

// locate finds the lines of a comment, going down or up from a line.
func (d *Doc) locate(text string, line, step int, behind *yaml.Node) {
	if !strings.Contains(text, "#{") {
		return
	}
	for one := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(one, "#{") || len(d.comments) == maxComments {
			continue
		}
		c := d.search(one, line, step)
		if c == nil {
			c = d.search(one, line, -step)
		}
		if c != nil {
			c.behind = behind
			d.comments[c.line] = c
		}
	}
}

// search finds the next line that ends with the text of a comment.
func (d *Doc) search(text string, line, step int) *comment {
	text = strings.TrimSpace(text)
	for ; line >= 1 && line <= len(d.lines); line += step {
		before, found := strings.CutSuffix(strings.TrimRight(d.lines[line-1], " \t"), text)
		if found && d.comments[line] == nil && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")) {
			return &comment{line: line, column: utf8.RuneCountInString(before) + 1}
		}
	}
	return nil
}

// isSwallowed reports a value of which YAML took the rest, or all of it, for a
// comment: key: order #{path.id}.
func (d *Doc) isSwallowed(v Value) bool {
	if len(d.comments) == 0 || !isTexts(v.Node) {
		return false
	}
	found := false
	for _, c := range d.comments {
		if c.belongsTo(v) {
			d.reportComment(c, v)
			found = true
		}
	}
	return found
}

// belongsTo reports whether the comment stands beside a value, or in the next line as if it
// were the rest of it.
func (c *comment) belongsTo(v Value) bool {
	n := v.Node
	switch {
	case c.behind != nil:
		return c.behind == n || c.behind == v.Key
	case n.Kind != yaml.ScalarNode || c.line != n.Line+1 || v.Flow:
		return false
	case v.Key != nil:
		return c.column > v.Key.Column
	default:
		return c.column >= n.Column
	}
}

// isTexts reports a text, or a list of texts.
func isTexts(n *yaml.Node) bool {
	isList := n.Kind == yaml.SequenceNode
	return n.Kind == yaml.ScalarNode || isList && !slices.ContainsFunc(n.Content, func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode })
}

// isEmpty reports a value of which nothing is written.
func isEmpty(n *yaml.Node) bool { return n.Value == "" && n.Tag == "!!null" }

const (
	isComment     = "YAML takes #{…} after a space for a comment: quote the whole value"
	commentOrText = "YAML takes #{ for a comment: write # { if it is one; if not, quote the whole value"
)

// reportComment says what to write instead of a comment in the place of a value.
func (d *Doc) reportComment(c *comment, v Value) {
	n := v.Node
	isPlain := n.Style&(quotes|blocks) == 0
	before, text := d.cut(c.line, c.column)
	before = strings.TrimRight(before, " \t")
	message := isComment
	switch {
	case v.Field == "http" || v.Field == "grpc" || v.Field == "func":
		message = "YAML takes #{…} after a space for a comment: write the endpoint as it is registered, such as http: POST /orders/:id/pay, and put #{…} into the key"
	case n.Kind != yaml.ScalarNode && len(n.Content) == 0:
		message = commentOrText + after(quoteTemplates(d.line(c.line), c.line > n.Line))
	case n.Kind != yaml.ScalarNode:
		message = commentOrText
	case isEmpty(n) && before == "" && v.Key != nil:
		message += after(quoteTemplates(v.Key.Value+": "+text, false))
	case isEmpty(n) && before == "":
		message += after(quoteTemplates("- "+text, false))
	case isEmpty(n), isPlain && n.Line == c.line && strings.HasSuffix(before, n.Value):
		message += after(quoteTemplates(d.line(c.line), v.Flow))
	case before == "" && c.behind == nil:
		message = commentOrText + after(quoteTemplates(d.line(n.Line)+" "+text, false))
	case isPlain && n.Line == c.line && v.Key == nil:
		message = commentOrText + after(quoteTemplates(d.line(c.line), v.Flow))
	case isPlain && !strings.HasSuffix(before, lastWord(n.Value)):
		message = commentOrText
	}
	c.reported = true
	d.report(Problem{c.line, c.column, v.Field, message})
}

func lastWord(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }

// ReportComments reports the comments that begin with #{ and belong to no value that was
// read. Where their line has another problem, that comes first. It is called last.
func (d *Doc) ReportComments() {
	for _, line := range slices.Sorted(maps.Keys(d.comments)) {
		c := d.comments[line]
		if c.reported || d.told[line] {
			continue
		}
		example := ""
		if before, text := d.cut(line, c.column); strings.TrimSpace(before) == "" && strings.HasSuffix(strings.TrimSpace(text), ",") {
			example = quoteTemplates(text, true)
		}
		d.report(Problem{line, c.column, "", commentOrText + after(example)})
	}
}
