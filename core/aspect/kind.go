package aspect

import (
	"strings"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// naming names a lock of one key. permits is the size of a semaphore.
type naming func(locks *core.Client, name string, permits int) core.Lock

// kinds are the locks of one key that rules may ask for.
var kinds = map[ruleset.Kind]naming{ //nolint:gochecknoglobals // a table that is only read
	ruleset.Reentrant: plain((*core.Client).Lock),
	ruleset.Fenced:    plain((*core.Client).FencedLock),
	ruleset.Spin:      plain((*core.Client).SpinLock),
	ruleset.Fair:      plain((*core.Client).FairLock),
	ruleset.Read:      plain((*core.Client).ReadLock),
	ruleset.Write:     plain((*core.Client).WriteLock),
	ruleset.Semaphore: semaphore,
}

// plain is the naming of a kind without permits.
func plain(name func(*core.Client, string) core.Lock) naming {
	return func(locks *core.Client, n string, _ int) core.Lock { return name(locks, n) }
}

// semaphore is the naming of a semaphore.
func semaphore(locks *core.Client, name string, permits int) core.Lock {
	return locks.PermitSemaphore(name, permits).Lock
}

func (c *compiler) compileKind(rule *compiled) {
	if rule.name = kinds[c.rule.Kind]; rule.name == nil {
		c.reportf("kind", "this build of the program has no %s: write %s", c.rule.Kind.Noun(), c.reentrant())
	}
}

// reentrant is how to write the kind that every build has, and that can be of several keys.
func (c *compiler) reentrant() string {
	return c.rule.Spelled("kind", "kind") + ": " + c.rule.Spelled("kind", string(ruleset.Reentrant))
}

// checkOneKey reports a template that yields several keys where there can be one. Whether
// it does so is known from the types.
func (c *compiler) checkOneKey(field string, key *keyexpr.Template) {
	switch {
	case key == nil || !key.IsList():
	case !c.rule.Kind.TakesSeveral():
		c.reportf(field, "yields a list of keys, and a %s has one: write an expression for a single value, or %s", c.rule.Kind.Noun(), c.reentrant())
	case c.rule.Token:
		c.reportf(field, "yields a list of keys, and a token belongs to one: write an expression for a single value, or remove %s", c.rule.Spelled("token", "token"))
	}
}

// isTaken reports whether a call under the rule would have to wait for those who hold the lock.
func (c *compiled) isTaken(state core.State) bool {
	switch c.Kind {
	case ruleset.Read:
		return hasWriter(state)
	case ruleset.Semaphore:
		return len(state.Holders) >= c.Permits
	default:
		return len(state.Holders) > 0
	}
}

// hasWriter reports whether a field is that of a writer.
func hasWriter(state core.State) bool {
	for field := range state.Holders {
		if strings.HasSuffix(field, ":write") {
			return true
		}
	}
	return false
}
