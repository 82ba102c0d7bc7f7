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

// Site describes the endpoint for which rules are compiled.
type Site struct {
	// Endpoint is the exact endpoint. Rules without an endpoint get it.
	Endpoint ruleset.Endpoint

	// Schema declares the variables that keys and conditions can use.
	Schema *keyexpr.Schema

	// Late names the variables that may arrive late, such as the body of a request. Before a run reads them, it refuses
	// the call if a key lacks another value or the lock would be refused at once.
	Late []string

	// Fallbacks names the fallback handlers that the adapter can run.
	Fallbacks []string

	// AnyFallback allows any fallback name, because the registered names are unknown. A [Preview] needs it.
	AnyFallback bool
}

// room describes how long the names of locks may be, given the key limit of a client.
type room struct {
	added   int    // bytes that the client's prefix or name mapper adds
	option  string // the option that adds them
	longest int    // the longest name; 0 if the client is not known
}

func roomOf(locks *core.Client) room {
	longest := locks.ForAdapters().MaxNameLength()
	r := room{added: locks.ForAdapters().MaxKeyLength() - longest, option: "core.WithPrefix", longest: longest}
	if r.added > len(locks.Prefix()) {
		r.option = "core.WithNameMapper"
	}
	return r
}

// compileAll compiles rules for a site. keys limits the names of their locks. The error contains every problem.
func compileAll(site *Site, rules []*ruleset.Resolved, keys room) ([]*compiledRule, error) {
	var problems []*ruleset.Problem
	if len(rules) == 0 {
		problems = append(problems, noRules(site.Endpoint))
	}
	list := make([]*compiledRule, len(rules))
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

func noRules(e ruleset.Endpoint) *ruleset.Problem {
	return &ruleset.Problem{Endpoint: e, Message: "no rule to compile: give at least one"}
}

// compiler compiles one rule.
type compiler struct {
	site     *Site
	rule     *ruleset.Resolved
	room     room
	problems []*ruleset.Problem
}

func (c *compiler) compile() *compiledRule {
	r := c.rule
	rule := &compiledRule{Resolved: r, policy: r.Policy(), wait: r.WaitTime}
	rule.subject = Subject{Rule: r.Name, Endpoint: r.Endpoint, Kind: r.Kind}
	if !c.site.Endpoint.IsZero() { // more exact than a rule with a wildcard
		rule.subject.Endpoint = c.site.Endpoint
	}
	if r.WaitTime == ruleset.NoWait {
		rule.wait = 0
	}
	if r.Name == "" {
		c.reportf("name", `missing: without an endpoint a rule needs a name: write Name: "pay-order"`)
	}
	c.checkFallback()
	rule.when = c.compileWhen()
	rule.keys = c.compileKeys()
	if len(c.problems) > 0 {
		return rule
	}
	if len(rule.keys) == 1 {
		rule.fixed.one, rule.isFixed = rule.keys[0].Constant()
	}
	c.addOptions(rule)
	rule.late = slices.ContainsFunc(c.site.Late, func(variable string) bool {
		return slices.ContainsFunc(rule.keys, func(key *keyexpr.Template) bool { return key.Uses(variable) })
	})
	return rule
}

// addOptions sets the options with which the rule acquires its locks.
func (c *compiler) addOptions(rule *compiledRule) {
	r := c.rule
	rule.rehearsal = []core.AcquireOption{core.Label(r.Name + " (dry run)"), core.WaitTime(0)}
	rule.options = []core.AcquireOption{core.Label(r.Name)}
	if !rule.watchdog() {
		rule.rehearsal = append(rule.rehearsal, core.LeaseTime(r.LeaseTime))
		rule.options = append(rule.options, core.LeaseTime(r.LeaseTime))
	} else if r.MaxHold > 0 {
		rule.options = append(rule.options, core.MaxHold(r.MaxHold))
	}
	if r.WaitTime != ruleset.WaitForever {
		rule.options = append(rule.options, core.WaitTime(rule.wait))
	}
	if r.MaxWaiters > 0 {
		rule.options = append(rule.options, core.MaxWaiters(r.MaxWaiters))
	}
	if r.Token {
		rule.options = append(rule.options, core.WithToken())
	}
	rule.anyLock = rule.options
	if len(rule.keys) != 1 || rule.keys[0].IsList() { // the first attempt at several locks does not wait
		rule.anyLock = []core.AcquireOption{core.WaitTime(0)}
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

func (c *compiler) compileWhen() *keyexpr.Condition {
	if c.rule.When == "" {
		return nil
	}
	when, err := keyexpr.CompileCondition(c.rule.When, c.schema())
	c.reportEach("when", err)
	return when
}

func (c *compiler) compileKeys() (keys []*keyexpr.Template) {
	if n := len(c.rule.Prefix); n > keyexpr.MaxPrefixLength { // little more than a hash of each key would fit after it
		c.reportf("prefix", `has %d bytes: write one of at most %d, such as "shop:"`, n, keyexpr.MaxPrefixLength)
		return nil
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
		if key != nil {
			c.checkRoom(field, key)
			c.checkOneKey(field, key)
		}
		keys = append(keys, key)
	}
	return keys
}

// checkRoom reports a key that may exceed the key limit of the client. A key that depends on the call can have up to
// keyexpr.DefaultMaxLength bytes; longer keys are shortened to that length. They must not be shortened further, because
// one value would then have two names in two programs. A dry run adds its suffix.
func (c *compiler) checkRoom(field string, key *keyexpr.Template) {
	if c.room.longest == 0 {
		return
	}
	length := keyexpr.DefaultMaxLength
	if constant, ok := key.Constant(); ok {
		length = len(constant)
	}
	length += len(ShadowSuffix)
	if length <= c.room.longest {
		return
	}
	c.reportf(field, "may have %d bytes with the suffix %q of a dry run, and the lock client has room for %d besides the bytes that its %s adds: "+
		"write core.WithMaxKeyLength(%d) or more, or let it add less", length, ShadowSuffix, c.room.longest, c.room.option, c.room.added+length)
}

// checkOneKey reports a template that yields several keys although the rule can have only one. The type of the template
// determines whether it yields several.
func (c *compiler) checkOneKey(field string, key *keyexpr.Template) {
	kind := c.rule.Kind.Traits()
	switch {
	case !key.IsList():
	case !kind.Several:
		reentrant := c.rule.Spelled("kind", "kind") + ": " + c.rule.Spelled("kind", string(ruleset.Reentrant))
		c.reportf(field, "yields a list of keys, and a %s has one: write an expression for a single value, or %s", kind.Noun, reentrant)
	case c.rule.Token:
		c.reportf(field, "yields a list of keys, and a token belongs to one: write an expression for a single value, or remove %s", c.rule.Spelled("token", "token"))
	}
}

// schema returns the schema of the site, or a schema without variables.
func (c *compiler) schema() *keyexpr.Schema {
	if c.site.Schema != nil {
		return c.site.Schema
	}
	empty, err := keyexpr.NewSchema()
	c.reportEach("key", err)
	return empty
}

func (c *compiler) reportf(field, format string, args ...any) {
	c.problems = append(c.problems, c.rule.Problem(field, fmt.Sprintf(format, args...)))
}

// reportEach reports every error that is joined in err as a problem.
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
