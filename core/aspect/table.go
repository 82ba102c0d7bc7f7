package aspect

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Table is the rules of one provider, compiled for the endpoints of a [Registry]. A
// look-up takes no lock and does not allocate.
//
// A table has one generation at a time, which never changes. Calls go on under the one
// that they have found:
//
//	          learn, Renew: the same set, with an endpoint more, or anew
//	            ┌──┐
//	prepare ─▶ in force ──── prepare, commit ───▶ out of force
//	   │                     (a reload)
//	   └─▶ refused: what was in force stays
type Table[K comparable, X any] struct {
	registry *Registry[K, X]
	provider ruleset.Provider

	following sync.Once
	deaf      error // why nobody will be notified of a reload

	current  atomic.Pointer[generation[K, X]]
	learning sync.Mutex // one compiles what is not in the table
	swapping sync.Mutex // one replaces the generation and tells the observers; short
}

// generation is a set and what was compiled of it so far: nil for an endpoint without
// rules.
type generation[K comparable, X any] struct {
	provider ruleset.Provider // of set
	set      *ruleset.Set
	entries  map[K]*Entry[X]
}

func newGeneration[K comparable, X any](p ruleset.Provider, set *ruleset.Set) *generation[K, X] {
	return &generation[K, X]{provider: p, set: set, entries: map[K]*Entry[X]{}}
}

// with is a generation of the same set with more, or other, entries.
func (g *generation[K, X]) with(learned map[K]*Entry[X]) *generation[K, X] {
	next := &generation[K, X]{provider: g.provider, set: g.set, entries: maps.Clone(g.entries)}
	maps.Copy(next.entries, learned)
	return next
}

// Set is the set in force.
func (t *Table[K, X]) Set() *ruleset.Set { return t.current.Load().set }

// Len is how many endpoints are compiled, those without rules included.
func (t *Table[K, X]) Len() int { return len(t.current.Load().entries) }

// Find is what is in force for an endpoint, nil without rules. known is false if it was
// not compiled yet.
func (t *Table[K, X]) Find(k K) (e *Entry[X], known bool) {
	now := t.current.Load()
	if now == nil {
		return nil, false
	}
	e, known = now.entries[k]
	return e, known
}

// At is Find for an endpoint that there is: if need be it is compiled.
func (t *Table[K, X]) At(k K) *Entry[X] {
	if e, known := t.Find(k); known {
		return e
	}
	return t.learn(k).entries[k]
}

// Entries are those in force that have rules, by their endpoints.
func (t *Table[K, X]) Entries() []*Entry[X] {
	return t.registry.entries(t.current.Load())
}

// begin adds an endpoint that begins now. An endpoint that cannot work is not kept, and no reload
// sees it.
func (t *Table[K, X]) begin(k K) error {
	now := t.compile(true, false, k)
	if e := now.entries[k]; e != nil && e.Err != nil {
		return e.Err
	}
	t.registry.mu.Lock()
	defer t.registry.mu.Unlock()
	t.registry.known[k] = true
	return nil
}

// Renew is At for endpoints of which the adapter declares more than before: they are
// compiled again. The entries are in the order of the keys.
func (t *Table[K, X]) Renew(keys ...K) []*Entry[X] {
	now := t.compile(true, true, keys...)
	list := make([]*Entry[X], len(keys))
	for i, k := range keys {
		list[i] = now.entries[k]
	}
	return list
}

// learn gives a generation that was in force with the endpoints. Each is compiled once.
func (t *Table[K, X]) learn(keys ...K) *generation[K, X] { return t.compile(false, true, keys...) }

// compile is learn. With anew it also compiles what is known. Without broken nothing comes into
// force if an endpoint cannot work.
func (t *Table[K, X]) compile(anew, broken bool, keys ...K) *generation[K, X] {
	t.learning.Lock()
	defer t.learning.Unlock()
	for {
		now := t.current.Load()
		learned := map[K]*Entry[X]{}
		for _, k := range keys {
			if _, known := now.entries[k]; anew || !known {
				learned[k] = t.registry.adapter.compile(now.set, k)
			}
		}
		if len(learned) == 0 {
			return now
		}
		next := now.with(learned)
		fails := func(e *Entry[X]) bool { return e != nil && e.Err != nil }
		if !broken && slices.ContainsFunc(slices.Collect(maps.Values(learned)), fails) || t.extend(now, next, learned) {
			return next
		}
	}
}

// extend puts next in the place of now, unless a reload was faster.
func (t *Table[K, X]) extend(now, next *generation[K, X], learned map[K]*Entry[X]) bool {
	t.swapping.Lock()
	defer t.swapping.Unlock()
	if !t.current.CompareAndSwap(now, next) {
		return false
	}
	for _, k := range t.registry.sorted(maps.Keys(learned)) {
		now.entries[k].retract(learned[k])
		learned[k].announce()
	}
	return true
}

// replace puts a generation of another set into force, which was made when prepared was.
// What was compiled since is left out, and compiled under the next set when it is asked
// for. It tells of rules that are gone before those that come: the names of both may be the
// same.
func (t *Table[K, X]) replace(prepared, next *generation[K, X]) {
	t.swapping.Lock()
	defer t.swapping.Unlock()
	if old := t.current.Load(); old != nil {
		for _, k := range t.registry.sorted(maps.Keys(old.entries)) {
			if old.entries[k] != prepared.entries[k] {
				delete(next.entries, k)
			}
			old.entries[k].retract(next.entries[k])
		}
	}
	t.current.Store(next)
	for _, k := range t.registry.sorted(maps.Keys(next.entries)) {
		next.entries[k].announce()
	}
}

// prepare makes everything ready for a set: the first one, of which nothing is compiled
// yet, and one that is to replace the one in force. Every endpoint that the table has is
// compiled, and judged with all others; what would be wrong, or would take other locks
// than now, is refused. It implements [ruleset.Prepare].
func (t *Table[K, X]) prepare(set *ruleset.Set) (commit func(), err error) {
	next := newGeneration[K, X](t.provider, set)
	old := t.current.Load()
	if old == nil {
		return func() { t.replace(nil, next) }, nil
	}
	adapter := &t.registry.adapter
	for k := range old.entries {
		if t.registry.keeps(set, k) {
			next.entries[k] = adapter.compile(set, k)
		}
	}
	report := t.registry.judge(t.registry.with(t, next))
	t.compareLocks(report, old, next)
	if err := report.err(); err != nil {
		return nil, err
	}
	return func() {
		t.replace(old, next)
		t.registry.aspect.Warn(report.Warnings()...)
	}, nil
}

// compareLocks reports rules of which callers under the old set and under the next one
// would hold different locks, where the next set does not allow it. Where a mistake makes
// the other lock, the mistake is the news.
func (t *Table[K, X]) compareLocks(report *Report, old, next *generation[K, X]) {
	if next.set.Settings().AllowRekey {
		return
	}
	seen := map[ruleset.Endpoint]bool{}
	for k, before := range old.entries {
		after := next.entries[k]
		endpoint := t.registry.adapter.Endpoint(k)
		seen[endpoint] = true
		if after == nil || after.Err == nil {
			report.addRekeyed(endpoint, before.Rules(), after.Rules())
		}
	}
	t.compareUnseen(report, old.set, next.set, seen)
}

// compareUnseen is compareLocks for the endpoints that a set names and the table does
// not have, because nobody has called them here yet. Other programs may hold their locks.
func (t *Table[K, X]) compareUnseen(report *Report, old, next *ruleset.Set, seen map[ruleset.Endpoint]bool) {
	adapter := &t.registry.adapter
	if adapter.Named == nil {
		return
	}
	for _, r := range slices.Concat(next.Rules(), old.Rules()) {
		e := r.Endpoint
		if e.Transport != adapter.Transport || strings.HasSuffix(e.Path, "*") || seen[e] {
			continue
		}
		seen[e] = true
		k, ok := adapter.Named(e)
		if !ok {
			continue
		}
		before, problems, beforeErr := adapter.overlay(old, k)
		after, _, err := adapter.overlay(next, k)
		if beforeErr == nil && err == nil && len(problems) == 0 { // what is wrong is told when it is called
			report.addRekeyed(e, before, after)
		}
	}
}

// addRekeyed adds what the rules of an endpoint would lock in another way.
func (r *Report) addRekeyed(e ruleset.Endpoint, old, next []*ruleset.Resolved) {
	refused, _ := ruleset.CompareLocksAt(e, old, next)
	for _, p := range refused {
		r.Add(e, p)
	}
}
