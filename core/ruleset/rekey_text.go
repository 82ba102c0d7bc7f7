package ruleset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rekeyProblem says how to get from a lock of the old rule to those of this one. was is
// the rule of the same name, nil if there was none.
func (r *Resolved) rekeyProblem(old, was *Resolved) *Problem {
	const harm = "programs with the old and with the new rules would not exclude each other"
	which := "which is in force"
	if old != was {
		which = fmt.Sprintf("of rule %q, whose place it takes", old.Name)
	}
	if r.Kind.family() != old.Kind.family() {
		return r.Problem("kind", fmt.Sprintf("%q in place of %q, %s: %s: "+
			"write allow_rekey: true if that is no matter, or when no program takes the lock", r.Kind, old.Kind, which, harm))
	}
	return r.Problem(r.rekeyField(old, was), fmt.Sprintf("%s in place of %s, %s: %s: write %s first, roll it out everywhere, then %s; or allow_rekey: true",
		list(r.lockKeys()), list(old.lockKeys()), which, harm, r.bothKeys(old), r.ownKeys(old)))
}

// rekeyField is the field that makes the other lock. Where the rule has kept its keys,
// it takes them in other cases than before.
func (r *Resolved) rekeyField(old, was *Resolved) string {
	if was != nil && was.Kind.family() == r.Kind.family() && slices.Equal(was.lockKeys(), r.lockKeys()) {
		switch {
		case was.Disabled:
			return "disabled"
		case was.DryRun:
			return "dry_run"
		case was.When != r.When:
			return "when"
		}
	}
	switch {
	case slices.Equal(r.Templates(), old.Templates()):
		return "prefix"
	case r.Key != "":
		return "key"
	default:
		return "keys"
	}
}

// bothKeys is how to write the keys of both rules. A rule has one prefix, so that two
// prefixes have to stand in the keys.
func (r *Resolved) bothKeys(old *Resolved) string {
	if r.Prefix == old.Prefix {
		return "keys: [" + list(union(old.Templates(), r.Templates())) + "]"
	}
	return "keys: [" + list(union(old.lockKeys(), r.lockKeys())) + "] without prefix"
}

func (r *Resolved) ownKeys(old *Resolved) string {
	own := "key: " + list(r.Templates())
	if r.Key == "" {
		own = "keys: [" + list(r.Templates()) + "]"
	}
	if r.Prefix != old.Prefix && r.Prefix != "" {
		return "prefix: " + strconv.Quote(r.Prefix) + " and " + own
	}
	return own
}

// list is keys as in a file.
func list(keys []string) string {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = strconv.Quote(key)
	}
	return strings.Join(quoted, ", ")
}
