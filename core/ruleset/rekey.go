package ruleset

import (
	"slices"
	"strings"
)

// Rekeyed reports what a reload from old to next would change about who excludes
// whom: programs that still have the old rules and programs that have the next ones
// would run the same thing at the same time, each under its own locks. It reports
// nothing when next has [Settings.AllowRekey].
//
// Every call is judged that the sets tell apart: of each path that one of them names
// or has a wildcard for, with each method. The locks of its rules are compared as a
// whole, by [RekeyedAt]: an endpoint must not lose a lock and get another one in the
// same step. So a key is changed in two: key: old, keys: [old, new], key: new.
//
// Not reported, because no other lock is taken, only more or fewer calls take it, which
// is what the author of such a change wants:
//   - a rule that comes, goes, or is switched on or off by disabled, dry_run or none,
//     while the endpoint keeps its other locks,
//   - another when, where all rules of the endpoint have the same: the calls that both
//     lock still exclude each other,
//   - another key_format: strict refuses the calls for which encode would make
//     another key,
//   - read in place of write and the other way round, which see each other,
//   - permits: the number of the last call counts,
//   - token and debounce, which keep the key, and everything about waiting and answering.
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
	known := map[Problem]bool{}
	for _, r := range rekeyings(old, next) {
		for _, p := range r.problems {
			if !known[*p] {
				known[*p] = true
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// RekeyedAt is [Rekeyed] for the rules of one endpoint, such as those that
// [Set.Overlay] returns for it. It does not ask whether the change is allowed.
//
// A call takes the locks of all its rules, one after the other, and which rule a lock
// belongs to is all the same. Nothing is lost where all locks of one side are also taken
// by the other, under the same when or under none: two calls that meet on a lock of the
// smaller side meet on it across the change, too. So rules may be renamed, merged, split,
// added and removed, and exchange their keys. Everything else is a problem of the rules
// that take a new lock.
//
// Keys are compared letter by letter, with their prefix, which may be moved into the
// key and back; conditions letter by letter.
func RekeyedAt(old, next []*Resolved) []*Problem {
	if slices.ContainsFunc(old, (*Resolved).Partial) || slices.ContainsFunc(next, (*Resolved).Partial) {
		return nil
	}
	whenCounts := !haveOneWhen(old) || !haveOneWhen(next)
	before, after := takersOf(old, whenCounts), takersOf(next, whenCounts)
	c := rekeying{old: before, lost: missing(before, after)}
	if len(c.lost) == 0 {
		return nil
	}
	come := missing(after, before)
	for _, r := range after {
		if r.takesAny(come) {
			c.come = append(c.come, r)
		}
	}
	var problems []*Problem
	for _, r := range c.come {
		problems = append(problems, c.problem(r))
	}
	return problems
}

// lock is what a rule takes, and when.
type lock struct {
	kind      Kind // its family
	key, when string
}

// locks are those that the rule takes.
func (r *Resolved) locks() []lock {
	if r.Disabled || r.DryRun || r.None {
		return nil
	}
	var list []lock
	for _, key := range r.lockKeys() {
		list = append(list, lock{r.Kind.family(), key, r.When})
	}
	return list
}

// lockKeys are the keys as they are compiled.
func (r *Resolved) lockKeys() []string {
	var keys []string
	for _, template := range r.Templates() {
		keys = append(keys, r.Prefix+template)
	}
	return keys
}

// taker is a rule with its locks as they are compared.
type taker struct {
	*Resolved
	taken []lock
}

func takersOf(rules []*Resolved, whenCounts bool) []taker {
	list := make([]taker, len(rules))
	for i, r := range rules {
		list[i] = taker{r, r.anyTime()}
		if whenCounts {
			list[i].taken = r.locks()
		}
	}
	return list
}

// haveOneWhen reports whether all locks of the rules are taken under the same condition.
func haveOneWhen(rules []*Resolved) bool {
	all := locksOf(takersOf(rules, true))
	return !slices.ContainsFunc(all, func(l lock) bool { return l.when != all[0].when })
}

// takesAny reports whether the rule takes one of the locks.
func (t taker) takesAny(list []lock) bool {
	return slices.ContainsFunc(t.taken, func(l lock) bool { return slices.Contains(list, l) })
}

func locksOf(list []taker) []lock {
	var all []lock
	for _, t := range list {
		all = append(all, t.taken...)
	}
	return all
}

// missing are those locks that are not taken there whenever they are taken here.
func missing(here, there []taker) []lock {
	others := locksOf(there)
	return slices.DeleteFunc(locksOf(here), func(l lock) bool {
		return slices.Contains(others, l) || slices.Contains(others, lock{l.kind, l.key, ""})
	})
}

// rekeyed is a comparison with what [RekeyedAt] says of it.
type rekeyed struct {
	comparison
	problems []*Problem
}

// rekeyings judges every call for which both sets have rules.
func rekeyings(old, next *Set) []rekeyed {
	var list []rekeyed
	for _, c := range compared(old, next) {
		if len(c.before) > 0 && len(c.after) > 0 && !c.mayHaveLower() {
			list = append(list, rekeyed{c, RekeyedAt(c.before, c.after)})
		}
	}
	return list
}

// mayHaveLower reports whether only one of the sets names the endpoint, for which lower layers
// may have had rules instead of the wildcard of the other.
func (c comparison) mayHaveLower() bool {
	before, after := c.before[0].Endpoint, c.after[0].Endpoint
	return before.hasLayers() && before.isWild() != after.isWild()
}

// hasLayers reports whether rules may be declared for the endpoint outside of a set.
func (e Endpoint) hasLayers() bool { return e.Transport != TransportHTTP }

// isWild reports whether the path is that of a wildcard.
func (e Endpoint) isWild() bool { return e.Path == "*" || strings.HasSuffix(e.Path, "/*") }

// mayHaveLower reports whether lower layers, outside of a set, may declare rules for exactly
// this endpoint.
func (e Endpoint) mayHaveLower() bool { return e.hasLayers() && !e.isWild() }

// union is a, and what b has besides.
func union(a, b []string) []string {
	all := slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
