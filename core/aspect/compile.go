package aspect

import (
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Site is the place for which rules are compiled.
type Site struct {
	// Endpoint is the exact endpoint. Rules without one get it.
	Endpoint ruleset.Endpoint

	// Schema says which variables keys and conditions have there.
	Schema *keyexpr.Schema

	// Fallbacks are the names of the fallback handlers that the adapter can run
	// there.
	Fallbacks []string
}

// Point is an endpoint with its compiled rules.
type Point struct {
	aspect *Aspect
	site   Site
}

// Compile resolves and compiles rules for one place. The order of the rules is the
// order in which their locks are taken. The error is a [*ruleset.InvalidError]
// with every problem of every rule.
func (a *Aspect) Compile(site Site, rules ...ruleset.Rule) (*Point, error) {
	panic("unbuilt")
}

// CompileResolved is Compile for rules of a [ruleset.Set].
func (a *Aspect) CompileResolved(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	panic("unbuilt")
}

// Rules are the rules of the point, in order. Do not change the result.
func (p *Point) Rules() []*ruleset.Resolved { panic("unbuilt") }

// Endpoint is the endpoint of the point.
func (p *Point) Endpoint() ruleset.Endpoint { return p.site.Endpoint }
