package ruleset

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// NewSet builds a set of rules declared in Go. Every rule needs an Endpoint, and
// rules of one endpoint need different Names. The error is an [*InvalidError] with
// every problem.
func NewSet(rules []Rule, opts ...Option) (*Set, error) {
	return BuildSet(inCode(rules), opts...)
}

// BuildSet builds a set from declarations of any layer, in any order. Declarations of one
// identity (Endpoint, Name) are one rule: a field that a higher layer sets replaces the whole field of the
// lower one, and Key replaces Keys and the other way round. Two declarations of one identity in
// one layer are an error. The rules keep the order of their first declarations. The error is an
// [*InvalidError] with every problem.
func BuildSet(declared []Declared, opts ...Option) (*Set, error) {
	cfg := newConfig(opts)
	cfg.rules = append(cfg.rules, declared...)
	set, problems := buildSet(&cfg.declarations)
	if err := Invalid(problems...); err != nil {
		return nil, err
	}
	return set, nil
}

// Resolve resolves rules for one place without a set. Adapters call it with rules that they
// get directly. The rules need no Endpoint. Rules of one endpoint need different
// Names. The error is an [*InvalidError] with every problem. Use rules that come with an error
// only to find more problems.
func Resolve(rules []Rule, opts ...Option) ([]*Resolved, error) {
	r := newResolver(&newConfig(opts).declarations)
	resolved := r.resolveAll(inCode(rules))
	return resolved, Invalid(r.problems...)
}

// Load builds a set from the text of a rule file in YAML, of at most [MaxFileSize] bytes. name is the
// name of the file in errors and sources. The defaults and profiles of the file are laid over the defaults and
// profiles of the options, and its rules over the rules of [WithRules]. The error is an [*InvalidError]
// with every problem of reading and of resolving, in the order of the lines. Only a text that is
// not YAML hides the problems after the first one.
func Load(name string, text []byte, opts ...Option) (*Set, error) {
	cfg := newConfig(opts)
	f := readFile(name, text, cfg.service, &cfg.declarations)
	if f.Doc == nil {
		return nil, Invalid(f.problems...)
	}
	var set *Set
	problems := f.problems
	if !f.IsFull() { // otherwise the reader skipped the rest
		var more []*Problem
		set, more = buildSet(&cfg.declarations)
		problems = append(problems, more...)
	}
	slices.SortStableFunc(problems, byPosition)
	if err := Invalid(firstOf(problems)...); err != nil {
		return nil, err
	}
	set.file = name
	return set, nil
}

// firstOf returns the problems to report for a file. If there are too many, the last one gives the
// number of the others.
func firstOf(problems []*Problem) []*Problem {
	const most = strictyaml.MaxProblems
	more := len(problems) - (most - 1)
	if more < 2 {
		return problems
	}
	last := &Problem{Source: problems[most-1].Source, Message: fmt.Sprintf("and %d more problems: correct those above first", more)}
	return append(problems[:most-1:most-1], last)
}

// byPosition orders problems by file, line and column. Problems without a file come first.
func byPosition(a, b *Problem) int {
	s, t := a.Source, b.Source
	return cmp.Or(cmp.Compare(s.File, t.File), cmp.Compare(s.Line, t.Line), cmp.Compare(s.Column, t.Column))
}

//go:embed locks.schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of a rule file, for editors. The schema finds most
// of the mistakes in a single rule that [Load] refuses. It does not find mistakes that depend on
// other rules, on the program, or on the text itself, such as a value that YAML reads as a comment.
func Schema() []byte { return []byte(schema) }
