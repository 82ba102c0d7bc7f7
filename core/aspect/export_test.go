package aspect

import "github.com/interlock-go/interlock/core/ruleset"

// Compile compiles rules for site with a new registry, and notifies observers of them.
func (a *Aspect) Compile(site Site, rules ...ruleset.Rule) (*Point, error) {
	r := NewRegistry(a, Adapter[string, struct{}]{
		Endpoint: func(string) ruleset.Endpoint { return site.Endpoint },
		Compile: func(_ *ruleset.Set, _ string, rules []*ruleset.Resolved) (*Point, struct{}, error) {
			p, err := a.Prepare(site, rules...)
			return p, struct{}{}, err
		},
	})
	e := r.Compile("", rules...)
	e.announce()
	return e.Point, e.Err
}

// CompileResolved is like Compile, but takes rules of a [ruleset.Set] and does not resolve them.
func (a *Aspect) CompileResolved(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	p, err := a.Prepare(site, rules...)
	p.announce()
	return p, err
}

// Endpoint returns the endpoint whose rules p contains.
func (p *Point) Endpoint() ruleset.Endpoint { return p.site.Endpoint }

// Oddities exports oddities.
func (p *Point) Oddities() []*ruleset.Problem { return p.oddities() }

// Err exports err.
func (r *Report) Err() error { return r.err() }

// Len returns the number of names that the table of g contains.
func (g *MessageGuard[M]) Len() int { return g.table.Len() }
