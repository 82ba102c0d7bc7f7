package aspect

import "github.com/interlock-go/interlock/core/ruleset"

func (a *Aspect) Compile(site Site, rules ...ruleset.Rule) (*Point, error) {
	return a.compileRules(site, rules...)
}

func (a *Aspect) CompileResolved(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	return a.compileResolved(site, rules...)
}

func (p *Point) Endpoint() ruleset.Endpoint { return p.site.Endpoint }

func (p *Point) Oddities() []*ruleset.Problem { return p.oddities() }

func (r *Report) Err() error { return r.err() }
