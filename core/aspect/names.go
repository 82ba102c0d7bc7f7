package aspect

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// lockNames are the names of the locks of one rule in one call: one, or many.
type lockNames struct {
	one  string
	many []string // sorted, unique; nil when there is one
}

// lock is the lock of a rule under the names of one call. Only a reentrant one has many.
func (c *compiled) lock(locks *core.Client, n lockNames) core.Lock {
	if n.many != nil {
		return locks.MultiLock(n.many...)
	}
	return c.lockOf(locks, n.one)
}

// lockOf is the lock of the rule's kind. The kinds of rules are all known to core.
func (c *compiled) lockOf(locks *core.Client, name string) core.Lock {
	lock, _ := locks.ForAdapters().LockOf(core.Kind(c.Kind), name, c.Permits)
	return lock
}

// shadowLock is what a dry run takes instead: of the same kind where several calls may hold it
// at a time, or hold another kind beside it, and else a plain lock, whatever the kind of the
// rule is: it waits for nobody, and the counter of tokens would stay in Redis.
func (c *compiled) shadowLock(locks *core.Client, n lockNames) core.Lock {
	shadow := n.shadow()
	switch {
	case shadow.many != nil:
		return locks.MultiLock(shadow.many...)
	case c.Kind.Traits().Shared || c.Kind == ruleset.Write:
		return c.lockOf(locks, shadow.one)
	default:
		return locks.Lock(shadow.one)
	}
}

// all lists the names.
func (n lockNames) all() []string {
	if n.many != nil {
		return n.many
	}
	return []string{n.one}
}

// shadow are the names that a dry run takes instead.
func (n lockNames) shadow() lockNames {
	if n.many == nil {
		return lockNames{one: n.one + ShadowSuffix}
	}
	shadows := make([]string, len(n.many))
	for i, name := range n.many {
		shadows[i] = name + ShadowSuffix
	}
	return lockNames{many: shadows}
}

// names evaluates the keys of a rule, once per call.
func (r *run) names(rule *compiled) (lockNames, error) {
	switch {
	case rule.isFixed:
		return rule.fixed, nil
	case len(rule.keys) == 1 && !rule.keys[0].IsList():
		key, err := rule.keys[0].Key(r.variables())
		return lockNames{one: key}, err
	default:
		many, err := rule.manyNames(r.variables())
		return lockNames{many: many}, err
	}
}

// manyNames evaluates every template of a rule.
func (c *compiled) manyNames(env keyexpr.Env) ([]string, error) {
	var names []string
	for _, template := range c.keys {
		keys, err := template.Keys(env)
		if err != nil {
			return nil, err
		}
		names = append(names, keys...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > keyexpr.DefaultMaxElements {
		return nil, &keyexpr.EvalError{
			Reason: keyexpr.ReasonTooMany,
			Detail: fmt.Sprintf("the templates of the rule yield %d keys together, at most %d are allowed", len(names), keyexpr.DefaultMaxElements),
		}
	}
	return names, nil
}
