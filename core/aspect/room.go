package aspect

import (
	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/keyexpr"
)

// room is what the keys of a client have for the names of rules.
type room struct {
	added   int    // bytes, by the client's prefix or name mapper
	by      string // which of them
	longest int    // name; 0 if the client is not known
}

func roomOf(locks *core.Client) room {
	longest := locks.ForAdapters().MaxNameLength()
	r := room{added: locks.ForAdapters().MaxKeyLength() - longest, by: "core.WithPrefix", longest: longest}
	if r.added > len(locks.Prefix()) {
		r.by = "core.WithNameMapper"
	}
	return r
}

// checkPrefix reports a prefix of the rule that leaves of every key little more than
// the hash that an overlong one ends in.
func (c *compiler) checkPrefix() bool {
	if n := len(c.rule.Prefix); n > keyexpr.MaxPrefixLength {
		c.reportf("prefix", `has %d bytes: write one of at most %d, such as "shop:"`, n, keyexpr.MaxPrefixLength)
		return false
	}
	return true
}

// checkRoom reports a key that the client's limit may refuse. One that depends on the
// call can be as long as keys of rules get, and longer ones are shortened to that: to
// shorten them further would give one value two names in two programs. A dry run adds
// its suffix.
func (c *compiler) checkRoom(field string, key *keyexpr.Template) {
	if key == nil || c.room.longest == 0 {
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
	c.reportf(field, "may have %d bytes, %q of a dry run included, and the lock client has room for %d beside what its %s adds: "+
		"write core.WithMaxKeyLength(%d) or more, or have that add less", length, ShadowSuffix, c.room.longest, c.room.by, c.room.added+length)
}
