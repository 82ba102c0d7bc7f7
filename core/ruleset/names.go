package ruleset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// nameChecker reports rules of one endpoint that have no names to distinguish them. If the missing name
// explains a missing key, it removes the problem of the missing key.
type nameChecker struct {
	problems []*Problem // the problems of all rules so far
}

// check checks one rule. all are the rules of its endpoint, with the lowest layer first.
func (c *nameChecker) check(rule *Resolved, all []*Resolved) {
	switch {
	case len(all) < 2 || rule.broken.hasAny("endpoint", "name"):
	case rule.None:
		c.problems = append(c.problems, rule.Problem("none", adviseNone(rule, all)))
	case !rule.declared("name"):
		c.reportNameless(rule, all)
	}
}

// adviseNone returns the advice for a rule with None on an endpoint with other rules.
func adviseNone(rule *Resolved, all []*Resolved) string {
	lower := all[0]
	if lower.origin.Layer >= rule.origin.Layer {
		return fmt.Sprintf("%d rules on one endpoint, and this one says that it needs none: remove it, or the others", len(all))
	}
	message := fmt.Sprintf("the rule %q is declared in %s, and none means that the endpoint has no rule: write name: %q and disabled: true to switch it off",
		lower.Name, lower.origin.where(), lower.Name)
	if len(all) > 2 {
		message += ", and the same for the other rules"
	}
	return message
}

// reportNameless reports a rule without a name on an endpoint with other rules. A named rule of a higher layer was
// most likely meant to change this one, and may lack a key for that reason.
func (c *nameChecker) reportNameless(rule *Resolved, all []*Resolved) {
	named := slices.DeleteFunc(slices.Clone(all), func(n *Resolved) bool { return !n.declared("name") || n.broken.hasAny("name") })
	lower := slices.DeleteFunc(slices.Clone(named), func(n *Resolved) bool { return n.lowest >= rule.origin.Layer })
	if len(lower) > 0 {
		c.reportNamelessOver(rule, lower)
		return
	}
	i := slices.IndexFunc(named, func(n *Resolved) bool { return n.lowest > rule.origin.Layer })
	if i < 0 {
		c.problems = append(c.problems, rule.Problem("name",
			fmt.Sprintf("%d rules on one endpoint need names: write %s", len(all), rule.origin.example("name", strconv.Quote(suggestName(rule))))))
		return
	}
	c.removeMissingKey(named[i])
	c.problems = append(c.problems, named[i].Problem("name", fmt.Sprintf(
		"%d rules on one endpoint need names, and the one in %s has none: leave name out to change the rule of %s, or give that one a name, too",
		len(all), rule.origin.where(), rule.origin.Layer.owner())))
}

// reportNamelessOver reports a rule without a name over named rules of lower layers.
func (c *nameChecker) reportNamelessOver(rule *Resolved, lower []*Resolved) {
	c.removeMissingKey(rule)
	names := make([]string, len(lower))
	for i, n := range lower {
		names[i] = rule.origin.example("name", strconv.Quote(n.Name))
	}
	message := "write " + strings.Join(names, " or ") + " to change the rule of " + lower[0].lowest.owner()
	if rule.declared("key") || rule.declared("keys") {
		message += ", or another name for one more rule"
	}
	c.problems = append(c.problems, rule.Problem("name", fmt.Sprintf("%d rules on one endpoint need names: %s", len(lower)+1, message)))
}

// removeMissingKey removes the problem that a rule has no key.
func (c *nameChecker) removeMissingKey(rule *Resolved) {
	c.problems = slices.DeleteFunc(c.problems, func(p *Problem) bool {
		return p.Endpoint == rule.Endpoint && p.Rule == rule.Name && errors.Is(p, errKeyMissing)
	})
}

// suggestName returns a name for a rule, such as order-pay for "order:pay:#{path.id}". It uses the fixed text
// of the key or, if the key has none, of the endpoint.
func suggestName(rule *Resolved) string {
	for _, text := range append(rule.Templates(), rule.Endpoint.Path, "rule") {
		fixed, _, _ := strings.Cut(text, "#{")
		words := strings.FieldsFunc(fixed, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_' })
		if name := strings.Trim(strings.Join(words, "-"), "_"); name != "" && len(name) <= maxNameLength {
			return name
		}
	}
	return "rule"
}

// explainNames extends the problem that a rule has no key if a lower layer has a rule with a key
// under another name, which was most likely meant.
func explainNames(problems []*Problem, lower []Declared) {
	var names []string
	for _, d := range lower {
		if d.Rule.Name != "" {
			names = append(names, fmt.Sprintf("%q", d.Rule.Name))
		}
	}
	if len(names) == 0 {
		return
	}
	for _, p := range problems {
		if errors.Is(p, errKeyMissing) && !slices.Contains(names, fmt.Sprintf("%q", p.Rule)) {
			p.Message += "; or, to change the rule of the .proto or the program, give its name: " + strings.Join(names, " or ")
		}
	}
}
