package ruleset

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
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

// table is what a mapping may contain.
type table[T any] struct {
	what  string // "a rule"
	rows  []row[T]
	index map[string]int  // of rows, by name
	hints map[string]hint // what to say about other keys, by foldKey
}

// row is one key of a mapping: how its value gets into a T.
type row[T any] struct {
	name  string // in the file
	field string // what is unreadable when the value is, and has the value's source
	read  func(f *fileReader, v value, to *T) bool
}

// rowsOf makes the rows of a mapping whose values are fields of an S in the T.
func rowsOf[S, T any](fields []*field[S], in func(*T) *S) []row[T] {
	rows := make([]row[T], len(fields))
	for i, field := range fields {
		rows[i] = row[T]{field.name, field.name, func(f *fileReader, v value, to *T) bool { return field.read(f, v, in(to)) }}
	}
	return rows
}

// itself is for a mapping that is an S by itself.
func itself[S any](to *S) *S { return to }

// hint is what to write instead of a key that is no row.
type hint struct {
	meant   string // the row that was probably meant, "" if none was
	message string // instead of "write" and that name
}

// found is what became of a key.
type found struct {
	name, field string
	key, node   *yaml.Node
	ok          bool // it could be read
}

func newTable[T any](what string, rows []row[T], hints map[string]hint) *table[T] {
	t := &table[T]{what: what, rows: rows, index: make(map[string]int, len(rows)), hints: hints}
	for i, r := range rows {
		t.index[r.name] = i
	}
	return t
}

// names lists the keys.
func (t *table[T]) names() []string {
	names := make([]string, len(t.rows))
	for i, r := range t.rows {
		names[i] = r.name
	}
	return names
}

// hint says what to write instead of a key, and which row was meant.
func (t *table[T]) hint(key string) hint {
	h, known := t.hints[foldKey(key)]
	switch {
	case known && h.message != "":
		return h
	case !known && len(key) <= maxNameLength:
		h.meant = failpolicy.Nearest(key, t.names())
	}
	if h.meant != "" {
		h.message = "unknown field: write " + h.meant
	} else {
		h.message = fmt.Sprintf("unknown field: %s has %s", t.what, strings.Join(t.names(), ", "))
	}
	return h
}

// foldKey is a key without what tells waitTime, wait-time and wait_time apart.
func foldKey(key string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(key))
}

// readMapping reads the mapping n into to and returns what became of its keys, in
// their order. A key that is misspelled counts as the one that was meant, unread.
// prefix precedes the keys in problems: "status.".
func readMapping[T any](f *fileReader, t *table[T], prefix string, n *yaml.Node, to *T) []found {
	seen := make([]found, 0, min(len(n.Content)/2, len(t.rows)))
	for v := range strictyaml.Pairs(n, prefix) {
		if f.isFull() {
			break
		}
		name, ok := f.Name(strings.TrimSuffix(prefix, "."), v.Key)
		if !ok {
			continue
		}
		if first := slices.IndexFunc(seen, func(s found) bool { return s.name == name }); first >= 0 {
			f.reportTwice(prefix+keyText(name), seen[first].key, v.Key)
			continue
		}
		i, known := t.index[name]
		if !known {
			h := t.hint(name)
			f.Reportf(v.Key, prefix+keyText(name), "%s", h.message)
			seen = append(seen, found{name: name, field: t.field(h.meant), key: v.Key})
			continue
		}
		seen = append(seen, found{name, t.rows[i].field, v.Key, v.Node, t.rows[i].read(f, v, to)})
	}
	return seen
}

// field is the field of a row, "" if there is none.
func (t *table[T]) field(name string) string {
	if i, ok := t.index[name]; ok {
		return t.rows[i].field
	}
	return ""
}

func (f *fileReader) reportTwice(field string, first, second *yaml.Node) {
	f.Reportf(second, field, "given twice: remove this one, or the first in line %d", first.Line)
}

// keyText is an unknown key, fit for a message.
func keyText(key string) string {
	if key == "" || strings.ContainsAny(key, " :\"") || !isPrintable(key) || len(key) > maxNameLength {
		return fmt.Sprintf("%.100q", key)
	}
	return key
}
