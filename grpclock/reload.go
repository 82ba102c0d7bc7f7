package grpclock

import (
	"slices"

	"github.com/interlock-go/interlock/core/ruleset"
)

// prepare makes everything ready for a set: the first one, and one that is to replace
// the one in force. It implements [ruleset.Prepare].
func (g *Guard) prepare(next *ruleset.Set) (commit func(), err error) {
	t := &table{set: next, methods: map[methodKey]*method{}}
	old := g.current.Load()
	if old == nil {
		return func() { g.replace(t) }, nil
	}
	c := g.newChecker(next)
	registered := g.registered.Load()
	for _, k := range expected(old, registered) {
		if k.wild() && !matches(next, k) {
			continue
		}
		m := g.compile(next, k)
		t.methods[k] = m
		c.compiled(k, m)
		c.rekeyed(k, old.methods[k], m)
	}
	var warnings []*ruleset.Problem
	if registered != nil {
		warnings = c.judge(*registered)
	}
	if err := ruleset.Invalid(c.problems()...); err != nil {
		return nil, err
	}
	return func() {
		g.replace(t)
		g.aspect.Warn(warnings...)
	}, nil
}

// expected are the methods that the next table has from the start: those of the old
// one, and those that Check has seen.
func expected(old *table, registered *[]methodKey) []methodKey {
	keys := old.keys()
	if registered != nil {
		keys = append(keys, *registered...)
	}
	slices.SortFunc(keys, byPath)
	return slices.Compact(keys)
}

// matches reports whether a set still has the wildcard of a key.
func matches(set *ruleset.Set, k methodKey) bool {
	rules := set.Match(ruleset.GRPC(k.path))
	return len(rules) > 0 && rules[0].Endpoint.Path == k.path
}
