package ruleset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rekeyed reports what a reload from old to next would change about who excludes
// whom: programs that still have the old rules and programs that have the next ones
// would run the same thing at the same time, each under its own lock. It reports
// nothing when next has [Settings.AllowRekey].
//
// For each endpoint the rules that apply there are compared, also where one set has
// the endpoint itself and the other a wildcard. A rule is compared with the one of the
// same name: they must be of one kind, and have a key in common (with its prefix,
// letter by letter). So a key is changed in steps: key: old, keys: [old, new],
// key: new. Rules that have no namesake are compared as a whole: if all locks of an
// endpoint go while others come, one of them must have a key in common with one of
// the others.
//
// Not reported, because no other lock is taken, only more or fewer calls take it, which
// is what the author of such a change wants:
//   - a rule that comes, goes, or is switched on or off by disabled, dry_run or none,
//   - another when: the calls that both lock still exclude each other,
//   - another key_format: strict refuses the calls for which encode would make
//     another key,
//   - debounce, which keeps the key, and everything about waiting and answering.
//
// A gRPC method or a function may have its key from a layer below the sets. Where that
// may be so, because a rule has none ([Resolved.Partial]) or because one of the sets
// does not name the endpoint, nothing is known here: those who know all layers ask
// [RekeyedAt].
func Rekeyed(old, next *Set) []*Problem {
	if next.Settings().AllowRekey {
		return nil
	}
	var problems []*Problem
	for _, e := range endpoints(next, old) {
		if e.hasLayers() && (old.exactly(e) == nil || next.exactly(e) == nil) {
			continue
		}
		problems = append(problems, RekeyedAt(old.Lookup(e), next.Lookup(e))...)
	}
	return problems
}

// hasLayers reports whether rules may be declared for the endpoint outside of a set.
func (e Endpoint) hasLayers() bool {
	return e.Transport != TransportHTTP && !strings.HasSuffix(e.Path, "*")
}

// RekeyedAt is [Rekeyed] for the rules of one endpoint, such as those that
// [Set.Overlay] returns for it. It does not ask whether the change is allowed.
func RekeyedAt(old, next []*Resolved) []*Problem {
	var problems []*Problem
	var gone, come []*Resolved
	for _, r := range next {
		if before := named(old, r.Name); before == nil {
			come = append(come, r)
		} else if p := rekeyed(before, r); p != nil {
			problems = append(problems, p)
		}
	}
	for _, r := range old {
		if named(next, r.Name) == nil {
			gone = append(gone, r)
		}
	}
	return append(problems, replaced(gone, come)...)
}

// endpoints are those that the sets name, without repetition.
func endpoints(sets ...*Set) []Endpoint {
	var list []Endpoint
	known := map[Endpoint]bool{}
	for _, s := range sets {
		for _, r := range s.Rules() {
			if !known[r.Endpoint] {
				known[r.Endpoint] = true
				list = append(list, r.Endpoint)
			}
		}
	}
	return list
}

func named(rules []*Resolved, name string) *Resolved {
	i := slices.IndexFunc(rules, func(r *Resolved) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return rules[i]
}

// locks reports whether the rule takes locks, whose keys are known.
func (r *Resolved) locks() bool { return !r.Disabled && !r.DryRun && !r.None && !r.partial }

// shareKey reports whether the rules have a lock in common. Keys are compared as they
// are compiled: with their prefix, which may be moved into the key and back.
func (r *Resolved) shareKey(other *Resolved) bool {
	keys := other.lockKeys()
	return r.Kind == other.Kind && slices.ContainsFunc(r.lockKeys(), func(key string) bool { return slices.Contains(keys, key) })
}

func (r *Resolved) lockKeys() []string {
	var keys []string
	for _, template := range r.Templates() {
		keys = append(keys, r.Prefix+template)
	}
	return keys
}

// rekeyed compares two rules of one name.
func rekeyed(old, next *Resolved) *Problem {
	if !old.locks() || !next.locks() || old.shareKey(next) {
		return nil
	}
	return next.rekeyProblem(old, "which is in force")
}

// replaced compares the rules that have gone from an endpoint with those that have
// come. A partial rule among them may have any key.
func replaced(gone, come []*Resolved) []*Problem {
	if slices.ContainsFunc(gone, (*Resolved).Partial) || slices.ContainsFunc(come, (*Resolved).Partial) {
		return nil
	}
	var first, second *Resolved
	for _, old := range gone {
		for _, next := range come {
			switch {
			case !old.locks() || !next.locks():
			case old.shareKey(next):
				return nil
			case first == nil:
				first, second = old, next
			}
		}
	}
	if first == nil {
		return nil
	}
	return []*Problem{second.rekeyProblem(first, fmt.Sprintf("of rule %q, whose place it takes", first.Name))}
}

// rekeyProblem says how to get from the old rule to this one.
func (r *Resolved) rekeyProblem(old *Resolved, which string) *Problem {
	const harm = "programs with the old and with the new rules would not exclude each other"
	if r.Kind != old.Kind {
		return r.Problem("kind", fmt.Sprintf("%q in place of %q, %s: %s: "+
			"write allow_rekey: true if that is no matter, or when no program takes the lock", r.Kind, old.Kind, which, harm))
	}
	return r.Problem(r.keyField(old), fmt.Sprintf("%s in place of %s, %s: %s: write %s first, roll it out everywhere, then %s; or allow_rekey: true",
		list(r.lockKeys()), list(old.lockKeys()), which, harm, r.bothKeys(old), r.ownKeys(old)))
}

// keyField is the field that makes the other lock.
func (r *Resolved) keyField(old *Resolved) string {
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
		return "keys: [" + list(slices.Concat(old.Templates(), r.Templates())) + "]"
	}
	return "keys: [" + list(append(old.lockKeys(), r.lockKeys()...)) + "] without prefix"
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
