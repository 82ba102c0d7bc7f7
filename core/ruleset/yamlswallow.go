package ruleset

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// isSwallowed reports a value of which YAML took the rest, or all of it, for a
// comment: key: order #{path.id}.
func (f *fileReader) isSwallowed(v value) bool {
	if v.node.Kind != yaml.ScalarNode {
		return false
	}
	line, column := f.source.endOf(v.node)
	rest := f.source.from(line, column)
	blank := len(rest) - len(strings.TrimLeft(rest, " \t"))
	if strings.HasPrefix(rest[blank:], "#{") {
		column += blank
	} else if line, column = f.source.templateBelow(v, line, rest); line == 0 {
		return false
	}
	f.report(f.at(line, column), v.field, "YAML takes #{…} after a space for a comment: "+f.unswallowed(v, line))
	return true
}

// unswallowed says what to write instead.
func (f *fileReader) unswallowed(v value, line int) string {
	const instead = "quote the whole value"
	text, ok := quoteTemplates(f.source.line(line), v.flow)
	text = strings.TrimSpace(text)
	switch {
	case isEndpointName(v.field):
		return "write the endpoint as it is registered, such as http: POST /orders/:id/pay, and put #{…} into the key"
	case !ok || v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return instead
	case v.key != nil && line > v.node.Line && v.node.Value == "":
		return instead + ": " + v.key.Value + ": " + text
	case line > v.node.Line:
		return instead
	default:
		return instead + ": " + text
	}
}

// isEndpointName reports whether the field of a file gives a rule its endpoint.
func isEndpointName(field string) bool { return field == "http" || field == "grpc" || field == "func" }

// templateBelow finds a template that stands alone in the line after an empty value.
func (s *source) templateBelow(v value, line int, rest string) (templateLine, column int) {
	if v.node.Tag != "!!null" || v.node.Value != "" || strings.TrimSpace(rest) != "" {
		return 0, 0
	}
	next := s.line(line + 1)
	blank := len(next) - len(strings.TrimLeft(next, " "))
	if !strings.HasPrefix(next[blank:], "#{") {
		return 0, 0
	}
	return line + 1, blank + 1
}

// endOf is the position after a scalar. The parser does not tell; but it does tell
// what the scalar contains.
func (s *source) endOf(n *yaml.Node) (line, column int) {
	line, column = n.Line, n.Column
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return line, column
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return s.endOfQuotes(line, column)
	default:
		return s.endOfPlain(n.Value, line, column)
	}
}

// endOfPlain follows a text without quotes through its lines. It has the characters
// of its value; only white space may differ.
func (s *source) endOfPlain(text string, line, column int) (endLine, endColumn int) {
	rest := s.from(line, column)
	for _, r := range text {
		if unicode.IsSpace(r) {
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
