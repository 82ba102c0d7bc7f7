package aspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Point is an endpoint with its compiled rules. It is immutable.
type Point struct {
	env    *environment
	site   Site
	rules  []*compiledRule
	source []*ruleset.Resolved
}

// prepare compiles rules for a site; see [Aspect.Prepare].
func (e *environment) prepare(site Site, rules []*ruleset.Resolved) (*Point, error) {
	compiled, err := compileAll(&site, rules, roomOf(e.locks))
	if err != nil {
		return nil, err
	}
	return &Point{env: e, site: site, source: slices.Clone(rules), rules: compiled}, nil
}

// Rules returns the rules of the point, in order. Do not change the result.
func (p *Point) Rules() []*ruleset.Resolved {
	if p == nil {
		return nil
	}
	return p.source
}

// Uses reports whether any key or condition of the point reads the variable, such as "body".
func (p *Point) Uses(variable string) bool {
	return slices.ContainsFunc(p.rules, func(c *compiledRule) bool { return c.uses(variable) })
}

// compiledRules returns the compiled rules of a point, which may be nil.
func (p *Point) compiledRules() []*compiledRule {
	if p == nil {
		return nil
	}
	return p.rules
}

// announce notifies observers that the rules of p are in force.
func (p *Point) announce() {
	for _, rule := range p.compiledRules() {
		p.env.observers.observeRule(rule.info())
	}
}

// retract notifies observers that the rules of p are no longer in force. It leaves out rules that next, the successor of p,
// also contains. next may be nil.
func (p *Point) retract(next *Point) {
	for _, rule := range p.compiledRules() {
		if slices.ContainsFunc(next.compiledRules(), func(c *compiledRule) bool { return c.subject == rule.subject }) {
			continue
		}
		info := rule.info()
		info.Retracted = true
		p.env.observers.observeRule(info)
	}
}

// oddities returns a warning for each rule of p that most likely does not do what its author means.
func (p *Point) oddities() []*ruleset.Problem { return oddities(p.compiledRules()) }

// Twice returns an error if a and b contain rules of the same name, because metrics could not distinguish them. a and b are
// points of one endpoint from different sources, such as a rule file and the program.
func Twice(a, b *Point) error {
	for _, r := range a.Rules() {
		for _, o := range b.Rules() {
			if r.Name == o.Name {
				return ruleset.Invalid(r.Problem("", fmt.Sprintf("a rule %q is there twice: remove one, or give them names that differ; "+
					"a rule file changes rules in Go that are given to ruleset.WithRules", r.Name)))
			}
		}
	}
	return nil
}

// Preview holds the compiled rules of a site for tools. It takes no locks. It is immutable.
type Preview struct {
	rules []*compiledRule
}

// NewPreview compiles rules like an adapter. The error is a [*ruleset.InvalidError] with every problem of every
// rule.
func NewPreview(site Site, rules ...*ruleset.Resolved) (*Preview, error) {
	compiled, err := compileAll(&site, rules, room{})
	if err != nil {
		return nil, err
	}
	return &Preview{rules: compiled}, nil
}

// Applies reports whether a call meets the condition of the i-th rule.
func (p *Preview) Applies(i int, env keyexpr.Env) (bool, error) {
	if p.rules[i].when == nil {
		return true, nil
	}
	return p.rules[i].when.Eval(env)
}

// Names returns the names of the locks that the i-th rule takes for a call. They include the prefix of the rule, but
// not the prefix of the client.
func (p *Preview) Names(i int, env keyexpr.Env) ([]string, error) { return p.rules[i].manyNames(env) }

// Oddities returns a warning for each rule that most likely does not do what its author means. If a key contains no part of
// the request but its method or route, all requests of the endpoint share one lock. If a function waits before it is skipped, it runs in every
// instance. Oddities does not warn of semaphores, disabled rules and constant keys of functions, which are usually
// intended.
func (p *Preview) Oddities() []*ruleset.Problem { return oddities(p.rules) }

func oddities(rules []*compiledRule) (warnings []*ruleset.Problem) {
	for _, c := range rules {
		e := c.subject.Endpoint
		isFunc := e.Transport == ruleset.TransportFunc
		switch {
		case c.Disabled || c.Kind == ruleset.Semaphore:
		case isFunc && c.OnBusy == failpolicy.Skip && c.wait != 0:
			warnings = append(warnings, c.Problem("on_busy", fmt.Sprintf("the function runs in every instance, one after the other, "+
				"because a call is skipped only after its wait: set %s to none (ruleset.NoWait), unless that is meant", c.Spelled("wait_time", "wait_time"))))
		case c.sharedByAll() && !isFunc:
			field, key := "key", c.keys[0].String()
			if c.Key == "" {
				field = "keys"
			}
			if c.isFixed {
				key = c.fixed.one
			}
			warnings = append(warnings, c.Problem(field, fmt.Sprintf("%q is one lock for all requests of the endpoint: "+
				"put a part such as #{%s} into it, unless that is meant", key, examplePart(e))))
		}
	}
	return warnings
}

// sharedByAll reports whether the only key of the rule reads nothing of a request but the name of its endpoint. A wildcard
// that reads it has one lock for each endpoint, which is meant; but the method of HTTP does not tell paths apart.
func (c *compiledRule) sharedByAll() bool {
	isWild := strings.HasSuffix(c.Endpoint.Path, "*")
	return len(c.keys) == 1 && !slices.ContainsFunc(c.keys[0].Variables(), func(variable string) bool {
		switch variable {
		case "method":
			return isWild && c.Endpoint.Transport == ruleset.TransportGRPC
		case "route":
			return isWild
		default:
			return true
		}
	})
}

// examplePart returns the part of a request that most likely distinguishes requests of an endpoint.
func examplePart(e ruleset.Endpoint) string {
	if e.Transport == ruleset.TransportGRPC {
		return "req.order_id"
	}
	for segment := range strings.SplitSeq(e.Path, "/") {
		if name, is := strings.CutPrefix(segment, ":"); is {
			return "path." + name
		}
	}
	return "body.id"
}
