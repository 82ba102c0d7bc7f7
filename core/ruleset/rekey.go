package ruleset

import "slices"

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
//   - another when of a rule: the calls that both lock still exclude each other,
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
	type told struct {
		rule           identity
		field, message string
	}
	var problems []*Problem
	known := map[told]bool{}
	for _, r := range rekeyings(old, next) {
		for _, p := range r.problems {
			id := told{identityOf(&Rule{Endpoint: p.Endpoint, Name: p.Rule}), p.Field, p.Message}
			if !known[id] {
				known[id] = true
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// RekeyedAt is [Rekeyed] for the rules of one endpoint, such as those that
// [Set.Overlay] returns for it. It does not ask whether the change is allowed.
//
// A call takes the locks of all its rules, one after the other: two calls exclude each
// other where they have any lock in common, and which rule it belongs to is all the
// same. Where all locks of one side are also taken by the other, under the same when
// or under none, nothing is lost: two calls that meet on a lock of the smaller side
// meet on it across the change, too. So rules may be renamed, merged, split, added and
// removed, and exchange their keys.
//
// To have one lock in common is not enough: two calls may have different values in
// that one, and meet on another one before the change and on a third one after it. So
// a problem is a lock that is no longer taken, or under another when, beside one that
// is new, or under another when. There is one exception, so that the when of a rule may
// change, also together with an added key: the rule of the new lock takes the lost one,
// too, or that of the lost lock took the new one, and no third rule has to do with them.
// Then calls that both rules lock share that lock.
//
// Keys are compared letter by letter, with their prefix, which may be moved into the
// key and back; conditions letter by letter.
func RekeyedAt(old, next []*Resolved) []*Problem {
	if slices.ContainsFunc(old, (*Resolved).Partial) || slices.ContainsFunc(next, (*Resolved).Partial) {
		return nil
	}
	c := rekeying{before: locksOf(old), after: locksOf(next)}
	lost, come := changed(old, c.after), changed(next, c.before)
	if len(lost) == 0 || len(come) == 0 {
		return nil
	}
	var problems []*Problem
	was, told := byName(old), map[*Resolved]bool{}
	for _, r := range come {
		if before := was[r.Name]; before != nil && c.between(before, r) {
			problems = append(problems, r.rekeyProblem(before, before))
			told[before], told[r] = true, true
		}
	}
	for _, r := range come {
		for _, gone := range lost {
			if !told[r] && !told[gone] && c.between(gone, r) {
				return append(problems, r.rekeyProblem(gone, was[r.Name]))
			}
		}
	}
	return problems
}

// lock is what a rule takes, and when.
type lock struct {
	kind      Kind // its family
	key, when string
}

// rekeying are the locks of an endpoint before and after a change.
type rekeying struct{ before, after locks }

// between reports whether next has a new lock in place of one that old had, and calls
// under the two rules do not share one of both.
func (c rekeying) between(old, next *Resolved) bool {
	for _, lost := range missing(old.locks(), c.after) {
		for _, come := range missing(next.locks(), c.before) {
			shared := next.mayTake(lost) || old.mayTake(come)
			if !shared || !c.before.isOfOne(lost) || !c.after.isOfOne(come) {
				return true
			}
		}
	}
	return false
}

// mayTake reports whether the rule takes the lock, whenever that is.
func (r *Resolved) mayTake(l lock) bool {
	return l.kind == r.Kind.family() && slices.Contains(r.lockKeys(), l.key)
}

// locks are those of an endpoint, each with the number of its rules: once with their
// when and once for any time.
type locks map[lock]int

// isOfOne reports whether only one rule takes the lock, whenever that is.
func (s locks) isOfOne(l lock) bool {
	l.when = anyTime
	return s[l] == 1
}

// anyTime stands in a lock for all conditions.
const anyTime = "\x00"

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

func locksOf(rules []*Resolved) locks {
	count := locks{}
	for _, r := range rules {
		for _, l := range r.locks() {
			count[l]++
			l.when = anyTime
			count[l]++
		}
	}
	return count
}

// missing are those of a rule's locks that are not taken there whenever they are taken here.
func missing(list []lock, there locks) []lock {
	return slices.DeleteFunc(list, func(l lock) bool {
		return there[l] > 0 || there[lock{l.kind, l.key, ""}] > 0
	})
}

// changed are the rules with locks that are missing there.
func changed(rules []*Resolved, there locks) []*Resolved {
	var list []*Resolved
	for _, r := range rules {
		if len(missing(r.locks(), there)) > 0 {
			list = append(list, r)
		}
	}
	return list
}

func byName(rules []*Resolved) map[string]*Resolved {
	names := map[string]*Resolved{}
	for _, r := range rules {
		names[r.Name] = r
	}
	return names
}
