package inspect

import (
	"errors"
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// assumed are names in keys and conditions that nothing has which is known, and the
// program may have.
type assumed struct {
	variables []string
	params    []string // of the path
	notes     []*ruleset.Problem
}

// add assumes what would solve the problems of an error, and reports whether there was
// anything.
func (a *assumed) add(s *site, err error) bool {
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || !s.open {
		return false
	}
	before := len(a.notes)
	for _, p := range invalid.Problems {
		e, ok := errors.AsType[*keyexpr.Error](p)
		switch {
		case !ok || e.Unknown == "":
		case e.Of == "path" && s.anyParam:
			a.params = with(a.params, e.Unknown)
			a.note(p, "whether the routes below have the path parameter "+e.Unknown+" (--routes tells)")
		case e.Of == "" && e.Suggestion == "" && canBeVariable(e.Unknown):
			a.variables = with(a.variables, e.Unknown)
			a.note(p, "the variable "+e.Unknown+", which the program has to register"+s.whoTells())
		}
	}
	return len(a.notes) > before
}

func (a *assumed) note(p *ruleset.Problem, what string) {
	note := *p
	note.Message, note.Err = "not judged: "+what, nil
	a.notes = append(a.notes, &note)
}

func canBeVariable(name string) bool {
	_, err := keyexpr.NewSchema(keyexpr.Variable{Name: name, Type: keyexpr.AnyType()})
	return err == nil
}

// with is a list with a name, once.
func with(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
