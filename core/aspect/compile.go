package aspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/keyexpr"
)

// Site is the place for which rules are compiled.
type Site struct {
	// Endpoint is the exact endpoint. Rules without one get it.
	Endpoint ruleset.Endpoint

	// Schema says which variables keys and conditions have there.
	Schema *keyexpr.Schema

	// Late are the variables that may take their time, such as the body of a request.
	// What is known without them is decided first: keys of which another part is
	// missing, locks that would be refused at once.
	Late []string

	// Fallbacks are the names of the fallback handlers that the adapter can run
	// there.
	Fallbacks []string

	// AnyFallback says that it is not known which there are, so that none is missing: for a
	// [Preview].
	AnyFallback bool
}

// Point is an endpoint with its compiled rules. It never changes.
type Point struct {
	aspect *Aspect
	site   Site
	rules  []*compiled
	source []*ruleset.Resolved
}

// at gives rules without an endpoint that of the place.
func at(e ruleset.Endpoint, rules []ruleset.Rule) []ruleset.Rule {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].Endpoint.IsZero() {
			rules[i].Endpoint = e
		}
	}
	return rules
}

// Prepare compiles rules that may never come into force. Observers are notified when they do.
func (a *Aspect) Prepare(site Site, rules ...*ruleset.Resolved) (*Point, error) {
	compiled, err := compileAll(&site, rules, roomOf(a.locks))
	if err != nil {
		return nil, err
	}
	return &Point{aspect: a, site: site, source: slices.Clone(rules), rules: compiled}, nil
}

// announce tells observers of the rules of a point that comes into force.
func (p *Point) announce() {
	for _, rule := range p.compiled() {
		p.aspect.observers.observeRule(rule.info())
	}
}

// retract tells observers of the rules of a point that goes out of force and that
// next, which takes its place and may be nil, does not have.
func (p *Point) retract(next *Point) {
	for _, rule := range p.compiled() {
		if next.has(rule.subject) {
			continue
		}
		info := rule.info()
		info.Retracted = true
		p.aspect.observers.observeRule(info)
	}
}

func (p *Point) has(s Subject) bool {
	return slices.ContainsFunc(p.compiled(), func(c *compiled) bool { return c.subject == s })
}

// compiled are the rules of a point, which may be nil.
func (p *Point) compiled() []*compiled {
	if p == nil {
		return nil
	}
	return p.rules
}

// compileAll compiles rules for a site and the keys of a client.
func compileAll(site *Site, rules []*ruleset.Resolved, keys room) ([]*compiled, error) {
	var problems []*ruleset.Problem
	if len(rules) == 0 {
		problems = append(problems, noneGiven(site.Endpoint))
	}
	list := make([]*compiled, len(rules))
	for i, r := range rules {
		c := &compiler{site: site, rule: r, room: keys}
		list[i] = c.compile()
		problems = append(problems, c.problems...)
	}
	if err := ruleset.Invalid(problems...); err != nil {
		return nil, err
	}
	return list, nil
}

func noneGiven(e ruleset.Endpoint) *ruleset.Problem {
	return &ruleset.Problem{Endpoint: e, Message: "no rule to compile: give at least one"}
}

// Rules are the rules of the point, in order. Do not change the result.
func (p *Point) Rules() []*ruleset.Resolved {
	if p == nil {
		return nil
	}
	return p.source
}

// Uses reports whether any key or condition of the point reads the variable, such
// as "body".
func (p *Point) Uses(variable string) bool {
	return slices.ContainsFunc(p.rules, func(c *compiled) bool { return c.uses(variable) })
}

// compiler compiles one rule.
type compiler struct {
	site     *Site
	rule     *ruleset.Resolved
	room     room
	problems []*ruleset.Problem
}

func (c *compiler) reportf(field, format string, args ...any) {
	c.problems = append(c.problems, c.rule.Problem(field, fmt.Sprintf(format, args...)))
}

// reportEach makes a problem of every error that is joined in err.
func (c *compiler) reportEach(field string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.reportEach(field, e)
		}
		return
	}
	if err != nil {
		p := c.rule.Problem(field, strings.TrimPrefix(err.Error(), "keyexpr: "))
		p.Err = err
		c.problems = append(c.problems, p)
	}
}

func (c *compiler) compile() *compiled {
	r := c.rule
	rule := &compiled{
		Resolved: r,
		policy:   r.Policy(),
		subject:  Subject{Rule: r.Name, Endpoint: c.endpoint(), Kind: r.Kind},
	}
	c.checkLabel()
	c.checkFallback()
	c.compileWhen(rule)
	c.compileKeys(rule)
	rule.options = append(rule.leaseOptions(), core.Label(r.Name))
	rule.rehearsal = append(rule.leaseOptions(), core.Label(r.Name+" (dry run)"), core.WaitTime(0))
	rule.wait = r.WaitTime
	switch r.WaitTime {
	case ruleset.WaitForever:
	case ruleset.NoWait:
		rule.wait = 0
		fallthrough
	default:
		rule.options = append(rule.options, core.WaitTime(rule.wait))
	}
	if r.MaxWaiters > 0 {
		rule.options = append(rule.options, core.MaxWaiters(r.MaxWaiters))
	}
	if r.Token {
		rule.options = append(rule.options, core.WithToken())
	}
	if len(c.problems) > 0 {
		return rule
	}
	if len(rule.keys) == 1 {
		rule.fixed.one, rule.isFixed = rule.keys[0].Constant()
	}
	c.compileEarly(rule)
	return rule
}

// endpoint is where the rule is compiled for, which may be more exact than what it
// was declared for.
func (c *compiler) endpoint() ruleset.Endpoint {
	if c.site.Endpoint.IsZero() {
		return c.rule.Endpoint
	}
	return c.site.Endpoint
}

func (c *compiler) checkLabel() {
	if c.rule.Name == "" {
		c.reportf("name", `missing: without an endpoint a rule needs a name: write Name: "pay-order"`)
	}
}

func (c *compiler) checkFallback() {
	name := c.rule.Fallback
	policy := c.rule.Policy()
	if c.site.AnyFallback || !policy.Uses(failpolicy.Fallback) || slices.Contains(c.site.Fallbacks, name) {
		return
	}
	if len(c.site.Fallbacks) == 0 {
		c.reportf("fallback", "no handler %q: none is registered: add one with WithFallback(%q, …)", name, name)
		return
	}
	known := slices.Sorted(slices.Values(c.site.Fallbacks))
	c.reportf("fallback", "%v, or register it with WithFallback(%q, …)", &failpolicy.UnknownWordError{
		What: "handler", Word: name, Known: known, Suggestion: failpolicy.Nearest(name, known),
	}, name)
}

func (c *compiler) compileWhen(rule *compiled) {
	if c.rule.When == "" {
		return
	}
	when, err := keyexpr.CompileCondition(c.rule.When, c.schema())
	c.reportEach("when", err)
	rule.when = when
}

func (c *compiler) compileKeys(rule *compiled) {
	if !c.checkPrefix() {
		return
	}
	format := keyexpr.Format{Prefix: c.rule.Prefix, Strict: c.rule.KeyFormat == ruleset.Strict}
	if len(c.rule.Templates()) == 0 {
		c.reportf("key", "missing: write a template such as %q", "order:pay:#{path.id}")
	}
	for i, template := range c.rule.Templates() {
		field := "key"
		if c.rule.Key == "" {
			field = fmt.Sprintf("keys[%d]", i)
		}
		key, err := format.Compile(template, c.schema())
		c.reportEach(field, err)
		c.checkRoom(field, key)
		c.checkOneKey(field, key)
		rule.keys = append(rule.keys, key)
	}
}

// schema is the site's, or one without variables.
func (c *compiler) schema() *keyexpr.Schema {
	if c.site.Schema != nil {
		return c.site.Schema
	}
	empty, err := keyexpr.NewSchema()
	c.reportEach("key", err)
	return empty
}
