package ruleset

import (
	"slices"
	"strings"
)

// comparison is what became of the rules that apply to a call.
type comparison struct {
	before, after []*Resolved
	problems      []*Problem
}

// rekeyings compares the rules of every call for which both sets have some, in the
// order in which the next set and then the old one name them. Calls with the same
// rules before and after are one.
func rekeyings(old, next *Set) []comparison {
	type pair struct{ old, next *Resolved }
	var list []comparison
	known := map[pair]bool{}
	for _, e := range calls(next, old) {
		if e.hasLayers() && (old.exactly(e) == nil) != (next.exactly(e) == nil) {
			continue
		}
		c := comparison{before: old.Lookup(e), after: next.Lookup(e)}
		if len(c.before) == 0 || len(c.after) == 0 {
			continue
		}
		if p := (pair{c.before[0], c.after[0]}); !known[p] {
			known[p] = true
			c.problems = RekeyedAt(c.before, c.after)
			list = append(list, c)
		}
	}
	return list
}

// hasLayers reports whether rules may be declared for the endpoint outside of a set.
func (e Endpoint) hasLayers() bool { return e.Transport != TransportHTTP }

// nobody is a method, and a part of a path, that no rule names: it stands for all of
// those.
const nobody = "\x00"

// calls are exact endpoints of calls: for any call, [Set.Lookup] finds in each of the
// sets what it finds there for one of these.
//
// What it finds depends on the path and on the method. A path that no set names has
// the rules of the longest prefix above it that one of them has, or of those above
// that: one such path below each prefix is enough, and one that is below none. So is,
// on every path, one method that no set names, beside those that are named for that
// path or in a wildcard.
func calls(sets ...*Set) []Endpoint {
	var list []Endpoint
	named := namedIn(sets)
	for _, place := range named.places {
		e := place
		if e.isWild() {
			e.Path = strings.TrimSuffix(e.Path, "*") + nobody
		}
		if e.Transport != TransportHTTP {
			list = append(list, e)
			continue
		}
		for _, method := range append(union(named.methods[place], named.everywhere), nobody) {
			e.Method = method
			list = append(list, e)
		}
	}
	return list
}

// isWild reports whether the path is that of a wildcard.
func (e Endpoint) isWild() bool { return e.Path == "*" || strings.HasSuffix(e.Path, "/*") }

// names are what sets name.
type names struct {
	places     []Endpoint            // without their methods
	methods    map[Endpoint][]string // of places
	everywhere []string              // methods of wildcards
}

func namedIn(sets []*Set) *names {
	n := &names{methods: map[Endpoint][]string{}}
	for _, s := range sets {
		for _, r := range s.Rules() {
			n.add(r.Endpoint)
		}
	}
	return n
}

func (n *names) add(e Endpoint) {
	method := []string{e.Method}
	e.Method = ""
	known, there := n.methods[e]
	if !there {
		n.places = append(n.places, e)
	}
	n.methods[e] = union(known, method)
	if e.isWild() {
		n.everywhere = union(n.everywhere, method)
	}
}

// union is a, and what b has besides.
func union(a, b []string) []string {
	all := slices.Clip(a)
	for _, s := range b {
		if !slices.Contains(a, s) {
			all = append(all, s)
		}
	}
	return all
}
