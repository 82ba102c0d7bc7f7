package ruleset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// CompareLocks compares what two sets lock, as a reload from old to next does.
//
// A reload is refused where an endpoint loses a lock and gets another one in the same step:
// programs with the old and with the next rules would run the same thing at the same time, each
// under its own lock. A lock is a key with its prefix, to the letter, a kind, and the permits of a
// semaphore. So a key is changed in two steps: key: old, keys: [old, new], key: new. Nothing is
// refused if next has [Settings.AllowRekey].
//
// Calls that run unlocked from now on are named: see [Unlocking].
//
// Each path that one of the sets names or has a wildcard for is judged with each method. Nothing is
// refused for a method or a function whose key may come from a layer below the sets, because a rule has
// none ([Resolved.Partial]) or because only one set names the endpoint: a caller that knows all layers uses
// [CompareLocksAt].
func CompareLocks(old, next *Set) (refused []*Problem, unlocked []Unlocking) {
	refused, unlocked = compareLocks(old, next)
	if next.Settings().AllowRekey {
		refused = nil
	}
	return refused, unlocked
}

func compareLocks(old, next *Set) (refused []*Problem, unlocked []Unlocking) {
	known := map[Problem]bool{}
	judged := map[[2]*Resolved]bool{{}: true} // by the first rules of both sides
	for _, e := range calls(next, old) {
		before, after := old.Lookup(e), next.Lookup(e)
		pair := [2]*Resolved{first(before), first(after)}
		if judged[pair] {
			continue
		}
		judged[pair] = true
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

// calls are endpoints of all calls that the sets tell apart. One with a * in its path stands for the
// calls there that no rule names.
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

// CompareLocksAt is [CompareLocks] for the rules of one endpoint, such as those that
// [Set.Overlay] returns for it. It does not ask whether the change is allowed.
//
// A call takes the locks of all its rules, one after the other, and which rule a lock belongs to does
// not matter. Where all locks of one side are also taken by the other, nothing is refused. So rules may
// be renamed, merged, split, added and removed.
func CompareLocksAt(e Endpoint, old, next []*Resolved) (refused []*Problem, unlocked []Unlocking) {
	losers, comers := strangers(old, next), strangers(next, old)
	if !slices.ContainsFunc(slices.Concat(old, next), (*Resolved).Partial) {
		refused = refusedAt(losers, comers)
	}
	for _, was := range old {
		unlocked = append(unlocked, was.unlockedBy(e, next, comers)...)
	}
	for _, is := range next { // one without a key may switch off the lock of a lower layer
		sameName := func(was *Resolved) bool { return was.Name == is.Name }
		noted := func(u Unlocking) bool { return u.New == is }
		if is.partial && is.lockless() != "" && !slices.ContainsFunc(old, sameName) && !slices.ContainsFunc(unlocked, noted) {
			unlocked = append(unlocked, Unlocking{e, nil, is, is.lockless()})
		}
	}
	return refused, unlocked
}

// first is the first of the rules, nil if there are none.
func first(rules []*Resolved) *Resolved {
	if len(rules) == 0 {
		return nil
	}
	return rules[0]
}

// lock is what two calls must both take to exclude each other.
type lock struct {
	kind    Kind
	key     string // with its prefix
	permits int    // of a semaphore
}

// locks are those that the rule takes.
func (r *Resolved) locks() []lock {
	if r.lockless() != "" {
		return nil
	}
	list := make([]lock, len(r.Templates()))
	for i, key := range r.lockKeys() {
		if list[i] = (lock{kind: r.Kind, key: key}); r.Kind.Traits().Permits {
			list[i].permits = r.Permits
		}
	}
	return list
}

// lockKeys are the keys as they are compiled.
func (r *Resolved) lockKeys() []string {
	keys := slices.Clone(r.Templates())
	for i := range keys {
		keys[i] = r.Prefix + keys[i]
	}
	return keys
}

// lockless is the field by which a rule takes no lock, empty if it takes one.
func (r *Resolved) lockless() string {
	switch {
	case r.None:
		return "none"
	case r.Disabled:
		return "disabled"
	case r.DryRun:
		return "dry_run"
	default:
		return ""
	}
}

// strangers are the rules here with a lock that no rule takes there whenever they do. The condition of
// one and the same rule may change: that is named, and not refused.
func strangers(here, there []*Resolved) []*Resolved {
	return slices.DeleteFunc(slices.Clone(here), func(r *Resolved) bool {
		return !slices.ContainsFunc(r.locks(), func(l lock) bool {
			return !slices.ContainsFunc(there, func(other *Resolved) bool {
				return slices.Contains(other.locks(), l) && (other.When == "" || other.When == r.When || other.Name == r.Name)
			})
		})
	})
}

// refusedAt reports each rule that comes with a lock of its own in place of rules that lose one.
func refusedAt(losers, comers []*Resolved) []*Problem {
	var problems []*Problem
	for _, r := range comers {
		gone := slices.DeleteFunc(slices.Clone(losers), func(was *Resolved) bool {
			sameName := func(r *Resolved) bool { return r.Name == was.Name }
			return was.Name != r.Name && slices.ContainsFunc(comers, sameName)
		})
		if len(gone) > 0 {
			problems = append(problems, r.otherLock(gone))
		}
	}
	return problems
}

// otherLock says how to get to the lock of a rule from those that are gone.
func (r *Resolved) otherLock(gone []*Resolved) *Problem {
	was, which := gone[0], "which is in force"
	if i := slices.IndexFunc(gone, func(one *Resolved) bool { return one.Name == r.Name }); i >= 0 {
		was = gone[i]
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
	both, then := r.steps(gone)
	stepwise := both + " first, roll it out everywhere, then " + then + "; or allow_rekey: true"
	switch {
	case r.Kind != was.Kind && r.Kind.family() == was.Kind.family():
		return refuse("kind", strconv.Quote(string(was.Kind)), strconv.Quote(string(r.Kind)), "readers run beside each other, and writers do not", allowed)
	case r.Kind != was.Kind:
		return refuse("kind", strconv.Quote(string(was.Kind)), strconv.Quote(string(r.Kind)), apart, allowed)
	case !slices.Equal(r.lockKeys(), was.lockKeys()):
		field := "prefix"
		if !slices.Equal(r.Templates(), was.Templates()) {
			if field = "keys"; r.Key != "" {
				field = "key"
			}
		}
		return refuse(field, list(was.lockKeys()), list(r.lockKeys()), apart, stepwise)
	case r.Kind.Traits().Permits && r.Permits != was.Permits:
		return refuse("permits", strconv.Itoa(was.Permits), strconv.Itoa(r.Permits), "programs with the old and with the new rules would set the number in turn", allowed)
	default:
		return refuse("when", strconv.Quote(was.When), strconv.Quote(r.When), apart, stepwise)
	}
}

// steps are what to write first, which takes the locks of both sides, and then.
func (r *Resolved) steps(gone []*Resolved) (both, then string) {
	keys, without := func(r *Resolved) []string { return r.Templates() }, ""
	then = "key: " + list(r.Templates())
	if r.Key == "" {
		then = "keys: [" + list(r.Templates()) + "]"
	}
	if slices.ContainsFunc(gone, func(was *Resolved) bool { return was.Prefix != r.Prefix }) {
		keys, without = (*Resolved).lockKeys, " without prefix"
		if r.Prefix != "" {
			then = "prefix: " + strconv.Quote(r.Prefix) + " and " + then
		}
	}
	if !r.Kind.Traits().Several {
		return "a second rule with key: " + list(keys(gone[0])) + " beside it", "remove that one"
	}
	if r.When != "" && slices.ContainsFunc(gone, func(was *Resolved) bool { return was.Name != r.Name && was.When != r.When }) {
		without, then = without+" without when", then+" and when: "+strconv.Quote(r.When)
	}
	var all []string
	for _, one := range append(gone, r) {
		for _, key := range keys(one) {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return "keys: [" + list(all) + "]" + without, then
}

// list is keys as in a file.
func list(keys []string) string {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = strconv.Quote(key)
	}
	return strings.Join(quoted, ", ")
}

// Unlocking is a rule whose lock some calls or all of them take no longer, or no longer insist on.
type Unlocking struct {
	Endpoint Endpoint  // of the calls
	Old      *Resolved // had the lock; nil if only lower layers know it
	New      *Resolved // is why; nil if the rule is just gone
	Field    string    // of New, such as "disabled", "when" or "on_busy"; empty if the rule is just gone
}

// text is the unlocking in words for a log, such as "http POST /orders pay: removed".
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

// unlockedBy reports how calls of e run without the lock of an old rule under the next ones.
// The lock of a rule without a key belongs to a lower layer, and stays until a rule of its name switches
// it off.
func (r *Resolved) unlockedBy(e Endpoint, next, comers []*Resolved) []Unlocking {
	if r.lockless() != "" {
		return nil
	}
	var heirs []*Resolved
	var off *Resolved
	for _, is := range next {
		sharesKey := func(key string) bool { return slices.Contains(is.lockKeys(), key) }
		switch {
		case is.lockless() != "":
			if is.None || is.Name == r.Name || is.Endpoint != r.Endpoint {
				off = cmp.Or(off, is)
			}
		case is.Name == r.Name && (is.partial || r.partial || slices.Contains(comers, is)), slices.ContainsFunc(r.lockKeys(), sharesKey), is.partial && is.Endpoint != r.Endpoint:
			heirs = append(heirs, is)
		}
	}
	switch {
	case len(heirs) > 0:
		return r.loosenedBy(e, heirs)
	case off != nil:
		return []Unlocking{{e, r, off, off.lockless()}}
	case r.partial:
		return nil
	default:
		return []Unlocking{{e, r, nil, ""}}
	}
}

// loosenedBy reports how the rules that take the lock of an old one let calls run without it.
func (r *Resolved) loosenedBy(e Endpoint, heirs []*Resolved) []Unlocking {
	var list []Unlocking
	is := heirs[max(0, slices.IndexFunc(heirs, func(is *Resolved) bool { return is.Name == r.Name }))]
	always := func(is *Resolved) bool { return is.When == "" || is.When == r.When }
	if !always(is) && (is.Name == r.Name || !slices.ContainsFunc(heirs, always)) {
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

// Unlocked lists what runs without its lock from this reload on, in words for a log:
// "the whole file: disabled", or of each endpoint and rule that had a lock before, such as
// "http POST /orders pay: removed": see [Unlocking]. A file that is loaded for the first time has its
// own settings only. It is empty after a refusal, which changes nothing.
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
