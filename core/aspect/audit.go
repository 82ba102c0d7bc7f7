package aspect

import (
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// audit checks a snapshot of all rules of a registry: for Check, and for a reload before it comes into force. It
// changes nothing.
type audit[K comparable, X any] struct {
	env         *environment
	adapter     *Adapter[K, X]
	placed      []*Entry[X]         // see Registry
	generations []*generation[K, X] // one for each table
	known       []K                 // the endpoints that exist, in order
	complete    bool                // known contains every endpoint
}

// report returns all problems.
func (a *audit[K, X]) report() *Report {
	report := &Report{}
	var origins [][]*Entry[X]
	for _, e := range a.placed {
		origins = append(origins, []*Entry[X]{e})
	}
	for _, g := range a.generations {
		origins = append(origins, g.inOrder(a.adapter))
	}
	entries := slices.Concat(origins...)
	for _, e := range entries {
		report.Add(e.Endpoint, e.Err)
	}
	if a.complete {
		for _, e := range entries[len(a.placed):] { // Place has already warned of the placed entries
			for _, p := range e.Point.oddities() {
				report.Warn(p.Endpoint, p)
			}
		}
		a.checkSets(report)
		a.checkReachable(report)
	}
	checkTogether(report, origins)
	return report
}

// checkSets compares the sets with the endpoints that exist.
func (a *audit[K, X]) checkSets(report *Report) {
	keys := map[ruleset.Endpoint]K{}
	j := Judge{Transport: a.adapter.Transport, Noun: a.adapter.Noun, Hint: a.adapter.Hint}
	j.Concerns = func(e ruleset.Endpoint) bool { return a.env.concerns(a.adapter.Prefix, e) }
	for _, k := range a.known {
		e := a.adapter.Endpoint(k)
		if _, twice := keys[e]; !twice {
			j.Endpoints = append(j.Endpoints, e)
		}
		keys[e] = k
	}
	j.Beside = func(e ruleset.Endpoint) bool {
		return slices.ContainsFunc(a.placed, func(p *Entry[X]) bool { return p.Endpoint == e })
	}
	j.Below = func(e ruleset.Endpoint) bool {
		declared, problems := a.adapter.declared(keys[e])
		return len(declared)+len(problems) > 0
	}
	if a.adapter.Changes != nil {
		j.Changes = func(e ruleset.Endpoint) bool { return a.adapter.Changes(keys[e]) }
	}
	sets := make([]*ruleset.Set, len(a.generations))
	for i, g := range a.generations {
		sets[i] = g.set
	}
	j.Judge(report, sets...)
}

// checkReachable reports rules of endpoints whose calls cannot reach the adapter.
func (a *audit[K, X]) checkReachable(report *Report) {
	if a.adapter.Unguarded == nil {
		return
	}
	for _, g := range a.generations {
		for _, k := range a.adapter.sorted(maps.Keys(g.entries)) {
			e := g.entries[k]
			for _, rule := range e.Rules() {
				if rule.Endpoint.Path != e.Endpoint.Path && a.adapter.Changes != nil && !a.adapter.Changes(k) {
					continue
				}
				if reason := a.adapter.Unguarded(g.provider, k); reason != "" {
					report.Add(e.Endpoint, rule.Problem("", reason))
				}
			}
		}
	}
}

// checkTogether reports conflicts between entries: a key that is locked with different kinds, and two rules of one name
// on one endpoint from different origins. A placed entry is an origin, and so is a set. Within a set, several keys may
// share an endpoint and its rules. The sets are the last origins, so that a problem names a rule that a file can change.
func checkTogether[X any](report *Report, origins [][]*Entry[X]) {
	before := map[ruleset.Endpoint][]*Point{}
	var rules []*ruleset.Resolved
	for _, entries := range origins {
		entries = slices.DeleteFunc(entries, func(e *Entry[X]) bool { return e.Point == nil })
		for _, e := range entries {
			for _, other := range before[e.Endpoint] {
				report.Add(e.Endpoint, Twice(e.Point, other))
			}
			rules = append(rules, e.Rules()...)
		}
		for _, e := range entries {
			before[e.Endpoint] = append(before[e.Endpoint], e.Point)
		}
	}
	for _, p := range ruleset.MixedKinds(rules) {
		report.Add(p.Endpoint, p)
	}
}

// compareLocks reports rules for which callers under the old set and under the next set would hold different locks,
// unless the next set allows that. It skips an endpoint whose next entry does not compile, because the report contains
// that error already.
func compareLocks[K comparable, X any](report *Report, a *Adapter[K, X], old, next *generation[K, X]) {
	if next.set.Settings().AllowRekey {
		return
	}
	seen := map[ruleset.Endpoint]bool{}
	for k, before := range old.entries {
		after := next.entries[k]
		endpoint := a.Endpoint(k)
		seen[endpoint] = true
		if after == nil || after.Err == nil {
			report.addRekeyed(endpoint, before.Rules(), after.Rules())
		}
	}
	compareUnseen(report, a, old.set, next.set, seen)
}

// compareUnseen does the work of compareLocks for endpoints that a set names and the table does not contain, because
// no client of this process has called them yet. Other programs may hold their locks.
func compareUnseen[K comparable, X any](report *Report, a *Adapter[K, X], old, next *ruleset.Set, seen map[ruleset.Endpoint]bool) {
	if a.Named == nil {
		return
	}
	for _, r := range slices.Concat(next.Rules(), old.Rules()) {
		e := r.Endpoint
		if e.Transport != a.Transport || strings.HasSuffix(e.Path, "*") || seen[e] {
			continue
		}
		seen[e] = true
		k, ok := a.Named(e)
		if !ok {
			continue
		}
		before, problems, beforeErr := a.overlay(old, k)
		after, _, err := a.overlay(next, k)
		if beforeErr == nil && err == nil && len(problems) == 0 { // problems show when the endpoint is called
			report.addRekeyed(e, before, after)
		}
	}
}
