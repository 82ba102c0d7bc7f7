package grpclock

import (
	"github.com/interlock-go/interlock/core/ruleset"
)

// prepare makes everything ready for a set: the first one, and one that is to replace
// the one in force. Every method that the old table has is compiled, which is all that
// Check has seen; of others that the sets name it is seen to that they keep their
// locks. It implements [ruleset.Prepare].
func (g *Guard) prepare(next *ruleset.Set) (commit func(), err error) {
	t := &table{set: next, methods: map[methodKey]*method{}}
	old := g.current.Load()
	if old == nil {
		return func() { g.replace(t) }, nil
	}
	c := g.newChecker(next)
	for _, k := range old.keys() {
		if k.wild() && !matches(next, k) {
			continue
		}
		m := g.compile(next, k)
		t.methods[k] = m
		c.compiled(k, m)
		c.rekeyed(k, old.methods[k], m)
	}
	c.rekeyedElsewhere(old)
	c.mixedKinds(t, t.keys())
	var warnings []*ruleset.Problem
	if registered := g.registered.Load(); registered != nil {
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

// matches reports whether a set still has the wildcard of a key.
func matches(set *ruleset.Set, k methodKey) bool {
	rules := set.Match(ruleset.GRPC(k.path))
	return len(rules) > 0 && rules[0].Endpoint.Path == k.path
}
