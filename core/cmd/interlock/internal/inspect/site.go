package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/shape"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// site is an endpoint with its rules, and the variables that they have there.
type site struct {
	endpoint ruleset.Endpoint
	rules    []*ruleset.Resolved
	example  string // of an expression
	schema   schemaFunc

	open      bool     // what the program registers is not known: any name may be that
	fallbacks []string // that the program has

	types []*shape.Type // whose names in messages are made readable
}

// schemaFunc is the schema of a place where the program registers more names.
type schemaFunc func(more []string) (*keyexpr.Schema, error)

// compile compiles the rules; nil if that fails. What fails is reported.
func (s *site) compile(found *findings) *aspect.Preview {
	names := []string(nil)
	if s.open {
		names = s.assumed()
	}
	schema, err := s.schema(names)
	if err != nil {
		found.addOnce(report.Error, s.rules[0].Problem("", err.Error()))
		return nil
	}
	preview, err := aspect.NewPreview(aspect.Site{Endpoint: s.endpoint, Schema: schema, Fallbacks: s.fallbacks}, s.rules...)
	if err != nil {
		s.report(err, found)
		return nil
	}
	if len(names) > 0 {
		s.noteAssumed(names, found)
	}
	return preview
}

func (s *site) report(err error, found *findings) {
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok {
		found.addOnce(report.Error, s.rules[0].Problem("", err.Error()))
		return
	}
	for _, p := range invalid.Problems {
		readable := *p
		for _, t := range s.types {
			readable.Message = t.Readable(readable.Message)
		}
		found.addAt(s.endpoint, report.Error, &readable)
	}
}

// fallbacksOf are the fallbacks that rules name, where those of the program are not
// known.
func fallbacksOf(rules []*ruleset.Resolved) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Fallback)
	}
	return names
}

// assumed are the names in keys and conditions that no variable has and none is
// near: the program may register them.
func (s *site) assumed() []string {
	var names []string
	for {
		schema, err := s.schema(names)
		if err != nil {
			return nil // compile reports it
		}
		more := s.unknown(schema)
		if len(more) == 0 {
			return names
		}
		names = append(names, more...)
	}
}

// unknown are the names that a schema lacks.
func (s *site) unknown(schema *keyexpr.Schema) []string {
	var names []string
	for _, r := range s.rules {
		for _, err := range compileErrors(r, schema) {
			name := nameAt(err)
			if _, known := schema.Slot(name); name != "" && !known && err.Suggestion == "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// compileErrors is what is wrong with the expressions of a rule.
func compileErrors(r *ruleset.Resolved, schema *keyexpr.Schema) []*keyexpr.Error {
	var all []error
	if r.When != "" {
		_, err := keyexpr.CompileCondition(r.When, schema)
		all = append(all, err)
	}
	for _, template := range r.Templates() {
		_, err := keyexpr.Compile(template, schema)
		all = append(all, err)
	}
	return flatten(errors.Join(all...))
}

// flatten lists the errors that are joined in err.
func flatten(err error) []*keyexpr.Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // its parts are looked at one by one
		var list []*keyexpr.Error
		for _, e := range joined.Unwrap() {
			list = append(list, flatten(e)...)
		}
		return list
	}
	if e, ok := errors.AsType[*keyexpr.Error](err); ok {
		return []*keyexpr.Error{e}
	}
	return nil
}

// nameAt is the variable at the place of an error, "" if none begins there.
func nameAt(e *keyexpr.Error) string {
	lines := strings.Split(e.Template, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return ""
	}
	line := []rune(lines[e.Line-1])
	start := e.Column - 1
	if start < 0 || start >= len(line) || start > 0 && (isWord(line[start-1]) || line[start-1] == '.') {
		return ""
	}
	end := start
	for end < len(line) && isWord(line[end]) {
		end++
	}
	rest := strings.TrimLeft(string(line[end:]), " ")
	if end == start || '0' <= line[start] && line[start] <= '9' || strings.HasPrefix(rest, "(") {
		return "" // a number, or a function
	}
	return string(line[start:end])
}

func isWord(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// noteAssumed says which names could not be judged.
func (s *site) noteAssumed(names []string, found *findings) {
	what := "variable"
	if len(names) > 1 {
		what = "variables"
	}
	hint := "the program has to register"
	if s.endpoint.Transport == ruleset.TransportHTTP {
		hint += " (--routes tells whether it does)"
	}
	found.addOnce(report.Note, s.rules[0].Problem("", fmt.Sprintf("not judged: %s %s, which %s", what, strings.Join(names, ", "), hint)))
}

// keyField is the field in which a rule has its first template.
func keyField(r *ruleset.Resolved) string {
	if r.Key == "" {
		return "keys"
	}
	return "key"
}

func quoted(s string) string { return strconv.Quote(s) }
