package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parse returns the only document in text, or the problem that keeps text from being one document.
func parse(text []byte, in lines) (*yaml.Node, Problem) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, in.explain(err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!null"}}}, Problem{}
	} else if err != nil {
		return nil, in.explain(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, Problem{second.Line, second.Column, "", "a second document: remove the --- and put all rules into one list"}
	case !errors.Is(err, io.EOF):
		return nil, in.explain(err)
	}
	return &first, Problem{}
}

// explain returns the problem that keeps the text from being YAML. It recognizes the common traps;
// otherwise it repeats the message of the parser.
func (l lines) explain(err error) Problem {
	p := Problem{Line: 1, Column: 1, Message: "not YAML: " + err.Error()}
	cause, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return p
	}
	p.Line, p.Column = cause.Mark.Line, cause.Mark.Column
	begin, says := cause.ContextMark, func(message string) bool { return strings.Contains(cause.Message, message) }
	if line, column := l.bareTemplate(cause); line > 0 {
		return Problem{line, column, "", `a value with #{…} needs quotes in […] and {…}: ["order:#{path.id}"]`}
	}
	line := l.line(p.Line)
	before, _ := l.cut(p.Line, p.Column)
	special := begin
	if says("cannot start any token") || says("unknown anchor") {
		special = cause.Mark
	}
	_, value := l.cut(special.Line, special.Column)
	switch {
	case strings.Contains(line[:indentOf(line)], "\t"):
		return Problem{p.Line, strings.IndexByte(line, '\t') + 1, "", "a tab: indent with spaces"}
	case value != "" && special.Line == p.Line && strings.ContainsAny(value[:1], "*&!%@`|>"):
		return Problem{special.Line, special.Column, "", fmt.Sprintf("a value that begins with %.1s needs quotes%s", value, quoteValue(l.line(special.Line)))}
	case says("mapping values are not allowed") && strings.Contains(before, ": "):
		p.Message = "a value with a colon and a space needs quotes" + quoteValue(line)
	case says("mapping values are not allowed"):
		p.Column, p.Message = indentOf(line)+1, "the line above has a value already, or lacks the space after its colon"
	case says("could not find expected ':'"):
		p.Line, p.Column, p.Message = begin.Line, begin.Column, "a colon is missing, or the space after it: write a name, a colon, a space and the value"
	case says("found a comment without preceding whitespace"):
		p.Message = "the value goes on after its quotes: quote the whole value, or write a space before the comment"
	case says("did not find expected node content"):
		p.Message = "a value is missing here, or a comma is too many"
	case says("did not find expected key"), says("did not find expected '-' indicator"), says("did not find expected <document start>"):
		if p.Message = "not aligned with the lines above"; p.Column > indentOf(line)+1 {
			p.Message = "the value goes on after its quotes or brackets: quote the whole value, with ' where it has a \" inside"
		}
	case says("did not find expected ','"):
		p.Line, p.Column, p.Message = begin.Line, begin.Column, fmt.Sprintf("the bracket that opens here is not closed, or a comma is missing before line %d, column %d", p.Line, p.Column)
	case strings.Contains(cause.ContextMsg, "a quoted scalar") && says("found unexpected"):
		p.Line, p.Column, p.Message = begin.Line, begin.Column, "the quote that opens here is never closed"
	case says("found unknown escape character"):
		p.Message = `\ begins an escape between double quotes: write \\, or use single quotes`
	case strings.HasPrefix(cause.ContextMsg, "while increasing"):
		p.Message = "nested too deeply: a rule file has a few levels"
	default:
		p.Message = "not YAML: " + strings.TrimPrefix(cause.ContextMsg+": "+cause.Message, ": ")
	}
	return p
}

var (
	anyTemplate  = regexp.MustCompile(`#\{`)
	flowTemplate = regexp.MustCompile(`[\[{].*?#\{`)
)

// bareTemplate returns the place of the first template without quotes in […] or {…}, where YAML reads its
// braces and commas as parts of the list or mapping. It returns 0 if there is none.
func (l lines) bareTemplate(cause *yaml.LoadError) (line, column int) {
	first, template := max(cause.Mark.Line-1, 1), flowTemplate
	if begin := cause.ContextMark.Line; begin > 0 && strings.Contains(cause.ContextMsg, "flow") {
		first, template = min(first, begin), anyTemplate
	}
	for line := first; line <= cause.Mark.Line; line++ {
		if at := template.FindStringIndex(blankQuotes(l.line(line))); at != nil {
			return line, utf8.RuneCountInString(l.line(line)[:at[1]]) - 1
		}
	}
	return 0, 0
}

// blankQuotes replaces the texts in quotes with blanks of the same length.
func blankQuotes(line string) string {
	return quotedText.ReplaceAllStringFunc(line, func(text string) string { return strings.Repeat(" ", len(text)) })
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
