package ruleset

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"
)

// MaxFileSize is how many bytes a rule file may have.
const MaxFileSize = strictyaml.MaxSize

// readBounded reads a little more than the limit at most, so that Load refuses it.
func readBounded(path string) (text []byte, err error) {
	file, err := os.Open(path) //nolint:gosec // the path is the program's own
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.LimitReader(file, MaxFileSize+1))
}

// Load builds a set from the text of a rule file in YAML, of [MaxFileSize] at most; name is
// what errors and sources call it. The file's defaults and profiles are laid over those
// of the options, its rules over those of [WithRules]. The error is an [*InvalidError]
// with every problem of reading and of resolving, in the order of the lines. Only
// what is no YAML at all hides what comes after it.
func Load(name string, text []byte, opts ...Option) (*Set, error) {
	cfg := newConfig(opts)
	f := readFile(name, text, cfg)
	if f.Doc == nil {
		return nil, Invalid(f.problems...)
	}
	var set *Set
	problems := f.problems
	if !f.isFull() { // else the rest was not read
		var more []*Problem
		set, more = cfg.build()
		problems = append(problems, more...)
	}
	slices.SortStableFunc(problems, byPosition)
	if err := Invalid(firstOf(problems)...); err != nil {
		return nil, err
	}
	set.file = name
	return set, nil
}

// firstOf is as many problems as are reported of a file. The last says how many more
// there are.
func firstOf(problems []*Problem) []*Problem {
	more := len(problems) - (maxProblems - 1)
	if more < 2 {
		return problems
	}
	last := &Problem{Source: problems[maxProblems-1].Source, Message: fmt.Sprintf("and %d more problems: correct those above first", more)}
	return append(problems[:maxProblems-1:maxProblems-1], last)
}

// byPosition orders problems by file, line and column; those without a file first.
func byPosition(a, b *Problem) int {
	s, t := a.Source, b.Source
	return cmp.Or(cmp.Compare(s.File, t.File), cmp.Compare(s.Line, t.Line), cmp.Compare(s.Column, t.Column))
}

//go:embed locks.schema.json
var schema string

// Schema is the JSON Schema (draft 2020-12) of a rule file, for editors. It finds
// most of what [Load] refuses in a single rule, but nothing that depends on other
// rules, on the program, or on the text itself, such as a value that YAML takes for
// a comment.
func Schema() []byte { return []byte(schema) }
