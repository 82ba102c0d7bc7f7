package aspect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Report collects the errors and warnings about the rules of a program, each once. The zero value is empty.
type Report struct {
	errors, warnings collector
}

// Add adds every problem of an endpoint that is joined in err. A nil err adds nothing.
func (r *Report) Add(e ruleset.Endpoint, err error) { r.errors.addError(e, err) }

// Warn adds a warning about an endpoint.
func (r *Report) Warn(e ruleset.Endpoint, p *ruleset.Problem) { r.warnings.add(e, p) }

// addAs adds problems with the severity of a setting.
func (r *Report) addAs(s ruleset.Severity, problems ...*ruleset.Problem) {
	for _, p := range problems {
		switch s {
		case ruleset.SeverityIgnore:
		case ruleset.SeverityWarn:
			r.warnings.add(p.Endpoint, p)
		default:
			r.errors.add(p.Endpoint, p)
		}
	}
}

// err returns a [*ruleset.InvalidError] with the errors, nil if there are none.
func (r *Report) err() error { return ruleset.Invalid(r.errors.problems()...) }

// Errors returns the errors. Errors in files come after the others, by file and line. A problem of a rule with a
// wildcard names an endpoint that has the problem.
func (r *Report) Errors() []*ruleset.Problem { return r.errors.problems() }

// Warnings returns the warnings in the same order.
func (r *Report) Warnings() []*ruleset.Problem { return r.warnings.problems() }

// collector collects problems, each once, with the endpoints that have it. A rule with a wildcard may have a problem at
// many endpoints.
type collector struct {
	order []*finding
	seen  map[string]*finding
}

// finding is one problem with the endpoints that have it.
type finding struct {
	problem   *ruleset.Problem
	endpoints []ruleset.Endpoint
}

func (c *collector) add(e ruleset.Endpoint, p *ruleset.Problem) {
	text := p.Error()
	known := c.seen[text]
	if known == nil {
		known = &finding{problem: p}
		if c.seen == nil {
			c.seen = map[string]*finding{}
		}
		c.seen[text] = known
		c.order = append(c.order, known)
	}
	if !slices.Contains(known.endpoints, e) {
		known.endpoints = append(known.endpoints, e)
	}
}

// addError adds every problem that is joined in err. An error that is not a problem becomes a problem of the
// endpoint.
func (c *collector) addError(e ruleset.Endpoint, err error) {
	switch err := err.(type) { //nolint:errorlint // an error that wraps a problem says more than the problem
	case nil:
	case *ruleset.Problem:
		c.add(e, err)
	case interface{ Unwrap() []error }:
		for _, each := range err.Unwrap() {
			c.addError(e, each)
		}
	default:
		c.add(e, &ruleset.Problem{Endpoint: e, Message: err.Error()})
	}
}

// addExpressions adds only those problems in err that concern keys and conditions. It drops the rest, because they may
// follow from problems that the rules already have. It also skips a key or condition for which c contains a problem.
func (c *collector) addExpressions(e ruleset.Endpoint, err error) {
	var more collector
	more.addError(e, err)
	known := c.raw()
	for _, p := range more.raw() {
		_, isExpression := errors.AsType[*keyexpr.Error](p)
		if isExpression && !slices.ContainsFunc(known, func(k *ruleset.Problem) bool {
			return k.Rule == p.Rule && k.Endpoint == p.Endpoint && k.Field == p.Field
		}) {
			c.add(e, p)
		}
	}
}

// raw returns the problems in the order in which they were added.
func (c *collector) raw() []*ruleset.Problem {
	list := make([]*ruleset.Problem, len(c.order))
	for i, known := range c.order {
		list[i] = known.problem
	}
	return list
}

// problems returns the problems. A problem of a rule for several endpoints names one of them. Problems in Go come
// first, then problems in files, by file and line.
func (c *collector) problems() []*ruleset.Problem {
	list := make([]*ruleset.Problem, len(c.order))
	for i, known := range c.order {
		list[i] = known.withEndpoints()
	}
	slices.SortStableFunc(list, func(a, b *ruleset.Problem) int {
		x, y := a.Source, b.Source
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return list
}

// withEndpoints returns the problem with one of the endpoints that have it and the number of the others, unless the problem
// already names that endpoint.
func (f *finding) withEndpoints() *ruleset.Problem {
	at := f.endpoints[0]
	if at == f.problem.Endpoint || at.IsZero() || strings.Contains(f.problem.Message, at.Label()) {
		return f.problem
	}
	where := at.Label()
	if more := len(f.endpoints) - 1; more > 0 {
		where = fmt.Sprintf("%s and %d more", where, more)
	}
	p := *f.problem
	p.Message = where + ": " + p.Message
	return &p
}

// addRekeyed adds an error for each rule that would take a new lock in place of an old one: see
// [ruleset.CompareLocksAt].
func (r *Report) addRekeyed(e ruleset.Endpoint, old, next []*ruleset.Resolved) {
	refused, _ := ruleset.CompareLocksAt(e, old, next)
	for _, p := range refused {
		r.Add(e, p)
	}
}
