package aspect

import "github.com/interlock-go/interlock/core/ruleset"

// Compile compiles rules for a site and puts them into force.
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

// CompileResolved does the same as Compile for rules of a [ruleset.Set].
func (a *Aspect) CompileResolved(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	p, err := a.Prepare(site, rules...)
	p.announce()
	return p, err
}

func (p *Point) Endpoint() ruleset.Endpoint { return p.site.Endpoint }

func (p *Point) Oddities() []*ruleset.Problem { return p.oddities() }

func (r *Report) Err() error { return r.err() }
