package ruleset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fileReader makes declarations of the nodes of a rule file and collects every
// problem on the way.
type fileReader struct {
	text      []byte
	source    *source
	service   string
	scope     Source            // of what is being read, without the position
	parts     map[string]Source // of the fields of the declaration that is being read
	foreign   bool              // a services list was found, and the program has no name
	problems  []*Problem
	swallowed swallowed // comments
}

// newFileReader reads text as the file name for the program service. A byte order
// mark, as some editors write it, is none of the text.
func newFileReader(name string, text []byte, service string) *fileReader {
	text = bytes.TrimLeft(text, "\ufeff")
	return &fileReader{text: text, service: service, scope: Source{Layer: LayerYAML, File: name}}
}

// readFile adds what the file says to cfg. It reports whether the rest of the
// file could be read: syntax errors are fatal.
func (f *fileReader) readFile(cfg *config) bool {
	if message, line, column := textProblem(f.text); message != "" {
		f.report(f.at(line, column), "", message)
		return false
	}
	f.source = newSource(f.text)
	root := f.parse()
	if root == nil {
		return false
	}
	f.readDocument(root, cfg)
	return true
}

// parse is the only document of the file, nil with a problem.
func (f *fileReader) parse() *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(f.text))
	if err != nil {
		f.report(f.at(1, 1), "", err.Error())
		return nil
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		f.report(f.at(1, 1), "", "the file says nothing: write "+rulesExample)
		return nil
	case err != nil:
		f.reportSyntax(err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		f.report(f.at(second.Line, second.Column), "", "a second document: remove the --- and put all rules into one list")
		return nil
	case !errors.Is(err, io.EOF):
		f.reportSyntax(err)
		return nil
	}
	root := doc.Content[0]
	if root.Tag == "!!null" {
		f.report(f.at(1, 1), "", "the file says nothing: write "+rulesExample)
		return nil
	}
	return root
}

// at is a position in what is being read.
func (f *fileReader) at(line, column int) Source {
	s := f.scope
	s.Line, s.Column = line, column
	return s
}

// of is the position of a node.
func (f *fileReader) of(n *yaml.Node) Source { return f.at(n.Line, n.Column) }

// maxProblems is how many problems of a file are reported. A file with more is
// probably no rule file.
const maxProblems = 1000

func (f *fileReader) report(at Source, field, message string) {
	switch len(f.problems) {
	case maxProblems:
		return
	case maxProblems - 1:
		field, message = "", "more problems follow: correct those above first"
	}
	f.problems = append(f.problems, &Problem{Field: field, Source: at, Message: shortened(message)})
}

// shortened is a message without the rest of a value that is no value.
func shortened(message string) string {
	const limit = 1000
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}

// clipped is a word without what makes it too long for one: looking for what was meant
// takes its time.
func clipped(word string) string {
	if len(word) <= maxWord {
		return word
	}
	return strings.ToValidUTF8(word[:maxWord], "") + "…"
}

func (f *fileReader) isFull() bool { return len(f.problems) == maxProblems }

func (f *fileReader) reportf(n *yaml.Node, field, format string, args ...any) {
	f.report(f.of(n), field, fmt.Sprintf(format, args...))
}

// notePart keeps the place of a part of a field.
func (f *fileReader) notePart(v value) {
	if f.parts == nil {
		f.parts = map[string]Source{}
	}
	f.parts[v.field] = f.of(v.node)
}
