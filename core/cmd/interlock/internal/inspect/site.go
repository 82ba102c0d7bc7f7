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

// site is an endpoint with its rules, and the variables that they have there.
type site struct {
	endpoint  ruleset.Endpoint
	rules     []*ruleset.Resolved
	schema    func(more assumed) (*keyexpr.Schema, error)
	fallbacks []string // that the program has, where they are known

	open     bool // what the program registers is not known: any name may be that
	anyParam bool // which path parameters there are is not known
	routed   bool // fallbacks are known
}

// compile compiles the rules; nil if that fails. What fails is reported.
func (s *site) compile(found *findings) *aspect.Preview {
	var more assumed
	preview, err := s.preview(more)
	for more.add(s, err) { // one name may hide the next
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

func (s *site) preview(more assumed) (*aspect.Preview, error) {
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
		advised.Message += s.registering(p)
		found.Add(s.endpoint, &advised)
	}
}

// registering says how a name becomes one of a program whose routes are known: there
// all its variables are.
func (s *site) registering(p *ruleset.Problem) string {
	e, ok := errors.AsType[*keyexpr.Error](p)
	if s.endpoint.Transport != ruleset.TransportHTTP || s.open || !ok || e.Unknown == "" || e.Of != "" {
		return ""
	}
	return fmt.Sprintf("\n  if it is a variable of the program: register it, WithVariable(%q, …) of ginlock, and write the routes file again (WriteRoutes)", e.Unknown)
}

// whoTells says how to find out whether the program has a variable.
func (s *site) whoTells() string {
	if s.endpoint.Transport == ruleset.TransportHTTP {
		return " (--routes tells whether it does)"
	}
	return ""
}

// keyField is the field in which a rule has its first template.
func keyField(r *ruleset.Resolved) string {
	if r.Key == "" {
		return "keys"
	}
	return "key"
}

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
