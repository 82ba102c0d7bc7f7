package ruleset

import (
	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// fileReader makes declarations of the nodes of a rule file and collects every
// problem on the way.
type fileReader struct {
	*strictyaml.Doc

	service  string
	scope    Source            // of what is being read, without the position
	parts    map[string]Source // of the fields of the declaration that is being read
	foreign  bool              // a services list was found, and the program has no name
	problems []*Problem
}

type value = strictyaml.Value

// readFile adds what a file says to cfg. What it returns has a document if the rest of
// the file could be read: syntax errors are fatal.
func readFile(name string, text []byte, cfg *config) *fileReader {
	f := &fileReader{service: cfg.service, scope: Source{Layer: LayerYAML, File: name}}
	f.Doc = strictyaml.Parse(text, f.note)
	if f.Doc != nil {
		f.readTop(cfg)
		f.ReportComments()
	}
	return f
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

// note keeps a problem.
func (f *fileReader) note(p strictyaml.Problem) {
	switch len(f.problems) {
	case maxProblems:
		return
	case maxProblems - 1:
		p.Field, p.Message = "", "more problems follow: correct those above first"
	}
	f.problems = append(f.problems, &Problem{Field: p.Field, Source: f.at(p.Line, p.Column), Message: p.Message})
}

func (f *fileReader) isFull() bool { return len(f.problems) == maxProblems }

// notePart keeps the place of a part of a field.
func (f *fileReader) notePart(v value) {
	if f.parts == nil {
		f.parts = map[string]Source{}
	}
	f.parts[v.Field] = f.of(v.Node)
}

// texts reads a list of texts.
func (f *fileReader) texts(v value, form strictyaml.Form, most int, tooMany string) ([]string, bool) {
	if !f.IsList(v) {
		return nil, false
	}
	if n := len(v.Node.Content); n > most {
		f.Reportf(v.Node, v.Field, tooMany, n, most)
		return nil, false
	}
	list, all := make([]string, len(v.Node.Content)), true
	for i := range list {
		item := v.Item(i)
		text, ok := f.Text(item, form)
		list[i], all = text, all && ok
		f.notePart(item)
	}
	return list, all
}
