package aspect

import (
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// Preview is the compiled rules of a place without locks: what tools ask. It never
// changes.
type Preview struct {
	rules []*compiled
}

// NewPreview compiles rules as an adapter does. The error is a
// [*ruleset.InvalidError] with every problem of every rule.
func NewPreview(site Site, rules ...*ruleset.Resolved) (*Preview, error) {
	compiled, err := compileAll(&site, rules, room{})
	if err != nil {
		return nil, err
	}
	return &Preview{rules: compiled}, nil
}

// Applies tells whether the condition of the i-th rule is met in a call.
func (p *Preview) Applies(i int, env keyexpr.Env) (bool, error) {
	if p.rules[i].when == nil {
		return true, nil
	}
	return p.rules[i].when.Eval(env)
}

// Names are the names of the locks that the i-th rule takes in a call, its prefix
// included, the client's not.
func (p *Preview) Names(i int, env keyexpr.Env) ([]string, error) { return p.rules[i].manyNames(env) }
