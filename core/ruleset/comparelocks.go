package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// CompareLocks compares the locks of two sets, as a reload from old to next does.
//
// A reload is refused if an endpoint loses a lock and gets another one in the same step. Otherwise programs
// with the old and with the next rules would run the same thing at the same time, each under its own lock.
// A lock is identified by the text of its template with the prefix, by its kind, and by the permits of a
// semaphore. So a key is changed in two steps: key: old, keys: [old, new], key: new. Nothing is refused if
// next has [Settings.AllowRekey].
//
// unlocked lists the calls that run unlocked from now on: see [Unlocking].
//
// CompareLocks compares each path for which one of the sets has a rule, with each method. It refuses no change
// of a gRPC method or a function whose key may be in a layer below the sets. This is so if its rule in a set has
// no key ([Resolved.Partial]), or if only one of the sets names it. A caller that has all layers calls
// [CompareLocksAt] instead.
func CompareLocks(old, next *Set) (refused []*Problem, unlocked []Unlocking) {
	refused, unlocked = compareLocks(old, next)
	if next.Settings().AllowRekey {
		refused = nil
	}
	return refused, unlocked
}

func compareLocks(old, next *Set) (refused []*Problem, unlocked []Unlocking) {
	known := map[Problem]bool{}
	compared := map[[2]*Resolved]bool{{}: true} // by the first rules of both sides
	for _, e := range calls(next, old) {
		before, after := old.Lookup(e), next.Lookup(e)
		pair := [2]*Resolved{first(before), first(after)}
		if compared[pair] {
			continue
		}
		compared[pair] = true
		others, lost := CompareLocksAt(e, before, after)
		unlocked = append(unlocked, lost...)
		if len(others) > 0 && e.hasLayers() && pair[0].Endpoint.isWild() != pair[1].Endpoint.isWild() {
			continue
		}
		for _, p := range others {
			if !known[*p] {
				known[*p] = true
				refused = append(refused, p)
			}
		}
	}
	return refused, unlocked
}

// calls returns an endpoint for each group of calls that the sets treat alike. An endpoint with a * in its
// path stands for the calls there that no rule names.
func calls(sets ...*Set) []Endpoint {
	var rules []*Resolved
	methods := []string{"*"}
	for _, s := range sets {
		rules = append(rules, s.Rules()...)
	}
	for _, r := range rules {
		if m := r.Endpoint.Method; m != "" && !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
	}
	var list []Endpoint
	for _, r := range rules {
		if r.Endpoint.hasLayers() {
			list = append(list, r.Endpoint)
			continue
		}
		for _, method := range methods {
			list = append(list, Route(method, r.Endpoint.Path))
		}
	}
	return list
}

// CompareLocksAt is like [CompareLocks] for the rules of one endpoint, such as the rules that
// [Set.Overlay] returns for it. It does not consider [Settings.AllowRekey].
//
// A call takes the locks of all its rules, one after the other. Which rule a lock belongs to does not
// matter. Nothing is refused if the old rules take all locks of the next ones, or the next rules all locks of
// the old ones. So rules may be renamed, merged, split, added and removed.
func CompareLocksAt(e Endpoint, old, next []*Resolved) (refused []*Problem, unlocked []Unlocking) {
	lost, fresh := difference(old, next), difference(next, old)
	if !slices.ContainsFunc(slices.Concat(old, next), (*Resolved).Partial) {
		refused = refusedAt(lost, fresh)
	}
	for _, was := range old {
		unlocked = append(unlocked, unlockedBy(was, e, next, fresh)...)
	}
	for _, is := range next { // a rule without a key may switch off the lock of a lower layer
		sameName := func(was *Resolved) bool { return was.Name == is.Name }
		noted := func(u Unlocking) bool { return u.New == is }
		if is.partial && is.lockless() != "" && !slices.ContainsFunc(old, sameName) && !slices.ContainsFunc(unlocked, noted) {
			unlocked = append(unlocked, Unlocking{e, nil, is, is.lockless()})
		}
	}
	return refused, unlocked
}

// first returns the first of the rules, or nil if there are none.
func first(rules []*Resolved) *Resolved {
	if len(rules) == 0 {
		return nil
	}
	return rules[0]
}

// difference returns the rules of here with a lock that no rule of there takes under the same condition. A rule
// may change its own condition: that is reported as an unlocking but not refused.
func difference(here, there []*Resolved) []*Resolved {
	return slices.DeleteFunc(slices.Clone(here), func(r *Resolved) bool {
		return !slices.ContainsFunc(r.locks(), func(l lock) bool {
			return !slices.ContainsFunc(there, func(other *Resolved) bool {
				return slices.Contains(other.locks(), l) && (other.When == "" || other.When == r.When || other.Name == r.Name)
			})
		})
	})
}

// refusedAt reports each rule that takes a new lock in place of rules that lose one.
func refusedAt(lost, fresh []*Resolved) []*Problem {
	var problems []*Problem
	for _, r := range fresh {
		replaced := slices.DeleteFunc(slices.Clone(lost), func(was *Resolved) bool {
			sameName := func(r *Resolved) bool { return r.Name == was.Name }
			return was.Name != r.Name && slices.ContainsFunc(fresh, sameName)
		})
		if len(replaced) > 0 {
			problems = append(problems, otherLock(r, replaced))
		}
	}
	return problems
}

// otherLock returns the problem that r takes its lock in place of the locks of the rules that are replaced.
func otherLock(r *Resolved, replaced []*Resolved) *Problem {
	was, which := replaced[0], "which is in force"
	if i := slices.IndexFunc(replaced, func(one *Resolved) bool { return one.Name == r.Name }); i >= 0 {
		was = replaced[i]
	} else {
		which = fmt.Sprintf("of rule %q, whose place it takes", was.Name)
	}
	refuse := func(field, old, next, harm, instead string) *Problem {
		return r.Problem(field, fmt.Sprintf("%s in place of %s, %s: %s: write %s", next, old, which, harm, instead))
	}
	const (
		apart   = "programs with the old and with the new rules would not exclude each other"
		allowed = "allow_rekey: true if that does not matter, or when no program takes the lock"
	)
	both, then := steps(r, replaced)
	stepwise := both + " first, roll it out everywhere, then " + then + "; or allow_rekey: true"
	switch {
	case r.Kind != was.Kind && r.Kind.family() == was.Kind.family():
		return refuse("kind", strconv.Quote(string(was.Kind)), strconv.Quote(string(r.Kind)), "several readers hold the lock at a time, and writers do not", allowed)
	case r.Kind != was.Kind:
		return refuse("kind", strconv.Quote(string(was.Kind)), strconv.Quote(string(r.Kind)), apart, allowed)
	case !slices.Equal(r.lockKeys(), was.lockKeys()):
		field := "prefix"
		if !slices.Equal(r.Templates(), was.Templates()) {
			if field = "keys"; r.Key != "" {
				field = "key"
			}
		}
		return refuse(field, quotedList(was.lockKeys()), quotedList(r.lockKeys()), apart, stepwise)
	case r.Kind.Traits().Permits && r.Permits != was.Permits:
		return refuse("permits", strconv.Itoa(was.Permits), strconv.Itoa(r.Permits), "programs with the old and with the new rules would set the number in turn", allowed)
	default:
		return refuse("when", strconv.Quote(was.When), strconv.Quote(r.When), apart, stepwise)
	}
}

// steps returns the text to write first, with which a call takes the locks of both sides, and the text to
// write after that.
func steps(r *Resolved, replaced []*Resolved) (both, then string) {
	keys, without := func(r *Resolved) []string { return r.Templates() }, ""
	then = "key: " + quotedList(r.Templates())
	if r.Key == "" {
		then = "keys: [" + quotedList(r.Templates()) + "]"
	}
	if slices.ContainsFunc(replaced, func(was *Resolved) bool { return was.Prefix != r.Prefix }) {
		keys, without = (*Resolved).lockKeys, " without prefix"
		if r.Prefix != "" {
			then = "prefix: " + strconv.Quote(r.Prefix) + " and " + then
		}
	}
	if !r.Kind.Traits().Several {
		return "a second rule with key: " + quotedList(keys(replaced[0])), "remove that one"
	}
	if r.When != "" && slices.ContainsFunc(replaced, func(was *Resolved) bool { return was.Name != r.Name && was.When != r.When }) {
		without, then = without+" without when", then+" and when: "+strconv.Quote(r.When)
	}
	var all []string
	for _, one := range append(replaced, r) {
		for _, key := range keys(one) {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return "keys: [" + quotedList(all) + "]" + without, then
}

// Unlocking is a change after which some calls run without a lock that they took before: they no longer take it,
// or a strategy lets them proceed without it.
type Unlocking struct {
	Endpoint Endpoint  // the endpoint of the calls
	Old      *Resolved // the rule with the lock; nil if only lower layers declare it
	New      *Resolved // the rule that unlocks the calls; nil if the old one was removed
	Field    string    // the field of New that unlocks them, such as "disabled", "when" or "on_busy"; empty without New
}

// text describes the unlocking for a log, such as "http POST /orders pay: removed".
func (u Unlocking) text() string {
	text := u.Endpoint.String()
	if r := cmp.Or(u.Old, u.New); r.Name != r.Endpoint.Label() {
		text += " " + r.Name
	}
	switch u.Field {
	case "":
		return text + ": removed"
	case "when":
		return text + ": when " + strconv.Quote(u.New.When)
	case "none", "disabled", "dry_run":
		return text + ": " + u.Field
	default:
		return text + ": " + u.Field + " proceed"
	}
}

// unlockedBy returns the ways in which calls of e run without the lock of an old rule r under the next
// rules. The lock of a rule without a key belongs to a lower layer. Calls take it until a rule with the
// same name switches it off.
func unlockedBy(r *Resolved, e Endpoint, next, fresh []*Resolved) []Unlocking {
	if r.lockless() != "" {
		return nil
	}
	var successors []*Resolved
	var off *Resolved
	for _, is := range next {
		sharesKey := func(key string) bool { return slices.Contains(is.lockKeys(), key) }
		switch {
		case is.lockless() != "":
			if is.None || is.Name == r.Name || is.Endpoint != r.Endpoint {
				off = cmp.Or(off, is)
			}
		case is.Name == r.Name && (is.partial || r.partial || slices.Contains(fresh, is)), slices.ContainsFunc(r.lockKeys(), sharesKey), is.partial && is.Endpoint != r.Endpoint:
			successors = append(successors, is)
		}
	}
	switch {
	case len(successors) > 0:
		return loosenedBy(r, e, successors)
	case off != nil:
		return []Unlocking{{e, r, off, off.lockless()}}
	case r.partial:
		return nil
	default:
		return []Unlocking{{e, r, nil, ""}}
	}
}

// loosenedBy returns the ways in which successors, which take the lock of the old rule r, let calls
// run without it.
func loosenedBy(r *Resolved, e Endpoint, successors []*Resolved) []Unlocking {
	var list []Unlocking
	is := successors[max(0, slices.IndexFunc(successors, func(is *Resolved) bool { return is.Name == r.Name }))]
	always := func(is *Resolved) bool { return is.When == "" || is.When == r.When }
	if !always(is) && (is.Name == r.Name || !slices.ContainsFunc(successors, always)) {
		list = append(list, Unlocking{e, r, is, "when"})
	}
	was, now := r.Policy(), is.Policy()
	for _, cause := range []failpolicy.Cause{failpolicy.Busy, failpolicy.Backend, failpolicy.Key, failpolicy.Overload} {
		if now.Strategy(cause) == failpolicy.Proceed && was.Strategy(cause) != failpolicy.Proceed {
			list = append(list, Unlocking{e, r, is, "on_" + string(cause)})
		}
	}
	return list
}

// Reload is one attempt to bring a file into force.
type Reload struct {
	File string
	Hash string    // the first 12 hexadecimal digits of the SHA-256 of the content; empty if it could not be read
	Time time.Time // the time at which the attempt started
	Set  *Set      // the set in force after the attempt; nil if the first attempt failed
	Old  *Set      // the set in force before; nil at the first attempt
	Err  error     // the reason that the new content was refused; nil if it is in force
}

// Unlocked lists the calls that run without their lock from this reload on, described for a log: "the
// whole file: disabled", or a line such as "http POST /orders pay: removed" for each endpoint and rule that
// had a lock before (see [Unlocking]). For a file that is loaded for the first time, only its settings count.
// The list is empty after a refusal, which changes nothing.
func (r Reload) Unlocked() []string {
	if r.Err != nil || r.Set == nil {
		return nil
	}
	before, settings := r.Old.Settings(), r.Set.Settings()
	switch {
	case settings.Disabled:
		return []string{"the whole file: disabled"}
	case settings.DryRun && r.Old != nil && !before.DryRun && !before.Disabled:
		return []string{"the whole file: dry_run"}
	case settings.DryRun || r.Old == nil:
		return nil
	}
	var list []string
	_, unlocked := CompareLocks(r.Old, r.Set)
	for _, u := range unlocked {
		list = append(list, u.text())
	}
	return list
}
