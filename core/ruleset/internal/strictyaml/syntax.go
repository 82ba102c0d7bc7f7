package strictyaml

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// place is a position in the text, both from 1. Columns are characters.
type place struct{ line, column int }

// syntaxError is what the parser says, to be explained with the text at hand.
type syntaxError struct {
	*Doc
	message string
	context string // what the parser was doing: "while scanning an alias"
	begin   place  // where it began to
	at      place
}

// explain says why the text is not YAML: the trap that it fell into, or failing that
// what the parser says.
func (d *Doc) explain(err error) Problem {
	e := syntaxError{Doc: d, message: err.Error(), at: place{1, 1}}
	if cause, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.message, e.context = cause.Message, cause.ContextMsg
		e.at, e.begin = place{cause.Mark.Line, cause.Mark.Column}, place{cause.ContextMark.Line, cause.ContextMark.Column}
	}
	for _, trap := range []func() (place, string){e.curly, e.template, e.tab, e.special, e.colon, e.alignment, e.other} {
		if at, message := trap(); message != "" {
			return Problem{Line: at.line, Column: at.column, Message: message}
		}
	}
	return Problem{Line: e.at.line, Column: e.at.column, Message: "not YAML: " + strings.TrimPrefix(e.context+": "+e.message, ": ")}
}

// says reports whether the parser's message begins so.
func (e *syntaxError) says(message string) bool { return strings.HasPrefix(e.message, message) }

// isIn reports what the parser was doing.
func (e *syntaxError) isIn(what string) bool { return strings.Contains(e.context, what) }

// from is the rest of the line at a place.
func (e *syntaxError) from(at place) string {
	_, rest := e.cut(at.line, at.column)
	return rest
}

// curly finds a value that begins with a curly quote, and what YAML makes of the rest of it.
func (e *syntaxError) curly() (place, string) {
	for line := max(e.begin.line, e.at.line-1, 1); line <= e.at.line; line++ {
		text := e.line(line)
		if start := curlyStart.FindString(text); start != "" {
			_, size := utf8.DecodeLastRuneInString(start)
			before := start[:len(start)-size]
			return place{line, utf8.RuneCountInString(before) + 1}, curlyMessage(text[len(before):], text)
		}
	}
	return place{}, ""
}

// flowComment is a #{ that stands for a value in […] or {…}.
var flowComment = regexp.MustCompile(`[\[{,]\s*#\{|[\[{].*:\s+#\{`)

// template finds #{…} inside of […] or {…}, where its braces and commas are YAML's.
func (e *syntaxError) template() (place, string) {
	first := max(e.begin.line, 1)
	if !e.isIn("flow") || e.begin == e.at { // the parser does not say where the […] begins
		first = max(e.at.line-1, 1)
		if !flowComment.MatchString(e.line(first)) && !flowComment.MatchString(e.line(e.at.line)) {
			return place{}, ""
		}
	}
	for line := first; line <= e.at.line; line++ {
		text := e.line(line)
		i := openTemplate(text)
		if i < 0 {
			continue
		}
		if column := utf8.RuneCountInString(text[:i]) + 1; line < e.at.line || column <= e.at.column {
			return place{line, column}, "a value with #{…} needs quotes in […] and {…}" + after(quoteTemplates(text, line > first))
		}
	}
	return place{}, ""
}

// tab finds tabs in the indentation.
func (e *syntaxError) tab() (place, string) {
	line := e.line(e.at.line)
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
	case e.says("unknown anchor"):
		return e.at, "the alias has no anchor, and aliases are not read here: write the value out, or in quotes if the * belongs to it"
	case strings.Contains(e.message, "cannot start any token"):
		at = e.at
	case e.isIn("an alias"), e.isIn("an anchor"), e.isIn("a tag"), e.isIn("a block scalar") && e.begin.line == e.at.line:
	default:
		return place{}, ""
	}
	before, rest := e.cut(at.line, at.column)
	if rest == "" {
		return place{}, ""
	}
	example := quoteValue(e.line(at.line))
	if !strings.HasPrefix(example, strings.TrimSpace(before)) {
		example = "" // it is not the only value of the line
	}
	return at, fmt.Sprintf("a value that begins with %.1s needs quotes%s", rest, after(example))
}

// colon finds a colon too many, or too few.
func (e *syntaxError) colon() (place, string) {
	switch {
	case e.says("could not find expected ':'"):
		if at, message := e.spaceMissing(e.begin.line); message != "" {
			return at, message
		}
		return e.begin, "a line without a colon: write a name, a colon, a space and the value"
	case !e.says("mapping values are not allowed"):
		return place{}, ""
	}
	line := e.line(e.at.line)
	if before, _ := e.cut(e.at.line, e.at.column); strings.Contains(before, ": ") {
		return e.at, "a value with a colon and a space needs quotes" + after(quoteValue(line))
	}
	if at, message := e.spaceMissing(e.at.line - 1); message != "" {
		return at, message
	}
	return place{e.at.line, indentOf(line) + 1}, "indented deeper than the line above, which has a value already: align it with the name above"
}

var glued = regexp.MustCompile(`^\s*(?:- +)*([a-z_]+):([^\s/].*)$`)

// spaceMissing finds key:value, which is a text to YAML.
func (e *syntaxError) spaceMissing(line int) (place, string) {
	text := e.line(line)
	parts := glued.FindStringSubmatchIndex(text)
	if parts == nil {
		return place{}, ""
	}
	return place{line, parts[4] + 1}, "a space is missing after the colon: " + text[parts[2]:parts[3]] + ": " + text[parts[4]:]
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// alignment finds a line that belongs to nothing above it.
func (e *syntaxError) alignment() (place, string) {
	isEntry := e.says("did not find expected '-' indicator")
	line := e.line(e.at.line)
	switch {
	case e.says("found a comment without preceding whitespace") && strings.HasPrefix(e.from(e.at), "#{"):
		return e.afterQuotes()
	case !isEntry && e.message != "did not find expected key":
		return place{}, ""
	case e.at.column > indentOf(line)+1:
		return e.afterQuotes()
	case strings.HasPrefix(line[indentOf(line):], "- "):
		return e.at, "the dash is not aligned with those above"
	case !isEntry:
		return e.at, fmt.Sprintf("not aligned with the names above, which begin in column %d", e.begin.column)
	case e.at.column == e.begin.column:
		return e.at, "a dash is missing: - " + strings.TrimSpace(line)
	default:
		return e.at, fmt.Sprintf("not aligned with the entries above: their dashes are in column %d, their names in column %d", e.begin.column, e.begin.column+2)
	}
}

// afterQuotes explains a value that goes on after its quotes, as conditions do, or whose
// opening quote closes another one.
func (e *syntaxError) afterQuotes() (place, string) {
	before, _ := e.cut(e.at.line, e.at.column)
	quote := strings.TrimRight(before, " ")
	quote = quote[max(0, len(quote)-1):]
	if strings.Count(before, quote)%2 == 1 {
		for above := e.at.line - 1; above >= e.begin.line; above-- {
			if text := e.line(above); strings.Count(text, quote)%2 == 1 {
				return place{above, 1 + utf8.RuneCountInString(text[:strings.LastIndex(text, quote)])}, "the quote that opens here is not closed in this line"
			}
		}
	}
	if quote == "]" || quote == "}" {
		return e.at, "the value goes on after its brackets: " + requoted(e.line(e.at.line))
	}
	return e.at, "the value goes on after its quotes: " + requoted(e.line(e.at.line))
}

var (
	quotedWhole = regexp.MustCompile(`^(.*?:\s+|\s*- +)(["'])(.*)(["'])\s*$`)
	quotedStart = regexp.MustCompile(`^(.*?:\s+|\s*- +)"([^"\\]*)"([^"\s][^"]*)$`)
)

// requoted shows what the quotes of a line were meant to be.
func requoted(line string) string {
	if parts := quotedStart.FindStringSubmatch(line); len(parts) > 0 {
		return "quote the whole value: " + strings.TrimSpace(parts[1]) + " " + Quote(parts[2]+parts[3])
	}
	parts := quotedWhole.FindStringSubmatch(line)
	switch {
	case len(parts) > 0 && strings.Contains(parts[3], parts[2]+", "+parts[2]):
		return "write a list: " + strings.TrimSpace(parts[1]) + " [" + parts[2] + parts[3] + parts[4] + "]"
	case len(parts) > 0 && parts[2] == "'" && parts[4] == "'":
		return "quote the whole value: " + strings.TrimSpace(parts[1]) + " " + Quote(parts[3])
	case len(parts) > 0 && parts[2] == `"` && parts[4] == `"` && withinTemplate(parts[3]):
		return "quote the whole value: " + strings.TrimSpace(parts[1]) + " " + Quote(parts[3])
	}
	return "quote the whole value: " + quoteValue(line)
}

// withinTemplate reports whether the first quote of a text is one of an expression, as in
// a:#{header["X-Id"]}: then the quotes around the text are those of the whole value.
func withinTemplate(text string) bool {
	before, _, found := strings.Cut(text, `"`)
	return found && strings.LastIndex(before, "#{") > strings.LastIndex(before, "}")
}

// other finds what its message alone tells.
func (e *syntaxError) other() (place, string) {
	switch {
	case e.says("did not find expected ','"):
		return e.begin, fmt.Sprintf("the %.1s that opens here is not closed, or a comma is missing before line %d, column %d", e.from(e.begin), e.at.line, e.at.column)
	case strings.HasPrefix(e.context, "while increasing"):
		return e.at, "nested too deeply: a rule file has a few levels"
	case e.isIn("a quoted scalar") && e.says("found unknown escape character"):
		return e.at, `\ begins an escape between double quotes: write \\, or use single quotes`
	case e.isIn("a quoted scalar") && e.says("found unexpected"):
		return e.begin, "the quote that opens here is never closed"
	case e.says("did not find expected node content"):
		return e.at, "a value is missing here, or a comma is too many"
	case e.says("did not find expected <document start>"):
		return e.at, "this line does not belong to what is above it: a rule file is one mapping of names to values"
	case e.says("found a comment without preceding whitespace"):
		return e.at, "a space is missing before the comment, or quotes are missing around the whole value"
	}
	return place{}, ""
}
