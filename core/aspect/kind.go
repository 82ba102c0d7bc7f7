package aspect

import (
	"strings"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// reentrant is how to write the kind that every build has, and that can be of several keys.
func (c *compiler) reentrant() string {
	return c.rule.Spelled("kind", "kind") + ": " + c.rule.Spelled("kind", string(ruleset.Reentrant))
}

// checkOneKey reports a template that yields several keys where there can be one. Whether
// it does so is known from the types.
func (c *compiler) checkOneKey(field string, key *keyexpr.Template) {
	switch {
	case key == nil || !key.IsList():
	case !c.rule.Kind.Traits().Several:
		c.reportf(field, "yields a list of keys, and a %s has one: write an expression for a single value, or %s", c.rule.Kind.Traits().Noun, c.reentrant())
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
