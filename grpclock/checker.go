package grpclock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// checker collects what is wrong with the methods under one set.
type checker struct {
	guard *Guard
	set   *ruleset.Set
	order []*finding
	seen  map[string]*finding
	more  []*ruleset.Problem
}

// finding is one problem, and the methods that have it.
type finding struct {
	problem *ruleset.Problem
	methods []string
}

func (g *Guard) newChecker(set *ruleset.Set) *checker {
	return &checker{guard: g, set: set, seen: map[string]*finding{}}
}

// compiled takes over what is wrong with a method.
func (c *checker) compiled(k methodKey, m *method) {
	if m == nil {
		return
	}
	for _, p := range m.problems {
		c.add(p, k.path)
	}
}

// mixedKinds reports rules of different methods that take one key as locks of different kinds.
func (c *checker) mixedKinds(t *table, keys []methodKey) {
	var rules []*ruleset.Resolved
	for _, k := range keys {
		if m := t.methods[k]; m != nil && m.err == nil {
			rules = append(rules, m.rules()...)
		}
	}
	c.more = append(c.more, ruleset.MixedKinds(rules)...)
}

// add notes a problem; a rule with a wildcard may have it for many methods.
func (c *checker) add(p *ruleset.Problem, path string) {
	text := p.Error()
	f := c.seen[text]
	if f == nil {
		f = &finding{problem: p}
		c.seen[text] = f
		c.order = append(c.order, f)
	}
	f.methods = append(f.methods, path)
}

// problems are the findings, those of wildcards with a method that has them.
func (c *checker) problems() []*ruleset.Problem {
	var list []*ruleset.Problem
	for _, f := range c.order {
		p := *f.problem
		if strings.HasSuffix(p.Endpoint.Path, "*") && !strings.Contains(p.Message, f.methods[0]) {
			p.Message = f.where() + ": " + p.Message
		}
		list = append(list, &p)
	}
	return append(list, c.more...)
}

// where names the methods that have the problem.
func (f *finding) where() string {
	if more := len(f.methods) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", f.methods[0], more)
	}
	return f.methods[0]
}

// judge compares the set with the registered methods, as severe as the set says, and
// returns the warnings.
func (c *checker) judge(registered []methodKey) (warnings []*ruleset.Problem) {
	settings := c.set.Settings()
	used, uncovered := c.compare(registered)
	unmatched := c.unmatched(used, registered)
	for _, group := range []struct {
		severity ruleset.Severity
		problems []*ruleset.Problem
	}{{settings.Unmatched, unmatched}, {settings.Uncovered, uncovered}} {
		switch group.severity {
		case ruleset.SeverityError:
			c.more = append(c.more, group.problems...)
		case ruleset.SeverityWarn:
			warnings = append(warnings, group.problems...)
		}
	}
	return warnings
}

// compare finds the rules that apply somewhere, and the methods without a rule.
func (c *checker) compare(registered []methodKey) (used map[*ruleset.Resolved]bool, uncovered []*ruleset.Problem) {
	used = map[*ruleset.Resolved]bool{}
	for _, k := range registered {
		descriptor := describe(k.path, c.guard.config.descriptors)
		options, _ := optionsOf(descriptor)
		found := c.set.Lookup(ruleset.GRPC(k.path))
		for _, r := range found {
			if len(options) == 0 || r.Endpoint.Path == k.path { // options hide wildcards
				used[r] = true
			}
		}
		if len(found)+len(options) == 0 && protorules.NeedsRule(k.path, descriptor) {
			uncovered = append(uncovered, &ruleset.Problem{Endpoint: ruleset.GRPC(k.path), Message: noRule})
		}
	}
	return used, uncovered
}

const noRule = "there is none: declare one, or write none: true where it needs no lock (or idempotency_level = NO_SIDE_EFFECTS where it changes nothing)"

// unmatched reports rules that apply nowhere.
func (c *checker) unmatched(used map[*ruleset.Resolved]bool, registered []methodKey) []*ruleset.Problem {
	var list []*ruleset.Problem
	for _, r := range c.set.Rules() {
		if r.Endpoint.Transport == ruleset.TransportGRPC && !used[r] {
			list = append(list, r.Problem("endpoint", unmatched(r.Endpoint.Path, registered)))
		}
	}
	return list
}

// serverFirst reports names given to [WithServerFirst] that do not exist.
func (c *checker) serverFirst(registered []methodKey) {
	for _, path := range slices.Sorted(maps.Keys(c.guard.config.serverFirst)) {
		if !slices.Contains(pathsOf(registered), path) {
			c.more = append(c.more, &ruleset.Problem{Endpoint: ruleset.GRPC(path), Message: "WithServerFirst: " + unmatched(path, registered)})
		}
	}
}

// unmatched says what to write instead of an endpoint that matches nothing.
func unmatched(path string, registered []methodKey) string {
	if strings.HasSuffix(path, "*") {
		return fmt.Sprintf("%q applies to no method: none is registered there, or each has rules of its own: remove it", path)
	}
	names := pathsOf(registered)
	text := fmt.Sprintf("no method %q is registered", path)
	switch near := failpolicy.Nearest(path, names); {
	case near != "":
		return text + fmt.Sprintf(": did you mean %q?", near)
	case len(names) == 0:
		return text + ": register the services before Check"
	default:
		return text + ": remove it here, or register its service before Check"
	}
}

func pathsOf(keys []methodKey) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.path
	}
	return names
}
