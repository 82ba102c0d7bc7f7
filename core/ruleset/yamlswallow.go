package ruleset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// swallowed are the comments of a file that were probably meant as text.
type swallowed struct {
	all []*comment
	of  map[*yaml.Node][]*comment
}

// readDocument reads the file as a whole, and reports what YAML takes for comments in
// it.
func (f *fileReader) readDocument(root *yaml.Node, cfg *config) {
	f.swallowed = swallowed{all: findComments(f.source, root), of: map[*yaml.Node][]*comment{}}
	for _, c := range f.swallowed.all {
		f.swallowed.of[c.of] = append(f.swallowed.of[c.of], c)
	}
	f.readTop(root, cfg)
	f.reportSwallowed()
}

// isSwallowed reports a value of which YAML took the rest, or all of it, for a
// comment: key: order #{path.id}.
func (f *fileReader) isSwallowed(v value) bool {
	comments := f.swallowed.of[v.node]
	for _, c := range comments {
		c.reported = true
		f.report(f.at(c.at.line, c.at.column), v.field, f.unswallowed(v, c))
	}
	if len(comments) > 0 && v.node.Kind == yaml.SequenceNode {
		for i, n := range v.node.Content { // which are not read
			f.isSwallowed(value{field: fmt.Sprintf("%s[%d]", v.field, i), node: n, flow: v.node.Style&yaml.FlowStyle != 0})
		}
	}
	return len(comments) > 0
}

// reportSwallowed reports the comments that belong to no value that was read. Where
// the value has another problem, that comes first.
func (f *fileReader) reportSwallowed() {
	known := map[place]bool{}
	for _, p := range f.problems {
		known[place{p.Source.Line, p.Source.Column}] = true
	}
	for _, c := range f.swallowed.all {
		if c.reported || c.of != nil && known[place{c.of.Line, c.of.Column}] {
			continue
		}
		f.report(f.at(c.at.line, c.at.column), "", commentOrText)
	}
}

const (
	isComment     = "YAML takes #{…} after a space for a comment: quote the whole value"
	commentOrText = "YAML takes #{ for a comment: write # { if it is one; if not, quote the whole value"
)

// unswallowed says what to write instead of a comment.
func (f *fileReader) unswallowed(v value, c *comment) string {
	n := v.node
	if isEndpointName(v.field) {
		return "YAML takes #{…} after a space for a comment: write the endpoint as it is registered, such as http: POST /orders/:id/pay, and put #{…} into the key"
	}
	if n.Kind == yaml.SequenceNode {
		return commentOrText + f.inList(n, c)
	}
	end, column := f.source.endOf(n)
	isPlain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	line := f.source.line(c.at.line)
	switch {
	case c.at.line == end && (!isPlain || end > n.Line):
		return isComment
	case c.at.line == end:
		return isComment + shown("", line, v.flow)
	case isPlain && n.Value == "":
		return isComment + shown(before(v), line, v.flow)
	case isPlain && !v.flow && c.at.line == n.Line+1 && end == n.Line && strings.TrimSpace(f.source.from(end, column)) == "":
		return commentOrText + shown(before(v), f.source.line(end)+" "+strings.TrimSpace(line), false)
	default:
		return commentOrText
	}
}

// inList shows the line of a comment that was probably meant as an entry.
func (f *fileReader) inList(n *yaml.Node, c *comment) string {
	line := f.source.line(c.at.line)
	isAlone := strings.HasPrefix(strings.TrimSpace(line), "#")
	switch {
	case c.flow:
		return shown("", line, c.at.line > n.Line)
	case isAlone && n.Style&yaml.FlowStyle == 0:
		return shown("- ", line, false)
	default:
		return ""
	}
}

// before is what stands in a line above that of the value.
func before(v value) string {
	switch {
	case v.key == nil && v.node.Value == "":
		return "- "
	case v.key == nil || v.key.Line == v.node.Line && v.node.Value != "":
		return ""
	default:
		return v.key.Value + ": "
	}
}

// shown is a line with its templates in quotes, after what is before it; "" if that is
// not clear.
func shown(before, line string, flow bool) string {
	text, ok := quoteTemplates(line, flow)
	if !ok {
		return ""
	}
	return ": " + before + strings.TrimSpace(text)
}

// isEndpointName reports whether the field of a file gives a rule its endpoint.
func isEndpointName(field string) bool { return field == "http" || field == "grpc" || field == "func" }

// endOf is the position after a scalar. The parser does not tell; but it does tell
// what the scalar contains.
func (s *source) endOf(n *yaml.Node) (line, column int) {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Line, n.Column
	}
	return s.endFrom(n, place{n.Line, n.Column})
}

// endFrom is endOf for a text that begins at a place; a block, in the line after its
// | or >.
func (s *source) endFrom(n *yaml.Node, at place) (line, column int) {
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return s.endOfQuotes(at.line, at.column)
	}
	return s.endOfText(n.Value, at.line, at.column)
}

// endOfText follows a text without quotes, or a block, through its lines. It has the
// characters of its value; only white space may differ.
func (s *source) endOfText(text string, line, column int) (endLine, endColumn int) {
	rest := s.from(line, column)
	for _, r := range text {
		if r == ' ' || r == '\t' || r == '\n' {
			continue
		}
		trimmed := strings.TrimLeft(rest, " \t")
		for trimmed == "" && line < len(s.lines) {
			line, column, rest = line+1, 1, s.line(line+1)
			trimmed = strings.TrimLeft(rest, " \t")
		}
		column += len(rest) - len(trimmed) + 1
		_, size := utf8.DecodeRuneInString(trimmed)
		rest = trimmed[size:]
	}
	return line, column
}

// endOfQuotes finds the closing quote.
func (s *source) endOfQuotes(line, column int) (endLine, endColumn int) {
	rest := s.from(line, column)
	quote := rest[:min(1, len(rest))]
	rest, column = rest[len(quote):], column+1
	for line <= len(s.lines) {
		if end := quoteEnd(rest, quote); end >= 0 {
			return line, column + utf8.RuneCountInString(rest[:end])
		}
		line, column, rest = line+1, 1, s.line(line+1)
	}
	return line, column
}

// quoteEnd is the place in text after the closing quote, -1 if it does not close.
func quoteEnd(text, quote string) int {
	for i := 0; i < len(text); i++ {
		switch {
		case quote == `"` && text[i] == '\\':
			i++
		case text[i:i+1] != quote:
		case quote == "'" && strings.HasPrefix(text[i+1:], "'"):
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// blockIndicator is the | or > with which a block begins.
func (s *source) blockIndicator(n *yaml.Node) string {
	return strings.TrimSpace(s.from(n.Line, n.Column))
}

// corrected shows the line of a value with the value in quotes; "" where that is not
// clear.
func (f *fileReader) corrected(v value) string {
	if v.flow || v.key != nil && v.key.Line != v.node.Line {
		return ""
	}
	if text, ok := quoteValue(f.source.line(v.node.Line)); ok {
		return ": " + strings.TrimSpace(text)
	}
	return ""
}
