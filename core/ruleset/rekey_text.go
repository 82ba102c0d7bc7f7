package ruleset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rekeying is a change of the locks of an endpoint.
type rekeying struct {
	old  []taker
	come []taker // rules with a lock that is new
	lost []lock  // that are taken no more
}

// problem says how to get to the locks of a rule from those that are lost: by a step that
// takes both.
func (c *rekeying) problem(r taker) *Problem {
	const harm = "programs with the old and with the new rules would not exclude each other"
	gone := c.before(r)
	which := "which is in force"
	if gone.Name != r.Name {
		which = fmt.Sprintf("of rule %q, whose place it takes", gone.Name)
	}
	if r.Kind.family() != gone.Kind.family() {
		return r.Problem("kind", fmt.Sprintf("%q in place of %q, %s: %s: "+
			"write allow_rekey: true if that is no matter, or when no program takes the lock", r.Kind, gone.Kind, which, harm))
	}
	what := list(r.lockKeys()) + " in place of " + list(gone.lockKeys()) + ", " + which
	if slices.Equal(r.lockKeys(), gone.lockKeys()) {
		what = list(r.lockKeys()) + " in other calls than before"
	}
	both, own := c.steps(r, gone)
	return r.Problem(rekeyField(r, gone), fmt.Sprintf("%s: %s: write %s first, roll it out everywhere, then %s; or allow_rekey: true", what, harm, both, own))
}

// before is the old rule whose locks are lost: that of the same name if it lost any.
func (c *rekeying) before(r taker) taker {
	losers := slices.DeleteFunc(slices.Clone(c.old), func(old taker) bool { return !old.takesAny(c.lost) })
	return losers[max(0, slices.IndexFunc(losers, func(old taker) bool { return old.Name == r.Name }))]
}

// steps are what to write first, which takes the locks of both sides, and then.
func (c *rekeying) steps(r, gone taker) (both, own string) {
	own = "key: " + list(r.Templates())
	if r.Key == "" {
		own = "keys: [" + list(r.Templates()) + "]"
	}
	keys, without := union(gone.Templates(), r.Templates()), []string{}
	others := c.orphans(gone)
	if r.Prefix != gone.Prefix || len(others) > 0 && r.Prefix != "" {
		keys = union(gone.lockKeys(), r.lockKeys())
		if r.Prefix != "" {
			own = "prefix: " + strconv.Quote(r.Prefix) + " and " + own
		}
		without = append(without, "prefix")
	}
	both = "keys: [" + list(union(keys, others)) + "]"
	if when := r.taken[0].when; when != "" && slices.ContainsFunc(c.lost, func(l lock) bool { return l.when != when }) {
		own += " and when: " + strconv.Quote(r.When)
		without = append(without, "when")
	}
	if len(without) > 0 {
		both += " without " + strings.Join(without, " and ")
	}
	return both, own
}

// orphans are the keys that are lost with rules, other than the one, to which no rule with
// a new lock succeeds.
func (c *rekeying) orphans(except taker) []string {
	var keys []string
	for _, old := range c.old {
		succeeds := func(r taker) bool { return r.Name == old.Name }
		if old.Resolved == except.Resolved || slices.ContainsFunc(c.come, succeeds) {
			continue
		}
		if old.takesAny(c.lost) && old.Kind.family() == except.Kind.family() {
			keys = append(keys, old.lockKeys()...)
		}
	}
	return keys
}

// rekeyField is the field that makes the other lock.
func rekeyField(r, gone taker) string {
	switch {
	case slices.Equal(r.lockKeys(), gone.lockKeys()):
		return "when"
	case slices.Equal(r.Templates(), gone.Templates()):
		return "prefix"
	case r.Key != "":
		return "key"
	default:
		return "keys"
	}
}

// list is keys as in a file.
func list(keys []string) string {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = strconv.Quote(key)
	}
	return strings.Join(quoted, ", ")
}
