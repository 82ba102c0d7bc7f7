package ruleset

import (
	"cmp"
	"slices"
)

// Unlocking is a lock that calls take no more.
type Unlocking struct {
	Endpoint Endpoint  // of the calls
	Old      *Resolved // had the lock; nil if only lower layers know it
	New      *Resolved // is why: it says none, disabled or dry_run; nil if the lock is just gone
}

// String is the unlocking in words for a log, such as "http POST /orders pay: removed".
func (u Unlocking) String() string {
	text := u.Endpoint.String()
	if r := cmp.Or(u.Old, u.New); r.Name != r.Endpoint.Label() {
		text += " " + r.Name
	}
	if u.New == nil {
		return text + ": removed"
	}
	return text + ": " + unlocks(u.New)
}

// Unlocked reports which locks a reload from old to next takes away, by [UnlockedAt] for
// every call that the sets tell apart, as [Rekeyed] does. What the settings of the whole file
// switch off counts as switched off in each rule.
func Unlocked(old, next *Set) []Unlocking {
	var list []Unlocking
	for _, c := range compared(old, next) {
		list = append(list, UnlockedAt(c.before, c.after)...)
	}
	return list
}

// UnlockedAt reports which of the old rules of one call lock no more under the next ones:
// those of which no lock is taken any more, by whatever rule and under whatever condition. So
// rules may be renamed, merged, split and moved to a wildcard and back. Nor is one reported
// whose place a rule with another lock takes: that is for [RekeyedAt].
//
// The lock of a rule without a key ([Resolved.Partial]) is that of a lower layer. It remains
// until a rule of its name switches it off.
func UnlockedAt(old, next []*Resolved) []Unlocking {
	var list []Unlocking
	add := func(was, is *Resolved) {
		list = append(list, Unlocking{comparison{old, next}.place(), was, is})
	}
	for _, was := range unsucceeded(strangers(old, next), strangers(next, old)) {
		if is := switchedOff(was, next); is != nil || !was.Partial() {
			add(was, is)
		}
	}
	for _, is := range next {
		known := func(u Unlocking) bool { return u.New == is }
		sameName := func(was *Resolved) bool { return was.Name == is.Name }
		if is.Partial() && unlocks(is) != "" && !slices.ContainsFunc(old, sameName) && !slices.ContainsFunc(list, known) {
			add(nil, is)
		}
	}
	return list
}

// strangers are the rules with locks of which none is taken there.
func strangers(here, there []*Resolved) []*Resolved {
	taken := map[lock]bool{}
	for _, r := range there {
		for _, l := range r.anyTime() {
			taken[l] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(here), func(r *Resolved) bool {
		own := r.anyTime()
		return len(own) == 0 || slices.ContainsFunc(own, func(l lock) bool { return taken[l] })
	})
}

// anyTime are the locks of a rule without their conditions. That of a lower layer is known by
// the rule's name.
func (r *Resolved) anyTime() []lock {
	if r.Partial() && unlocks(r) == "" {
		return []lock{{key: nobody + r.Name}}
	}
	list := r.locks()
	for i := range list {
		list[i].when = ""
	}
	return list
}

// unsucceeded are the rules that are gone and whose place none takes of those that come:
// the one of the same name, or else any.
func unsucceeded(gone, come []*Resolved) []*Resolved {
	sameName := func(old, r *Resolved) bool { return r.Name == old.Name }
	other := func(old, r *Resolved) bool { return !r.Partial() || r.Endpoint != old.Endpoint }
	for _, succeeds := range []func(old, r *Resolved) bool{sameName, other} {
		gone = slices.DeleteFunc(gone, func(old *Resolved) bool {
			i := slices.IndexFunc(come, func(r *Resolved) bool { return succeeds(old, r) })
			if i >= 0 {
				come = slices.Delete(come, i, i+1)
			}
			return i >= 0
		})
	}
	return gone
}

// switchedOff is the rule that says that a call runs without the lock of an old one: that
// one itself, or one of another endpoint that is nearer to the call. nil if none says so.
func switchedOff(was *Resolved, next []*Resolved) *Resolved {
	return first(next, func(is *Resolved) bool {
		return unlocks(is) != "" && (is.None || is.Name == was.Name || is.Endpoint != was.Endpoint)
	})
}

// unlocks is the field by which a rule takes no lock, empty if it takes one.
func unlocks(r *Resolved) string {
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
