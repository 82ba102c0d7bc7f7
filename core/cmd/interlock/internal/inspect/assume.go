package inspect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// assumption is a name in a key or condition that no variable has and that is near
// none: the program may register it.
type assumption struct {
	name  string
	rule  *ruleset.Resolved
	field string
}

func namesOf(list []assumption) []string {
	var names []string
	for _, a := range list {
		if !slices.Contains(names, a.name) {
			names = append(names, a.name)
		}
	}
	return names
}

// assume finds the assumptions to make. One name may hide the next until it is
// known.
func (s *site) assume() []assumption {
	var list []assumption
	schema, err := s.schema(nil)
	for err == nil {
		more := s.unknown(schema)
		if len(more) == 0 {
			return list
		}
		if schema, err = s.schema(namesOf(append(list, more...))); err == nil {
			list = append(list, more...)
		}
	}
	return list // a name that no variable can have: compiling reports it
}

// unknown are the names that a schema lacks, where nothing else is suggested.
func (s *site) unknown(schema *keyexpr.Schema) []assumption {
	var list []assumption
	for _, r := range s.rules {
		for _, e := range expressions(r) {
			for _, err := range flatten(e.compile(schema)) {
				name := nameAt(err)
				same := func(a assumption) bool { return a.name == name && a.rule == r }
				if _, known := schema.Slot(name); name != "" && !known && err.Suggestion == "" && !slices.ContainsFunc(list, same) {
					list = append(list, assumption{name, r, e.field})
				}
			}
		}
	}
	return list
}

// expression is a key template or a condition of a rule.
type expression struct {
	field, text string
}

func expressions(r *ruleset.Resolved) []expression {
	var list []expression
	if r.When != "" {
		list = append(list, expression{"when", r.When})
	}
	for i, template := range r.Templates() {
		field := "key"
		if r.Key == "" {
			field = fmt.Sprintf("keys[%d]", i)
		}
		list = append(list, expression{field, template})
	}
	return list
}

func (e expression) compile(schema *keyexpr.Schema) error {
	if e.field == "when" {
		_, err := keyexpr.CompileCondition(e.text, schema)
		return err
	}
	_, err := keyexpr.Compile(e.text, schema)
	return err
}

// flatten lists the errors that are joined in err.
func flatten(err error) []*keyexpr.Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
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
		return "" // nothing, a number, or a function
	}
	return string(line[start:end])
}

func isWord(r rune) bool {
	return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
