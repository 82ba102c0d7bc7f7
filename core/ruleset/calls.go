package ruleset

import (
	"slices"
	"strings"
)

// comparison is what became of the rules that apply to a call.
type comparison struct{ before, after []*Resolved }

// compared are the rules of every call that the sets tell apart. Calls with the same rules
// before and after are one.
func compared(old, next *Set) []comparison {
	type pair struct{ old, next *Resolved }
	var list []comparison
	whichever := func(*Resolved) bool { return true }
	known := map[pair]bool{{}: true} // without rules there is nothing to compare
	for _, e := range calls(next, old) {
		c := comparison{before: old.Lookup(e), after: next.Lookup(e)}
		if p := (pair{first(c.before, whichever), first(c.after, whichever)}); !known[p] {
			known[p] = true
			list = append(list, c)
		}
	}
	return list
}

// first is the first of the rules of which something is true, nil if there is none.
func first(rules []*Resolved, is func(*Resolved) bool) *Resolved {
	if i := slices.IndexFunc(rules, is); i >= 0 {
		return rules[i]
	}
	return nil
}

// place is the endpoint of the calls to which both sides apply.
func (c comparison) place() Endpoint {
	switch {
	case len(c.before) == 0:
		return c.after[0].Endpoint
	case len(c.after) == 0:
		return c.before[0].Endpoint
	default:
		return c.before[0].Endpoint.and(c.after[0].Endpoint)
	}
}

// and is the endpoint of the calls that belong to both, of which there are some.
func (e Endpoint) and(other Endpoint) Endpoint {
	if e.Method == "*" {
		e.Method = other.Method
	}
	if wild := e.isWild(); wild && !other.isWild() || wild && len(other.Path) > len(e.Path) {
		e.Path = other.Path
	}
	return e
}

// nobody is a method, and a part of a path, that no rule names: it stands for all of
// those.
const nobody = "\x00"

// calls are exact endpoints of calls: for any call, [Set.Lookup] finds in each of the
// sets what it finds there for one of these. A path that no set names has the rules of
// the longest prefix above it, so that one such path below each prefix is enough.
func calls(sets ...*Set) []Endpoint {
	var places []Endpoint
	methods := []string{nobody}
	known := map[Endpoint]bool{}
	for _, s := range sets {
		for _, r := range s.Rules() {
			e := r.Endpoint
			methods = union(methods, []string{e.Method})
			if e.Method = ""; e.isWild() {
				e.Path = strings.TrimSuffix(e.Path, "*") + nobody
			}
			if !known[e] {
				known[e] = true
				places = append(places, e)
			}
		}
	}
	var list []Endpoint
	for _, e := range places {
		if e.hasLayers() {
			list = append(list, e)
			continue
		}
		for _, e.Method = range methods {
			list = append(list, e)
		}
	}
	return list
}
