package ruleset

import (
	"errors"
	"fmt"
	"slices"
)

// checker collects the problems of one rule.
type checker struct {
	rule     *Resolved
	declared []Declared // the declarations of the rule, lowest layer first
	problems []*Problem
}

// reportf reports a problem with a field, unless the field could not be read.
func (c *checker) reportf(field, format string, args ...any) {
	if base, _ := cutField(field); c.rule.broken.hasAny(base) {
		return
	}
	c.problems = append(c.problems, c.rule.Problem(field, fmt.Sprintf(format, args...)))
}

// check checks a whole rule. The values of defaults and profiles are checked where they are declared. Here
// only their combinations matter.
func (c *checker) check(requireEndpoint bool) {
	c.checkEndpoint(requireEndpoint)
	if c.rule.None {
		c.checkNone()
		return
	}
	for _, f := range ruleFields {
		if c.rule.declared(f.name) {
			c.checkField(f)
		}
	}
	c.checkKeys()
	if c.rule.partial {
		return // the combinations depend on the lower layers
	}
	checkTogether(c.rule, c.reportf)
}

// checkShared checks values for many rules: defaults or a profile.
func (c *checker) checkShared(d *Declared) {
	for _, f := range ruleFields {
		switch {
		case !d.sets(f):
		case f.single:
			c.problems = append(c.problems, &Problem{
				Field: f.name, Source: c.rule.Source(f.name),
				Message: "belongs to a single rule: remove it here",
			})
		default:
			c.checkField(f)
		}
	}
}

func (c *checker) checkField(f *field[Rule]) {
	for _, message := range f.check(c.rule.placeOf(f.name), &c.rule.Rule) {
		c.reportf(f.name, "%s", message)
	}
}

func (c *checker) checkEndpoint(required bool) {
	e, inFile := c.rule.Endpoint, c.rule.origin.inFile()
	switch {
	case !e.IsZero():
		if message := e.problem(inFile); message != "" {
			c.reportf("endpoint", "%s", message)
		}
	case required && inFile:
		c.reportf("endpoint", "%s", endpointMissing)
	case required:
		c.reportf("endpoint", `missing: write HTTP("POST /orders/:id/pay"), GRPC("/shop.Orders/Pay") or Func("close-day")`)
	}
}

func (c *checker) checkKeys() {
	r, at := c.rule, c.rule.placeOf("keys")
	switch {
	case r.declared("key") && r.declared("keys"):
		c.reportf("keys", "both %s and %s are set: put every template into %s", at.spell("key"), at.spell("keys"), at.spell("keys"))
	case r.declared("keys"):
		c.checkTemplates()
	case r.declared("key"):
		if isBlank(r.Key) {
			c.reportf("key", "blank: write a template such as %q", r.Endpoint.examples().key)
		}
	case !r.partial && !r.broken.hasAny("key", "keys", "none"):
		p := r.Problem("key", fmt.Sprintf("missing: write a template such as %s%s", quote(r.Endpoint.examples().key), c.otherKey()))
		p.Err = errKeyMissing
		c.problems = append(c.problems, p)
	}
}

// errKeyMissing is the Err of the problem that a rule has no key.
var errKeyMissing = errors.New("ruleset: a rule has no key")

// otherKey returns advice for an entry of a file whose key is probably in a rule in Go that the set does not
// contain.
func (c *checker) otherKey() string {
	if c.rule.origin.Layer != LayerYAML || c.rule.Endpoint.Transport != TransportHTTP || len(c.declared) > 1 {
		return ""
	}
	return ", or give the rule that is written in Go to ruleset.WithRules"
}

func (c *checker) checkTemplates() {
	keys := c.rule.Keys
	if len(keys) == 0 || len(keys) > maxTemplates {
		c.reportf("keys", templateCount, len(keys), maxTemplates)
		return
	}
	for i, key := range keys {
		if isBlank(key) {
			c.reportf(fmt.Sprintf("keys[%d]", i), "blank: write a template such as %q", c.rule.Endpoint.examples().keys)
		} else if first := slices.Index(keys, key); first < i {
			c.reportf(fmt.Sprintf("keys[%d]", i), "the same as %s[%d]: remove one", c.rule.placeOf("keys").spell("keys"), first)
		}
	}
}

// checkNone reports the fields that a rule without a lock cannot have. If a lower layer declares the rule,
// checkNone reports only that.
func (c *checker) checkNone() {
	none := c.rule.Source("none").Layer
	for _, d := range slices.Backward(c.declared) {
		if d.Source.Layer < none && !d.Rule.None {
			c.reportf("none", "the rule is declared in %s, and none means that the endpoint has no rule: write disabled: true to switch it off", d.Source.where())
			return
		}
	}
	for _, field := range Fields() {
		switch {
		case field == "endpoint" || field == "name" && c.rule.Source("name").Layer > none || field == "none" || !c.rule.declared(field):
		case c.rule.Source(field).Layer > none:
			c.reportf(field, "%s says that the endpoint needs no lock: write %s, too, to lock it after all", c.rule.Source("none").where(), c.rule.placeOf(field).example("none", "false"))
			return
		default:
			c.reportf(field, "given together with %s, which says that the endpoint needs no lock: remove one of them", c.rule.placeOf("none").spell("none"))
		}
	}
}
