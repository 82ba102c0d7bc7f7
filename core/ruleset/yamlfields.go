package ruleset

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
	"github.com/interlock-go/interlock/failpolicy"
)

// reader reads a value into a field. It reports what it cannot read and leaves the
// field as it is then.
type reader func(f *fileReader, v value, to reflect.Value) bool

// fieldRows makes a row of every field of the struct S, which is in T, except the
// named ones. readerOf gives the reader of a field by its type and name.
func fieldRows[S, T any](in func(*T) *S, readerOf func(reflect.Type, string) reader, except ...string) []row[T] {
	var rows []row[T]
	t := reflect.TypeFor[S]()
	for i, name := range fieldsOf(t).names {
		if slices.Contains(except, name) {
			continue
		}
		read := readerOf(t.Field(i).Type, name)
		rows = append(rows, row[T]{name, name, func(f *fileReader, v value, to *T) bool {
			return read(f, v, reflect.ValueOf(in(to)).Elem().Field(i))
		}})
	}
	return rows
}

// itself is for a mapping that is a struct by itself.
func itself[T any](to *T) *T { return to }

// ruleReader reads the values of a rule or a setting.
func ruleReader(t reflect.Type, name string) reader {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return into(func(f *fileReader, v value) (time.Duration, bool) { return f.duration(v, name) })
	case reflect.TypeFor[failpolicy.Statuses]():
		return into(filled(causeTable, statusExample))
	case reflect.TypeFor[bool]():
		return into(func(f *fileReader, v value) (bool, bool) { return f.Bool(v) })
	case reflect.TypeFor[int]():
		return into(func(f *fileReader, v value) (int, bool) { return f.Int(v, "10") })
	case reflect.TypeFor[[]string]():
		form := textForms[name]
		return into(func(f *fileReader, v value) ([]string, bool) { return f.texts(v, form, maxTemplates, templateCount) })
	case reflect.TypeFor[string]():
		form := textForms[name]
		return into(func(f *fileReader, v value) (string, bool) { return f.Text(v, form) })
	}
	if w, ok := wordLists[t]; ok {
		return into(func(f *fileReader, v value) (string, bool) { return f.word(v, w) })
	}
	panic("ruleset: no reader for " + name)
}

// into stores what read returns.
func into[V any](read func(*fileReader, value) (V, bool)) reader {
	return func(f *fileReader, v value, to reflect.Value) bool {
		x, ok := read(f, v)
		if ok {
			to.Set(reflect.ValueOf(x).Convert(to.Type()))
		}
		return ok
	}
}

// textForms are the fields with another form. A prefix and a message may be empty, so
// that a rule can do without the one of its profile; of keys the check of the rule
// says more.
var textForms = map[string]strictyaml.Form{ //nolint:gochecknoglobals // a table that is only read
	"when":     {Lines: true, Long: true},
	"response": {Lines: true, Long: true},
	"message":  {Lines: true, Blank: true, Long: true},
	"prefix":   {Blank: true},
	"key":      {Blank: true, Long: true},
	"keys":     {Blank: true, Long: true},
}

// word reads one of a few words. What YAML takes for something else, such as NULL, is
// judged as the word it was meant to be.
func (f *fileReader) word(v value, w wordList) (string, bool) {
	n := v.Node
	isNull := n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value != ""
	if !isNull && !f.Is(v, yaml.ScalarNode, "one of "+strings.Join(w.known, ", ")) {
		return "", false
	}
	if err := w.check(strictyaml.Clip(n.Value)); err != nil {
		f.Reportf(n, v.Field, "%s", err)
		return "", false
	}
	return n.Value, true
}
