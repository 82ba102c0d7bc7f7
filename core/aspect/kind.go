package aspect

import (
	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// kinds are the locks of one key that rules may ask for.
var kinds = map[ruleset.Kind]func(*core.Client, string) core.Lock{ //nolint:gochecknoglobals // a table that is only read
	ruleset.Reentrant: (*core.Client).Lock,
	ruleset.Fenced:    (*core.Client).FencedLock,
	ruleset.Spin:      (*core.Client).SpinLock,
}

func (c *compiler) compileKind(rule *compiled) {
	if rule.name = kinds[c.rule.Kind]; rule.name == nil {
		c.reportf("kind", "%q is no kind of lock here: write %q", c.rule.Kind, ruleset.Reentrant)
	}
}

// checkOneKey reports a template that yields several keys of a kind that has one. Whether
// it does so is known from the types.
func (c *compiler) checkOneKey(field string, key *keyexpr.Template) {
	if key != nil && key.IsList() && !c.rule.Kind.TakesSeveral() {
		c.reportf(field, "yields a list of keys, and a %s lock has one: write an expression for a single value, or the kind %q", c.rule.Kind, ruleset.Reentrant)
	}
}
