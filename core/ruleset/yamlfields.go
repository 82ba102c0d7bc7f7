package ruleset

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/interlock-go/interlock/failpolicy"
)

// reader reads a value into a field. It reports what it cannot read and leaves the
// field as it is then.
type reader func(f *fileReader, v value, to reflect.Value) bool

// fieldRows makes a row of every field of the struct S, which is in T, except the
// named ones.
func fieldRows[S, T any](in func(*T) *S, except ...string) []row[T] {
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

// readerOf reads the values of a field by its type.
func readerOf(t reflect.Type, name string) reader {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return into(func(f *fileReader, v value) (time.Duration, bool) { return f.duration(v, timeForms[name]) })
	case reflect.TypeFor[failpolicy.Statuses]():
		return into((*fileReader).statuses)
	case reflect.TypeFor[bool]():
		return into((*fileReader).bool)
	case reflect.TypeFor[int]():
		return into(func(f *fileReader, v value) (int, bool) { return f.int(v, "10") })
	case reflect.TypeFor[[]string]():
		form := textForms[name]
		return into(func(f *fileReader, v value) ([]string, bool) { return f.strings(v, form) })
	case reflect.TypeFor[string]():
		form := textForms[name]
		return into(func(f *fileReader, v value) (string, bool) { return f.string(v, form) })
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

// textForm is what a text may be besides one line of moderate length with something in
// it.
type textForm struct{ lines, blank, long bool }

// textForms are the fields with another form. A prefix and a message may be empty, so
// that a rule can do without the one of its profile; of keys the check of the rule
// says more.
var textForms = map[string]textForm{ //nolint:gochecknoglobals // a table that is only read
	"when":     {lines: true, long: true},
	"response": {lines: true, long: true},
	"message":  {lines: true, blank: true, long: true},
	"prefix":   {blank: true},
	"key":      {blank: true, long: true},
	"keys":     {blank: true, long: true},
}

// wordList is a type that is one of a few words.
type wordList struct {
	known []string
	check func(word string) error
}

var wordLists = map[reflect.Type]wordList{ //nolint:gochecknoglobals // a table that is only read
	reflect.TypeFor[Kind]():                {words(Kinds()), checkKind},
	reflect.TypeFor[KeyFormat]():           wordsOf("key_format", KeyFormats()),
	reflect.TypeFor[Severity]():            {words(Severities()), checkSeverity},
	reflect.TypeFor[failpolicy.Strategy](): {words(failpolicy.Strategies()), func(w string) error { return second(failpolicy.ParseStrategy(w)) }},
	reflect.TypeFor[failpolicy.OnLost]():   {words(failpolicy.LossChoices()), func(w string) error { return second(failpolicy.ParseOnLost(w)) }},
}

func second[T any](_ T, err error) error { return err }

func wordsOf[T ~string](what string, list []T) wordList {
	known := words(list)
	return wordList{known, func(word string) error {
		if slices.Contains(known, word) {
			return nil
		}
		return errors.New(unknownWord(what, word, known))
	}}
}

// severityWords are what other tools call a severity.
var severityWords = map[string]Severity{ //nolint:gochecknoglobals // a table that is only read
	"warning": SeverityWarn, "warnings": SeverityWarn,
	"none": SeverityIgnore, "off": SeverityIgnore, "ignored": SeverityIgnore,
	"fail": SeverityError, "failure": SeverityError, "fatal": SeverityError,
}

func checkSeverity(word string) error {
	known := words(Severities())
	if slices.Contains(known, word) {
		return nil
	}
	meant, ok := severityWords[strings.ToLower(word)]
	if !ok {
		return errors.New(unknownWord("severity", word, known))
	}
	return &failpolicy.UnknownWordError{What: "severity", Word: word, Known: known, Suggestion: string(meant)}
}

// word reads one of a few words. What YAML takes for something else, such as NULL, is
// judged as the word it was meant to be.
func (f *fileReader) word(v value, w wordList) (string, bool) {
	n := v.node
	isNull := n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value != ""
	if !isNull && !f.is(v, yaml.ScalarNode, "one of "+strings.Join(w.known, ", ")) {
		return "", false
	}
	if err := w.check(clipped(n.Value)); err != nil {
		f.reportf(n, v.field, "%s", err)
		return "", false
	}
	return n.Value, true
}
