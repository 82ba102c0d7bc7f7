package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// MaxSize is how many bytes a text may have.
const MaxSize = 4 << 20

// maxValues bounds what the parser makes of a text. Rule files of the largest size have
// two thirds of it.
const maxValues = 300_000

// Problem is a mistake.
type Problem struct {
	Line, Column int    // from 1; 0 where the text as a whole is meant
	Field        string // such as "wait_time" or "keys[1]"; empty if it is about none
	Message      string // what is wrong and what to write instead
}

// Doc is a document that is being read. It is not safe for concurrent use.
type Doc struct {
	// Root is what the document says. It is null for one that says nothing.
	Root *yaml.Node

	lines    []string
	tell     func(Problem)
	told     map[int]bool // lines with a problem
	comments map[int]int  // columns of those that begin with #{, by line
}

// Parse parses a text of one document, and hands every problem to tell: those of the
// text at once, those of its values when they are read. It is nil when the text is no
// YAML. A byte order mark, as some editors write it, is none of the text.
func Parse(text []byte, tell func(Problem)) *Doc {
	text = bytes.TrimLeft(text, "\ufeff")
	d := &Doc{tell: tell, told: map[int]bool{}}
	if p := textProblem(text); p.Message != "" {
		d.report(p)
		return nil
	}
	d.lines = strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	document, p := d.parse(text)
	if p.Message != "" {
		d.report(p)
		return nil
	}
	d.findComments()
	d.Root = document.Content[0]
	return d
}

// parse is the only document, or why there is none.
func (d *Doc) parse(text []byte) (*yaml.Node, Problem) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, d.explain(err)
	}
	var first, second yaml.Node
	if err := loader.Load(&first); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!null"}}}, Problem{}
	} else if err != nil {
		return nil, d.explain(err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, Problem{second.Line, second.Column, "", "a second document: remove the --- and put all rules into one list"}
	case !errors.Is(err, io.EOF):
		return nil, d.explain(err)
	}
	return &first, Problem{}
}

// report hands on a problem, without the rest of a value that is no value.
func (d *Doc) report(p Problem) {
	p.Message = Clip(p.Message)
	d.told[p.Line] = true
	d.tell(p)
}

// Reportf reports a problem with a node.
func (d *Doc) Reportf(n *yaml.Node, field, format string, args ...any) {
	d.report(Problem{n.Line, n.Column, field, fmt.Sprintf(format, args...)})
}

// MaxWord is the length of a text that is no template, expression or document. Names
// and endpoints are repeated in every problem of their rule.
const MaxWord = 1000

// Clip is a text without what makes it too long for a word.
func Clip(text string) string {
	if len(text) <= MaxWord {
		return text
	}
	return strings.ToValidUTF8(text[:MaxWord], "") + "…"
}

// line is a line, from 1; "" outside of the text, and for one that nobody wrote by hand.
func (d *Doc) line(n int) string {
	const limit = 2000
	if n < 1 || n > len(d.lines) || len(d.lines[n-1]) > limit {
		return ""
	}
	return d.lines[n-1]
}

// cut splits a line before a column, which counts characters.
func (d *Doc) cut(line, column int) (before, rest string) {
	text := []rune(d.line(line))
	column = min(max(column-1, 0), len(text))
	return string(text[:column]), string(text[column:])
}

// textProblem says why text cannot be YAML at all, and where.
func textProblem(text []byte) Problem {
	if len(text) > MaxSize {
		return Problem{Message: fmt.Sprintf("larger than %d MiB: split the rules between programs", MaxSize>>20)}
	}
	line, column := 1, 1
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if message := runeProblem(r, text[i:], size); message != "" {
			return Problem{Line: line, Column: column, Message: message}
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	if countValues(text) > maxValues {
		return Problem{Message: fmt.Sprintf("more than %d lines and values: split the rules between programs", maxValues)}
	}
	return Problem{}
}

// countValues is how many values the parser makes of text, or a few more: those of lines,
// lists and mappings.
func countValues(text []byte) int {
	n := 0
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		n += 1 + bytes.Count(line, []byte(",")) + bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{"))
	}
	return n
}

// runeProblem judges the character r at the start of rest.
func runeProblem(r rune, rest []byte, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("byte 0x%02x is not UTF-8: save the file as UTF-8", rest[0])
	case r == '\t', r == '\n', r == '\r' && bytes.HasPrefix(rest, []byte("\r\n")):
		return ""
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == '\ufffe', r == '\uffff': // some of them end a line for YAML, but not in an editor
		return fmt.Sprintf("%U is invisible and not allowed in a rule file: remove it", r)
	}
	return ""
}
