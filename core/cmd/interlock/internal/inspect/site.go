package inspect

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/cmd/interlock/internal/report"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// site is an endpoint with its rules and the schema of their expressions.
type site struct {
	endpoint  ruleset.Endpoint
	rules     []*ruleset.Resolved
	schema    func(more unknownNames) (*keyexpr.Schema, error)
	fallbacks []string // the fallbacks of the program, if routed

	anyVariable bool // the variables of the program are not known, so any name may be one
	anyParam    bool // the path parameters are not known
	routed      bool // the fallbacks of the program are known
}

// compile compiles the rules. If they do not compile, it adds their problems to found and returns nil. A name that the
// program may define is not a problem; compile adds a note about it.
func (s *site) compile(found *findings) *aspect.Preview {
	var more unknownNames
	preview, err := s.preview(more)
	for more.add(s, err) { // one unknown name may hide the next
		preview, err = s.preview(more)
	}
	if err != nil {
		s.report(err, found)
		return nil
	}
	for _, note := range more.notes {
		found.add(report.Note, note)
	}
	return preview
}

func (s *site) preview(more unknownNames) (*aspect.Preview, error) {
	schema, err := s.schema(more)
	if err != nil {
		return nil, err
	}
	return aspect.NewPreview(aspect.Site{Endpoint: s.endpoint, Schema: schema, Fallbacks: s.fallbacks, AnyFallback: !s.routed}, s.rules...)
}

func (s *site) report(err error, found *findings) {
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok {
		found.add(report.Error, s.rules[0].Problem("", err.Error()))
		return
	}
	for _, p := range invalid.Problems {
		advised := *p
		advised.Message += s.registerHint(p)
		found.Add(s.endpoint, &advised)
	}
}

// registerHint returns the advice to register the unknown variable that p is about. It returns "" unless the routes file is
// known, because that file contains all variables of the program.
func (s *site) registerHint(p *ruleset.Problem) string {
	e, ok := errors.AsType[*keyexpr.Error](p)
	if s.endpoint.Transport != ruleset.TransportHTTP || s.anyVariable || !ok || e.Unknown == "" || e.Of != "" {
		return ""
	}
	return fmt.Sprintf("\n  if it is a variable of the program: register it, WithVariable(%q, …) of ginlock, and write the routes file again (WriteRoutes)", e.Unknown)
}

// flagHint returns a hint with the flag for checking the variables of the program. gRPC has no such flag.
func (s *site) flagHint() string {
	if s.endpoint.Transport == ruleset.TransportHTTP {
		return " (pass --routes)"
	}
	return ""
}

// keyField returns the name of the field that contains the first key template of r.
func keyField(r *ruleset.Resolved) string {
	if r.Key == "" {
		return "keys"
	}
	return "key"
}

// unknownNames holds the unknown names in keys and conditions. The program may define them.
type unknownNames struct {
	variables []string
	params    []string // the path parameters
	notes     []*ruleset.Problem
}

// add adds the unknown names in err that the program may define. It returns false if err contains none.
func (a *unknownNames) add(s *site, err error) bool {
	invalid, ok := errors.AsType[*ruleset.InvalidError](err)
	if !ok || !s.anyVariable {
		return false
	}
	before := len(a.notes)
	for _, p := range invalid.Problems {
		e, ok := errors.AsType[*keyexpr.Error](p)
		switch {
		case !ok || e.Unknown == "":
		case e.Of == "path" && s.anyParam:
			a.params = withName(a.params, e.Unknown)
			a.note(p, "whether the routes below have the path parameter "+e.Unknown+" (pass --routes)")
		case e.Of == "" && e.Suggestion == "" && canBeVariable(e.Unknown):
			a.variables = withName(a.variables, e.Unknown)
			a.note(p, "the variable "+e.Unknown+", which the program has to register"+s.flagHint())
		}
	}
	return len(a.notes) > before
}

// note adds a note about p. what names the thing that was not checked.
func (a *unknownNames) note(p *ruleset.Problem, what string) {
	note := *p
	note.Message, note.Err = "not checked: "+what, nil
	a.notes = append(a.notes, &note)
}

func canBeVariable(name string) bool {
	_, err := keyexpr.NewSchema(keyexpr.Variable{Name: name, Type: keyexpr.AnyType()})
	return err == nil
}

// withName returns names with name added, unless names already contains it.
func withName(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
