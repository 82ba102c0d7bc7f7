package ruleset

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// syntaxError is what the parser says, to be explained with the text at hand.
type syntaxError struct {
	source  *source
	message string
	context string // what the parser was doing: "while scanning an alias"
	begin   place  // where it began to
	at      place
}

// reportSyntax reports why the text is not YAML.
func (f *fileReader) reportSyntax(err error) {
	e := syntaxError{source: f.source, message: err.Error(), at: place{1, 1}}
	if cause, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.message, e.context = cause.Message, cause.ContextMsg
		e.at, e.begin = place{cause.Mark.Line, cause.Mark.Column}, place{cause.ContextMark.Line, cause.ContextMark.Column}
	}
	at, message := e.explain()
	f.report(f.at(at.line, at.column), "", message)
}

// explain finds the trap that the text fell into; failing that, it repeats what the
// parser says.
func (e *syntaxError) explain() (place, string) {
	explainers := []func() (place, string){
		e.curly, e.template, e.flow, e.tab, e.special, e.colon, e.alignment, e.quotes, e.blockHeader, e.depth,
	}
	for _, explain := range explainers {
		if at, message := explain(); message != "" {
			return at, message
		}
	}
	return e.at, e.words()
}

// words are the parser's own, made plainer where they need it.
func (e *syntaxError) words() string {
	switch e.message {
	case "did not find expected node content":
		return "a value is missing here, or a comma is too many"
	case "did not find expected <document start>":
		return "this line does not belong to what is above it: a rule file is one mapping of names to values"
	case "found a comment without preceding whitespace":
		return "a space is missing before the comment, or quotes are missing around the whole value"
	default:
		return "not YAML: " + strings.TrimPrefix(e.context+": "+e.message, ": ")
	}
}

// template finds #{…} inside of […] or {…}, where its braces and commas are YAML's.
func (e *syntaxError) template() (place, string) {
	if !strings.Contains(e.context, "flow") {
		return place{}, ""
	}
	depth := 0
	for line := e.begin.line; line <= e.at.line; line++ {
		q := newQuoter(e.source.line(line), depth)
		q.run()
		if q.first > 0 && (line < e.at.line || q.first <= e.at.column) {
			message := "a value with #{…} needs quotes in […] and {…}"
			if !q.lost {
				message += ": " + strings.TrimSpace(q.out.String())
			}
			return place{line, q.first}, message
		}
		depth = q.depth
	}
	return place{}, ""
}

// flow finds […] and {…} that do not end.
func (e *syntaxError) flow() (place, string) {
	if !strings.HasPrefix(e.message, "did not find expected ','") {
		return place{}, ""
	}
	return e.begin, fmt.Sprintf("the %.1s that opens here is not closed, or a comma is missing before line %d, column %d",
		e.source.from(e.begin.line, e.begin.column), e.at.line, e.at.column)
}

// depth finds more levels than any rule file has.
func (e *syntaxError) depth() (place, string) {
	if !strings.HasPrefix(e.context, "while increasing") {
		return place{}, ""
	}
	return e.at, "nested too deeply: a rule file has a few levels"
}

// tab finds tabs in the indentation.
func (e *syntaxError) tab() (place, string) {
	line := e.source.line(e.at.line)
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	i := strings.IndexByte(indent, '\t')
	if i < 0 || !strings.Contains(e.message, "tab") && !strings.Contains(e.message, "cannot start any token") {
		return place{}, ""
	}
	return place{e.at.line, i + 1}, "a tab: indent with spaces"
}

// special finds a value that begins with a character that means something to YAML.
func (e *syntaxError) special() (place, string) {
	at := e.begin
	switch {
	case strings.HasPrefix(e.message, "unknown anchor"):
		return e.at, "the alias has no anchor, and aliases are not read here: write the value out, or in quotes if the * belongs to it"
	case strings.Contains(e.message, "cannot start any token"):
		at = e.at
	case !strings.HasSuffix(e.context, "an alias") && !strings.HasSuffix(e.context, "an anchor") && !strings.HasSuffix(e.context, "a tag"):
		return place{}, ""
	}
	rest := e.source.from(at.line, at.column)
	if rest == "" {
		return place{}, ""
	}
	return at, fmt.Sprintf("a value that begins with %.1s needs quotes%s", rest, e.quoted(at))
}

// quoted shows the line with the value at the place in quotes, if it is the only one
// there.
func (e *syntaxError) quoted(at place) string {
	line := e.source.line(at.line)
	value := e.source.from(at.line, at.column)
	text, ok := quoteValue(line)
	if !ok || !strings.HasPrefix(text, line[:len(line)-len(value)]) {
		return ""
	}
	return ": " + strings.TrimSpace(text)
}

// colon finds a colon too many, or too few.
func (e *syntaxError) colon() (place, string) {
	switch {
	case strings.HasPrefix(e.message, "could not find expected ':'"):
		if at, message := e.spaceMissing(e.begin.line); message != "" {
			return at, message
		}
		return e.begin, "a line without a colon: write a name, a colon, a space and the value"
	case !strings.HasPrefix(e.message, "mapping values are not allowed"):
		return place{}, ""
	}
	line := e.source.line(e.at.line)
	before := line[:len(line)-len(e.source.from(e.at.line, e.at.column))]
	if strings.Contains(before, ": ") {
		text, _ := quoteValue(line)
		return e.at, "a value with a colon and a space needs quotes: " + strings.TrimSpace(text)
	}
	if at, message := e.spaceMissing(e.at.line - 1); message != "" {
		return at, message
	}
	return place{e.at.line, indentOf(line) + 1}, "indented deeper than the line above, which has a value already: align it with the name above"
}

var glued = regexp.MustCompile(`^\s*(?:- +)*([a-z_]+):([^\s/].*)$`)

// spaceMissing finds key:value, which is a text to YAML.
func (e *syntaxError) spaceMissing(line int) (place, string) {
	text := e.source.line(line)
	parts := glued.FindStringSubmatchIndex(text)
	if parts == nil {
		return place{}, ""
	}
	return place{line, parts[4] + 1}, "a space is missing after the colon: " + text[parts[2]:parts[3]] + ": " + text[parts[4]:]
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// alignment finds a line that belongs to nothing above it.
func (e *syntaxError) alignment() (place, string) {
	if e.message == "found a comment without preceding whitespace" && strings.HasPrefix(e.source.from(e.at.line, e.at.column), "#{") {
		return e.afterQuotes()
	}
	if e.message != "did not find expected key" && e.message != "did not find expected '-' indicator" {
		return place{}, ""
	}
	line := e.source.line(e.at.line)
	if e.at.column > indentOf(line)+1 {
		return e.afterQuotes()
	}
	if strings.HasPrefix(line[indentOf(line):], "- ") {
		return e.at, "the dash is not aligned with those above"
	}
	if e.message == "did not find expected key" {
		return e.at, fmt.Sprintf("not aligned with the names above, which begin in column %d", e.begin.column)
	}
	if e.at.column == e.begin.column {
		return e.at, "a dash is missing: - " + strings.TrimSpace(line)
	}
	return e.at, fmt.Sprintf("not aligned with the entries above: their dashes are in column %d, their names in column %d", e.begin.column, e.begin.column+2)
}

// afterQuotes explains a value that goes on after its quotes, as conditions do, or whose
// opening quote closes another one.
func (e *syntaxError) afterQuotes() (place, string) {
	line := e.source.line(e.at.line)
	before := line[:len(line)-len(e.source.from(e.at.line, e.at.column))]
	quote := strings.TrimRight(before, " ")
	quote = quote[max(0, len(quote)-1):]
	if strings.Count(before, quote)%2 == 1 {
		for above := e.at.line - 1; above >= e.begin.line; above-- {
			if text := e.source.line(above); strings.Count(text, quote)%2 == 1 {
				return place{above, 1 + len([]rune(text[:strings.LastIndex(text, quote)]))}, "the quote that opens here is not closed in this line"
			}
		}
	}
	return e.at, "the value goes on after its quotes: " + e.requoted(line)
}

var (
	quotedWhole = regexp.MustCompile(`^(.*?:\s+|\s*- +)(["'])(.*)(["'])\s*$`)
	quotedStart = regexp.MustCompile(`^(.*?:\s+|\s*- +)"([^"\\]*)"([^"\s][^"]*)$`)
)

// requoted shows what the quotes of a line were meant to be.
func (e *syntaxError) requoted(line string) string {
	if parts := quotedStart.FindStringSubmatch(line); len(parts) > 0 {
		return "quote the whole value: " + strings.TrimSpace(parts[1]) + " " + quoteYAML(parts[2]+parts[3])
	}
	parts := quotedWhole.FindStringSubmatch(line)
	switch {
	case len(parts) > 0 && strings.Contains(parts[3], parts[2]+", "+parts[2]):
		return "write a list: " + strings.TrimSpace(parts[1]) + " [" + parts[2] + parts[3] + parts[4] + "]"
	case len(parts) > 0 && parts[2] == "'" && parts[4] == "'":
		return "quote the whole value: " + strings.TrimSpace(parts[1]) + " " + quoteYAML(parts[3])
	}
	text, _ := quoteValue(line)
	return "quote the whole value: " + strings.TrimSpace(text)
}

// quotes finds what is wrong inside of quotes.
func (e *syntaxError) quotes() (place, string) {
	switch {
	case e.context != "while scanning a quoted scalar":
		return place{}, ""
	case e.message == "found unknown escape character":
		return e.at, `\ begins an escape between double quotes: write \\, or use single quotes`
	case e.message == "found unexpected end of stream", e.message == "found unexpected document indicator":
		return e.begin, "the quote that opens here is never closed"
	}
	return place{}, ""
}

// blockHeader finds a value that begins with | or >, but was not to be a block.
func (e *syntaxError) blockHeader() (place, string) {
	if e.context != "while scanning a block scalar" || e.begin.line != e.at.line {
		return place{}, ""
	}
	return e.begin, fmt.Sprintf("a value that begins with %.1s needs quotes%s", e.source.from(e.begin.line, e.begin.column), e.quoted(e.begin))
}
